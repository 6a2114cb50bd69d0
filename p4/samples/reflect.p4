// The tutorial's program for v1model (docs/switch.md): what comes in by a port goes out by the port that a table names, or back.
//
//   parse Ethernet ─► count and remember the size, per port ─► reflect: by source address ─► swap addresses, send

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

parser ReflectParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control ReflectVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ReflectIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    /// Packets and bytes that came in, by port.
    counter(512, CounterType.packets_and_bytes) port_counter;
    /// Size in bytes of the last packet that came in, by port.
    register<bit<32>>(512) last_size;

    action swap() {
        bit<48> sender = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = sender;
    }

    /// Back to where it came from.
    action back() {
        swap();
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action to_port(bit<9> port) {
        swap();
        standard_metadata.egress_spec = port;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table reflect {
        key = {
            hdr.ethernet.src_addr : ternary @name("src_addr");
        }
        actions = { back; to_port; drop; }
        size = 1024;
        default_action = back();
    }

    apply {
        port_counter.count((bit<32>)standard_metadata.ingress_port);
        last_size.write((bit<32>)standard_metadata.ingress_port, standard_metadata.packet_length);
        reflect.apply();
    }
}

control ReflectEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ReflectComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ReflectDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(ReflectParser(), ReflectVerifyChecksum(), ReflectIngress(), ReflectEgress(), ReflectComputeChecksum(), ReflectDeparser()) main;
