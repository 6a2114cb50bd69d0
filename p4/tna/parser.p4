/*
 * TNA parsers and deparsers. The parsers also fill the metadata that every control may rely on, and decide what can be decided
 * from the packet alone: whose readout this is, whether a slot exists.
 */
parser LeafIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                         out ingress_intrinsic_metadata_t standard) {
    state start {
        packet.extract(standard);
        packet.advance(PORT_METADATA_SIZE);
        meta.ingress_port = standard.ingress_port;
        meta.egress_port = PORT_NONE;
        transition select(standard.ingress_port) {
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

    /* In two halves: a state compares four bytes at most. */
    state arp_kind {
        transition select(packet.lookahead<bit<32>>()) {
            ARP_REQUEST[63:32]: arp_request;
            default: accept;
        }
    }

    state arp_request {
        transition select(packet.lookahead<bit<64>>()[31:0]) {
            ARP_REQUEST[31:0]: arp;
            default: accept;
        }
    }

    state arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    /* Only the controller may ask: without a `readout` header a request of anybody else is refused like any other message. */
    state message {
        packet.extract(hdr.message);
        transition select(hdr.message.magic, hdr.message.version, hdr.message.op) {
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_PROBE): probe;
            default: accept;
        }
    }

    state from_controller {
        packet.extract(hdr.packet_out);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_MESSAGE: controller_message;
            default: accept;
        }
    }

    state controller_message {
        packet.extract(hdr.message);
        transition select(hdr.message.magic, hdr.message.version, hdr.message.op) {
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_READ): readout;
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_ADVANCE): readout;
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_SOURCE): source_readout;
            (MESSAGE_MAGIC, MESSAGE_VERSION, OP_PROBE): probe;
            default: accept;
        }
    }

    state readout {
        packet.extract(hdr.readout);
        transition accept;
    }

    state source_readout {
        packet.extract(hdr.readout);
        meta.src_slot = hdr.readout.slot;
        transition select(hdr.readout.slot) {
            0 &&& NO_SUCH_SLOT: source_cells;
            default: source_zeros;
        }
    }

    state source_cells {
        meta.source_read = READ_CELLS;
        transition accept;
    }

    state source_zeros {
        meta.source_read = READ_ZEROS;
        transition accept;
    }

    state probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control LeafIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t standard) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
        packet.emit(hdr.message);
        packet.emit(hdr.readout);
        packet.emit(hdr.probe);
        packet.emit(hdr.source_cells);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
    }
}

/* Ingress has put `packet_in` before everything that goes to the CPU port. */
parser LeafEgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t standard) {
    state start {
        packet.extract(standard);
        transition select(standard.egress_port) {
            CPU_PORT: to_controller;
            default: ethernet;
        }
    }

    state to_controller {
        packet.extract(hdr.packet_in);
        transition ethernet;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_TAG: tag;
            ETHERTYPE_MESSAGE: message;
            default: accept;
        }
    }

    state tag {
        packet.extract(hdr.tag);
        meta.slot = hdr.tag.slot;
        transition select(hdr.tag.sink, hdr.tag.slot) {
            (0, _): accept;
            (1, 0): accept;
            (1, 0 &&& NO_SUCH_SLOT): deliver;
            default: accept;
        }
    }

    state deliver {
        packet.extract(hdr.ipv4);
        meta.sink_work = WORK_DELIVER;
        transition accept;
    }

    state message {
        packet.extract(hdr.message);
        transition select(hdr.message.op) {
            OP_READ: readout;
            OP_ADVANCE: advance;
            OP_SOURCE: source_readout;
            OP_PROBE: probe;
            default: accept;
        }
    }

    state advance {
        packet.extract(hdr.readout);
        meta.advance = hdr.readout.interval;
        meta.slot = hdr.readout.slot;
        transition select(hdr.readout.slot) {
            0 &&& NO_SUCH_SLOT: read_cells;
            default: read_zeros;
        }
    }

    state readout {
        packet.extract(hdr.readout);
        meta.slot = hdr.readout.slot;
        transition select(hdr.readout.slot) {
            0 &&& NO_SUCH_SLOT: read_cells;
            default: read_zeros;
        }
    }

    state read_cells {
        meta.sink_work = WORK_READ;
        transition accept;
    }

    state read_zeros {
        meta.sink_work = WORK_ZEROS;
        transition accept;
    }

    state source_readout {
        packet.extract(hdr.readout);
        packet.extract(hdr.source_cells);
        transition accept;
    }

    state probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control LeafEgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t standard) {
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
        packet.emit(hdr.ipv4);
    }
}
