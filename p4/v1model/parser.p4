/* v1model parser and deparser. The parser also fills the metadata that every control may rely on. */
parser LeafParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        meta.ingress_port = (bit<9>)standard.ingress_port;
        meta.now = (bit<32>)standard.ingress_global_timestamp;
        meta.egress_port = PORT_NONE;
        transition select(meta.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_TAG: tag;
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_ARP: arp_kind;
            ETHERTYPE_MESSAGE: message;
            default: accept;
        }
    }

    /* A sink needs the inner IPv4 header (destination, length); nobody needs more of a tagged packet. */
    state tag {
        packet.extract(hdr.tag);
        transition select(hdr.tag.next_type) {
            ETHERTYPE_IPV4: tagged_ipv4;
            default: accept;
        }
    }

    state tagged_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    /* Ports exist in unfragmented packets without options only. */
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version_ihl, hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (0x45, 0 &&& 0x3fff, PROTOCOL_TCP): ports;
            (0x45, 0 &&& 0x3fff, PROTOCOL_UDP): udp_ports;
            default: accept;
        }
    }

    state ports {
        bit<32> pair = packet.lookahead<bit<32>>();
        meta.src_port = pair[31:16];
        meta.dst_port = pair[15:0];
        transition accept;
    }

    state udp_ports {
        bit<32> pair = packet.lookahead<bit<32>>();
        meta.src_port = pair[31:16];
        meta.dst_port = pair[15:0];
        transition select(pair[15:0]) {
            ROCE_PORT: roce;
            default: accept;
        }
    }

    /* UDP 8 bytes; BTH: op code, flags, partition key, reserved, destination QP 24. */
    state roce {
        meta.dst_qp = packet.lookahead<bit<128>>()[23:0];
        transition accept;
    }

    state arp_kind {
        transition select(packet.lookahead<bit<64>>()) {
            ARP_REQUEST: arp;
            default: accept;
        }
    }

    state arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state from_controller {
        packet.extract(hdr.packet_out);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_MESSAGE: message;
            default: accept;
        }
    }

    state message {
        packet.extract(hdr.message);
        transition select(hdr.message.magic, hdr.message.version, hdr.message.op) {
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_READ): readout;
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_ADVANCE): readout;
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_SOURCE): readout;
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_PROBE): probe;
            default: accept;
        }
    }

    state readout {
        packet.extract(hdr.readout);
        transition accept;
    }

    state probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control LeafDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
        packet.emit(hdr.message);
        packet.emit(hdr.readout);
        packet.emit(hdr.probe);
        packet.emit(hdr.stamp);
        packet.emit(hdr.slot_cells);
        packet.emit(hdr.source_cells);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
    }
}

/* No checksum is verified or recomputed as a whole: nothing but the TTL ever changes (DECREASE_TTL). */
control LeafVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LeafComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
