// One access list in two forms, for benches: ports 1 and 2 differ in the kind of match and in nothing else.
//
//   parse Ethernet, IPv4, ports ─► port 1: acl_exact (hash) / else: acl_ternary (masks and priorities) ─► forward or drop
//
// A packet that is not TCP or UDP over IPv4 without options has ports 0.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;
const bit<9> PORT_EXACT = 1;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  diffserv;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t {
    bit<16> src_port;
    bit<16> dst_port;
}

parser AclParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_ports;
            (5, 0, PROTOCOL_UDP): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        meta.src_port = hdr.ports.src_port;
        meta.dst_port = hdr.ports.dst_port;
        transition accept;
    }
}

control AclVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AclIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action deny() {
        mark_to_drop(standard_metadata);
    }

    action permit(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table acl_exact {
        key = {
            hdr.ipv4.src_addr : exact;
            hdr.ipv4.dst_addr : exact;
            hdr.ipv4.protocol : exact;
            meta.src_port     : exact;
            meta.dst_port     : exact;
        }
        actions = { permit; deny; }
        default_action = deny();
        size = 16384;
    }

    table acl_ternary {
        key = {
            hdr.ipv4.src_addr : ternary;
            hdr.ipv4.dst_addr : ternary;
            hdr.ipv4.protocol : ternary;
            meta.src_port     : ternary;
            meta.dst_port     : ternary;
        }
        actions = { permit; deny; }
        default_action = deny();
        size = 16384;
    }

    apply {
        if (!hdr.ipv4.isValid()) {
            deny();
        } else if (standard_metadata.ingress_port == PORT_EXACT) {
            acl_exact.apply();
        } else {
            acl_ternary.apply();
        }
    }
}

control AclEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control AclComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AclDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(AclParser(), AclVerifyChecksum(), AclIngress(), AclEgress(), AclComputeChecksum(), AclDeparser()) main;
