// Something of every kind that P4Runtime can program on v1model, in sizes that are soon full: for tests of the server. What
// it does to packets is of no use to anybody.
#include <core.p4>
#include <v1model.p4>

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
    bit<128> wide;
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
    bit<48> long;
}

// A value set with every kind of match that a parser can be given.
struct picky_t {
    @match(exact) bit<8> e;
    @match(ternary) bit<12> t;
    @match(lpm) bit<32> l;
    @match(range) bit<16> r;
    @match(optional) bit<1> o;
}

parser EntitiesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x03000001) value_set<bit<16>>(4) plain_set;
    @id(0x03000002) value_set<picky_t>(3) picky_set;
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
            plain_set: accept;
            default: take;
        }
    }
    state take {
        packet.extract(hdr.body);
        transition select(hdr.body.e, hdr.body.t, hdr.body.l, hdr.body.r, hdr.body.o) {
            picky_set: marked;
            default: accept;
        }
    }
    state marked {
        meta.colour = 9;
        transition accept;
    }
}

control EntitiesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EntitiesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x13000001) direct_counter(CounterType.packets_and_bytes) exact_counter;
    @id(0x13000002) direct_counter(CounterType.packets) const_counter;
    @id(0x13000003) direct_counter(CounterType.bytes) keyless_counter;
    @id(0x15000001) direct_meter<bit<8>>(MeterType.bytes) exact_meter;
    @id(0x12000001) counter(8, CounterType.packets_and_bytes) seen;
    @id(0x12000002) counter(3, CounterType.packets) few;
    @id(0x14000001) meter(8, MeterType.bytes) police;
    @id(0x14000002) meter(2, MeterType.packets) pace;
    @id(0x16000001) register<bit<32>>(8) cells;
    @id(0x16000002) register<int<8>>(8) smalls;
    @id(0x16000003) register<bit<48>>(4) longs;
    @id(0x11000001) @max_group_size(8) action_selector(HashAlgorithm.crc16, 32w16, 32w14) shared;
    @id(0x11000002) action_profile(32w4) members;
    @id(0x11000003) action_selector(HashAlgorithm.crc16, 32w16, 32w14) unbounded;

    @id(0x01000001) action forward(@id(1) bit<9> port, @id(2) bit<48> mac) {
        standard.egress_spec = port;
        hdr.body.mac = mac;
    }
    @id(0x01000002) action drop() {
        mark_to_drop(standard);
    }
    @id(0x01000003) action watched(@id(1) bit<9> port) {
        standard.egress_spec = port;
        exact_meter.read(meta.colour);
        exact_counter.count();
    }
    @id(0x01000004) action tallied() {
        const_counter.count();
    }
    @id(0x01000005) action sized(@id(3) bit<128> wide) {
        keyless_counter.count();
        hdr.body.wide = wide;
    }
    @id(0x01000006) action rewrite(@id(1) bit<128> wide, @id(2) bit<1> o) {
        hdr.body.wide = wide;
        hdr.body.o = o;
    }

    @id(0x02000001) table exact_t {
        key = { standard.ingress_port : exact @name("port"); }
        actions = { watched; @tableonly forward; @defaultonly drop; @defaultonly NoAction; }
        default_action = NoAction;
        counters = exact_counter;
        meters = exact_meter;
        support_timeout = true;
        size = 6;
    }
    @id(0x02000002) table kinds_t {
        key = {
            hdr.body.e : exact @name("e");
            hdr.body.l : lpm @name("l");
            hdr.body.t : ternary @name("t");
            hdr.body.r : range @name("r");
            hdr.body.o : optional @name("o");
        }
        actions = { forward; rewrite; NoAction; }
        size = 8;
    }
    @id(0x02000003) table lpm_t {
        key = { hdr.body.l : lpm @name("l"); }
        actions = { forward; NoAction; }
        const default_action = NoAction;
        size = 6;
    }
    @id(0x02000004) table const_t {
        key = {
            hdr.body.e : exact @name("e");
            hdr.body.t : ternary @name("t");
        }
        actions = { tallied; NoAction; }
        counters = const_counter;
        const entries = {
            (1, 0x10 &&& 0xff0) : tallied();
            (1, _) : tallied();
            (2, _) : NoAction();
        }
    }
    @id(0x02000005) table first_t {
        key = { hdr.body.e : exact @name("e"); }
        actions = { forward; NoAction; }
        entries = {
            7 : forward(1, 2);
            8 : NoAction();
        }
        size = 5;
    }
    @id(0x02000006) table wide_t {
        key = {
            hdr.body.wide : ternary @name("wide");
            hdr.body.mac : optional @name("mac");
        }
        actions = { rewrite; drop; NoAction; }
        size = 6;
    }
    @id(0x02000007) table route_a {
        key = {
            hdr.body.l : lpm @name("l");
            hdr.body.r : selector;
        }
        actions = { forward; drop; NoAction; }
        implementation = shared;
        size = 6;
    }
    @id(0x02000008) table route_b {
        key = {
            hdr.body.e : exact @name("e");
            hdr.body.r : selector;
        }
        actions = { forward; drop; NoAction; }
        implementation = shared;
        size = 6;
    }
    @id(0x02000009) table indirect_t {
        key = { hdr.body.t : ternary @name("t"); }
        actions = { forward; NoAction; }
        implementation = members;
        size = 6;
    }
    @id(0x0200000a) table spread_t {
        key = {
            hdr.body.r : range @name("r");
            hdr.body.t : selector;
        }
        actions = { forward; NoAction; }
        implementation = unbounded;
        size = 6;
    }
    @id(0x0200000b) table keyless_t {
        actions = { sized; NoAction; }
        counters = keyless_counter;
    }

    apply {
        police.execute_meter((bit<32>)2, meta.colour);
        pace.execute_meter((bit<32>)1, meta.colour);
        cells.read(meta.cell, 0);
        smalls.read(meta.small, 0);
        longs.read(meta.long, 0);
        seen.count(0);
        few.count(1);
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            exact_t.apply();
            keyless_t.apply();
            if (hdr.body.isValid()) {
                kinds_t.apply();
                lpm_t.apply();
                const_t.apply();
                first_t.apply();
                wide_t.apply();
                route_a.apply();
                route_b.apply();
                indirect_t.apply();
                spread_t.apply();
            }
        }
        digest<pair_t>(1, { hdr.body.mac, hdr.body.e });
    }
}

control EntitiesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard.ingress_port;
            hdr.packet_in.pad = 0;
        }
    }
}

control EntitiesCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EntitiesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.body);
    }
}

V1Switch(EntitiesParser(), EntitiesVerify(), EntitiesIngress(), EntitiesEgress(), EntitiesCompute(), EntitiesDeparser()) main;
