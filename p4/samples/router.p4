// A plain IPv4 router for v1model: the smallest program with which two hosts can talk through a switch. Interop tests, benches and
// the tutorial of `ringpath switch` run it; the controller knows nothing of it.
//
//   parse Ethernet, IPv4 ─► checksum right? TTL left? ─► route: longest prefix ─► MAC addresses, TTL - 1 ─► new checksum
//
// ARP is not answered: hosts need a static entry for the router. A packet with IPv4 options or anything but IPv4 is dropped.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;

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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t { }

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) route_counter;

    action drop() {
        route_counter.count();
        mark_to_drop(standard_metadata);
    }

    /// Sends to the next hop `next_hop_mac` by `port`, from `port_mac`.
    action forward(bit<48> next_hop_mac, bit<48> port_mac, bit<9> port) {
        route_counter.count();
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst_addr = next_hop_mac;
        hdr.ethernet.src_addr = port_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    @name("route")
    table route {
        key = {
            hdr.ipv4.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            forward;
            drop;
        }
        size = 65536;
        default_action = drop();
        counters = route_counter;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5 && hdr.ipv4.ttl > 1 && standard_metadata.checksum_error == 0) {
            route.apply();
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(RouterParser(), RouterVerifyChecksum(), RouterIngress(), RouterEgress(), RouterComputeChecksum(), RouterDeparser()) main;
