// One object of every kind that P4Runtime can address on v1model, for the conformance table of the server
// (tests/it/p4runtime_server.rs). After a change:
//   p4c-bm2-ss --arch v1model -o program.json --p4runtime-files program.p4info.txtpb program.p4
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("ringpath/port", string)
type bit<9> port_name_t;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

header body_t {
    bit<8> e;
    bit<32> l;
    bit<12> t;
    bit<16> r;
    bit<1> o;
    bit<3> pad;
    bit<48> mac;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    body_t body;
}

struct pair_t {
    bit<48> left;
    bit<8> right;
}

struct metadata_t {
    bit<8> colour;
    bit<32> cell;
    int<8> small;
    port_name_t port;
    pair_t pair;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x03000001) value_set<bit<16>>(4) pvs;
    state start {
        transition select(standard.ingress_port) {
            510: from_controller;
            default: body;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition body;
    }
    state body {
        transition select(packet.lookahead<bit<16>>()) {
            pvs: accept;
            default: take;
        }
    }
    state take {
        packet.extract(hdr.body);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x13000001) direct_counter(CounterType.packets_and_bytes) exact_counter;
    @id(0x15000001) direct_meter<bit<8>>(MeterType.bytes) exact_meter;
    @id(0x12000001) counter(8, CounterType.packets_and_bytes) drops;
    @id(0x14000001) meter(8, MeterType.bytes) police;
    @id(0x16000001) register<bit<32>>(8) cells;
    @id(0x16000002) register<int<8>>(8) smalls;
    @id(0x11000001) @max_group_size(8) action_selector(HashAlgorithm.crc16, 32w64, 32w14) ecmp;
    @id(0x11000002) action_profile(32w16) members;

    @id(0x01000002) action forward(@id(1) bit<9> port, @id(2) bit<48> mac) {
        standard.egress_spec = port;
        hdr.body.mac = mac;
    }
    @id(0x01000003) action drop() {
        mark_to_drop(standard);
    }
    @id(0x01000004) action watched(@id(1) bit<9> port) {
        standard.egress_spec = port;
        exact_meter.read(meta.colour);
        exact_counter.count();
    }

    @id(0x02000001) table exact_t {
        key = { standard.ingress_port : exact @name("a"); }
        actions = { watched; @tableonly forward; @defaultonly drop; @defaultonly NoAction; }
        default_action = NoAction;
        counters = exact_counter;
        meters = exact_meter;
        support_timeout = true;
        size = 4;
    }
    @id(0x02000002) table all_kinds {
        key = {
            hdr.body.e : exact @name("e");
            hdr.body.l : lpm @name("l");
            hdr.body.t : ternary @name("t");
            hdr.body.r : range @name("r");
            hdr.body.o : optional @name("o");
        }
        actions = { forward; NoAction; }
        size = 64;
    }
    @id(0x02000003) table lpm_t {
        key = { hdr.body.l : lpm @name("l"); }
        actions = { forward; NoAction; }
        const default_action = NoAction;
        size = 64;
    }
    @id(0x02000004) table const_t {
        key = { standard.ingress_port : exact @name("a"); }
        actions = { forward; NoAction; }
        const entries = {
            1 : forward(2, 0);
            2 : forward(1, 0);
        }
    }
    @id(0x02000005) table route {
        key = {
            hdr.body.l : lpm @name("l");
            hdr.body.r : selector;
        }
        actions = { forward; }
        implementation = ecmp;
        size = 64;
    }
    @id(0x02000006) table indirect {
        key = { standard.ingress_port : exact @name("a"); }
        actions = { forward; }
        implementation = members;
        size = 64;
    }
    @id(0x02000007) table keyless {
        actions = { forward; }
    }
    @id(0x02000008) table named {
        key = { meta.port : exact @name("port"); }
        actions = { NoAction; }
        size = 64;
    }

    apply {
        police.execute_meter((bit<32>)2, meta.colour);
        cells.read(meta.cell, 0);
        smalls.read(meta.small, 0);
        drops.count(0);
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            exact_t.apply();
            lpm_t.apply();
            const_t.apply();
            indirect.apply();
            keyless.apply();
            named.apply();
            if (hdr.body.isValid()) {
                all_kinds.apply();
                route.apply();
            }
        }
        digest<pair_t>(1, { hdr.body.mac, hdr.body.e });
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard.ingress_port;
            hdr.packet_in.pad = 0;
        }
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.body);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
