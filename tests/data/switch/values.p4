// What v1model computes: hashes, numbers wider than 64 bits, signed and saturating arithmetic, slices, header unions and
// stacks of them, random numbers, messages. `op` chooses, results go to `r` and `h`. values.stf has what BMv2 answers.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8> op;
    bit<8> arg;
    bit<32> x;
    bit<128> a;
    bit<128> b;
    bit<128> r;
    bit<64> h;
}
header kind_t { bit<8> kind; }
header short_t { bit<8> value; }
header long_t { bit<24> value; }
header_union number_t { short_t short; long_t long; }
struct headers_t { command_t command; kind_t[3] kinds; number_t[3] numbers; number_t copy; }
struct metadata_t { bit<128> wide; int<128> wide_signed; int<16> small; }

parser Parse(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(h.command);
        transition select(h.command.op) { 40 &&& 0xf8: numbers; default: accept; }
    }
    state numbers {
        packet.extract(h.kinds.next);
        transition select(h.kinds.last.kind) { 1: short; 2: long; 3: peek; default: accept; }
    }
    state short { packet.extract(h.numbers.next.short); transition numbers; }
    state long { packet.extract(h.numbers.next.long); transition numbers; }
    state peek {
        bit<24> next = packet.lookahead<bit<24>>();
        h.command.x = (bit<32>) next;
        packet.advance(16);
        transition accept;
    }
}
control Verify(inout headers_t h, inout metadata_t meta) { apply {} }
control Compute(inout headers_t h, inout metadata_t meta) { apply {} }

control Hashes(inout headers_t h) {
    apply {
        bit<32> wide = 0;
        bit<16> narrow = 0;
        bit<64> all = 0;
        if (h.command.op == 1) {
            hash(wide, HashAlgorithm.crc32, 32w0, { h.command.a, h.command.x }, 64w0x100000000);
            h.command.h = (bit<64>) wide;
        } else if (h.command.op == 2) {
            hash(narrow, HashAlgorithm.crc16, 16w0, { h.command.a, h.command.x }, 32w0x10000);
            h.command.h = (bit<64>) narrow;
        } else if (h.command.op == 3) {
            hash(narrow, HashAlgorithm.csum16, 16w0, { h.command.a, h.command.x }, 32w0x10000);
            h.command.h = (bit<64>) narrow;
        } else if (h.command.op == 4) {
            hash(narrow, HashAlgorithm.xor16, 16w0, { h.command.a, h.command.x }, 32w0x10000);
            h.command.h = (bit<64>) narrow;
        } else if (h.command.op == 5) {
            hash(all, HashAlgorithm.identity, 64w0, { h.command.x, h.command.arg }, 64w0xffffffffffffffff);
            h.command.h = all;
        } else if (h.command.op == 6) {
            hash(narrow, HashAlgorithm.crc16_custom, 16w0, { h.command.a, h.command.x }, 32w0x10000);
            h.command.h = (bit<64>) narrow;
        } else if (h.command.op == 7) {
            hash(wide, HashAlgorithm.crc32_custom, 32w0, { h.command.a, h.command.x }, 64w0x100000000);
            h.command.h = (bit<64>) wide;
        } else if (h.command.op == 8) {
            hash(wide, HashAlgorithm.crc32, 32w100, { h.command.a, 3w5, h.command.arg[4:0] }, 32w10);
            h.command.h = (bit<64>) wide;
        }
    }
}

control Numbers(inout headers_t h, inout metadata_t meta) {
    action leave() { h.command.r = 7; exit; }
    apply {
        if (h.command.op == 10) { h.command.r = h.command.a + h.command.b; }
        else if (h.command.op == 11) { h.command.r = h.command.a - h.command.b; }
        else if (h.command.op == 12) { h.command.r = h.command.a * h.command.b; }
        else if (h.command.op == 13) { h.command.r = h.command.a << h.command.arg; }
        else if (h.command.op == 14) { h.command.r = h.command.a >> h.command.arg; }
        else if (h.command.op == 15) { h.command.r = (h.command.a & h.command.b) ^ (h.command.a | ~h.command.b); }
        else if (h.command.op == 16) { h.command.r = h.command.a |+| h.command.b; }
        else if (h.command.op == 17) { h.command.r = h.command.a |-| h.command.b; }
        else if (h.command.op == 18) { h.command.r = h.command.a[95:0] ++ h.command.x; }
        else if (h.command.op == 19) { h.command.r[99:36] = h.command.a[127:64]; }
        else if (h.command.op == 20) {
            if (h.command.a < h.command.b) { h.command.r = 1; } else if (h.command.a == h.command.b) { h.command.r = 2; } else { h.command.r = 3; }
        } else if (h.command.op == 21) {
            meta.wide_signed = (int<128>) h.command.a;
            meta.wide_signed = meta.wide_signed >> h.command.arg;
            h.command.r = (bit<128>) meta.wide_signed;
        } else if (h.command.op == 22) {
            meta.small = (int<16>) h.command.x[15:0];
            meta.small = meta.small |+| (int<16>) h.command.x[31:16];
            h.command.r = (bit<128>) (bit<16>) meta.small;
        } else if (h.command.op == 23) {
            meta.small = -(int<16>) h.command.x[15:0];
            if (meta.small < (int<16>) h.command.x[31:16]) { h.command.r = 1; }
            h.command.h = (bit<64>) (bit<16>) (meta.small >> 3);
        } else if (h.command.op == 24) { h.command.r = (bit<128>) ((h.command.x + 32w1) >> 1); }
        else if (h.command.op == 25) { leave(); h.command.r = 8; }
        else if (h.command.op == 26) { log_msg("x is {} and arg is {}", { h.command.x, h.command.arg }); h.command.r = 1; }
        else if (h.command.op == 27) { assert(h.command.arg == 1); assume(h.command.arg < 2); h.command.r = 1; }
        else if (h.command.op == 28) {
            bit<32> draw;
            random(draw, (bit<32>) h.command.arg, (bit<32>) h.command.arg);
            h.command.h = (bit<64>) draw;
        } else if (h.command.op == 29) {
            bit<32> draw;
            random(draw, 10, 20);
            if (draw >= 10 && draw <= 20) { h.command.r = 1; }
        } else if (h.command.op == 30) {
            bit<128> sum = 0;
            for (bit<8> i = 0; i < h.command.arg; i = i + 1) { sum = sum + h.command.a + (bit<128>) i; }
            h.command.r = sum;
        }
        else if (h.command.op == 31) { h.command.r = (bit<128>) (h.command.x * 32w7 - 32w9); }
        else if (h.command.op == 32) { h.command.r = h.command.arg == 0 ? h.command.a : h.command.b; }
    }
}

control Unions(inout headers_t h) {
    apply {
        if (h.command.op == 41) { h.copy = h.numbers[0]; h.numbers[0].short.setValid(); h.numbers[0].short.value = 0xee; }
        else if (h.command.op == 42) { h.copy.long.setValid(); h.copy.long.value = 0x010203; h.copy.short.setValid(); h.copy.short.value = 4; }
        else if (h.command.op == 43) { h.copy.long.setValid(); if (h.copy.isValid()) { h.command.r = 1; } h.copy.long.setInvalid(); }
        else if (h.command.op == 44) { h.kinds.pop_front(1); }
        else if (h.command.op == 45) { h.kinds.push_front(1); h.kinds[0].setValid(); h.kinds[0].kind = 0x99; }
        else if (h.command.op == 46 && h.kinds[0] == h.kinds[1]) { h.command.r = 5; }
    }
}

control Enter(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    Hashes() hashes;
    Numbers() numbers;
    Unions() unions;
    apply {
        std.egress_spec = 2;
        hashes.apply(h);
        unions.apply(h);
        numbers.apply(h, meta);
    }
}
control Leave(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control Deparse(packet_out packet, in headers_t h) {
    apply { packet.emit(h.command); packet.emit(h.kinds); packet.emit(h.numbers); packet.emit(h.copy); }
}
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
