// One program that uses every service of the switch, driven by a command header:
//   ethernet (type 0x88B6) | op (8) | arg (8) | index (16) | key (32) | result (32) | payload
// `op` chooses what ingress and egress do; results go to `result`, so that a test sees them in the bytes that leave.
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_COMMAND = 0x88B6;
const bit<9> CPU = 510;

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header command_t { bit<8> op; bit<8> arg; bit<16> index; bit<32> key; bit<32> result; }
@controller_header("packet_in") header packet_in_t { bit<9> ingress_port; bit<7> reason; }
@controller_header("packet_out") header packet_out_t { bit<9> egress_port; bit<7> pad; }

struct headers_t { packet_out_t packet_out; packet_in_t packet_in; ethernet_t ethernet; command_t command; }
struct metadata_t {
    @field_list(1) bit<8> rounds;
    @field_list(1) bit<32> kept;
    bit<32> color;
    bit<1> special;
}
struct sample_t { bit<48> src; bit<9> port; }

parser Parse(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) special_types;
    state start {
        transition select(std.ingress_port) { CPU: from_cpu; default: ethernet; }
    }
    state from_cpu { packet.extract(h.packet_out); transition ethernet; }
    state ethernet {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) {
            TYPE_COMMAND: command;
            special_types: special;
            default: accept;
        }
    }
    state special { meta.special = 1; transition accept; }
    state command { packet.extract(h.command); transition accept; }
}
control Verify(inout headers_t h, inout metadata_t meta) { apply {} }
control Compute(inout headers_t h, inout metadata_t meta) { apply {} }

control Enter(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    counter(8, CounterType.packets_and_bytes) seen;
    meter(8, MeterType.packets) police;
    register<bit<32>>(16) cells;
    register<bit<128>>(4) wide;
    direct_counter(CounterType.packets_and_bytes) exact_counter;
    direct_meter<bit<32>>(MeterType.bytes) exact_meter;

    action result(bit<32> value) { h.command.result = value; }
    action result_counted(bit<32> value) { h.command.result = value; exact_counter.count(); exact_meter.read(meta.color); }
    action missed() { h.command.result = 0xffffffff; }
    action send(bit<9> port) { std.egress_spec = port; }

    table exact_table {
        key = { h.command.key : exact @name("key"); }
        actions = { result_counted; missed; }
        counters = exact_counter;
        meters = exact_meter;
        support_timeout = true;
        size = 16;
        default_action = missed;
    }
    table lpm_table {
        key = { h.command.key : lpm @name("key"); }
        actions = { result; missed; }
        default_action = missed;
    }
    table ternary_table {
        key = { h.command.key : ternary @name("key"); h.command.arg : optional @name("arg"); }
        actions = { result; missed; }
        default_action = missed;
    }
    table range_table {
        key = { h.command.key : range @name("key"); }
        actions = { result; missed; }
        default_action = missed;
    }
    table const_table {
        key = { h.command.key : ternary @name("key"); }
        actions = { result; missed; }
        const default_action = missed;
        const entries = {
            7 : result(70);
            0 &&& 1 : result(71);
            _ : result(72);
        }
    }
    table selected_fields {
        key = { h.command.arg : exact @name("arg"); h.command.key : selector; }
        actions = { send; NoAction; }
        @name("choices") implementation = action_selector(HashAlgorithm.crc16, 64, 14);
    }
    table plain_profile {
        key = { h.command.arg : exact @name("arg"); }
        actions = { result; NoAction; }
        @name("members") implementation = action_profile(4);
    }
    table deliver {
        key = { h.ethernet.dst : exact @name("dst"); }
        actions = { send; NoAction; }
        default_action = NoAction;
    }

    apply {
        deliver.apply();
        if (h.packet_out.isValid()) {
            std.egress_spec = h.packet_out.egress_port;
            h.packet_out.setInvalid();
        } else if (!h.command.isValid()) {
            if (meta.special == 1) { std.egress_spec = 9; }
        } else if (h.command.op == 1) { exact_table.apply(); }
        else if (h.command.op == 2) { lpm_table.apply(); }
        else if (h.command.op == 3) { ternary_table.apply(); }
        else if (h.command.op == 4) { range_table.apply(); }
        else if (h.command.op == 5) { const_table.apply(); }
        else if (h.command.op == 6) { selected_fields.apply(); }
        else if (h.command.op == 7) { plain_profile.apply(); }
        else if (h.command.op == 8) { seen.count((bit<32>) h.command.index); }
        else if (h.command.op == 9) { police.execute_meter((bit<32>) h.command.index, h.command.result); }
        else if (h.command.op == 10) {
            cells.read(h.command.result, (bit<32>) h.command.index);
            cells.write((bit<32>) h.command.index, h.command.key);
        } else if (h.command.op == 11) {
            bit<128> value;
            wide.read(value, (bit<32>) h.command.index);
            h.command.result = value[127:96];
            wide.write((bit<32>) h.command.index, h.command.key ++ (bit<96>) 5);
        } else if (h.command.op == 12) { std.priority = (bit<3>) h.command.arg; }
        else if (h.command.op == 13) { std.mcast_grp = h.command.index; }
        else if (h.command.op == 14) {
            meta.kept = h.command.key;
            clone_preserving_field_list(CloneType.I2E, (bit<32>) h.command.index, 1);
            h.command.result = 1;
        } else if (h.command.op == 16) {
            h.command.result = (bit<32>) meta.rounds;
            if (meta.rounds < h.command.arg) {
                meta.rounds = meta.rounds + 1;
                resubmit_preserving_field_list(1);
            }
        } else if (h.command.op == 18) {
            digest<sample_t>(1, { h.ethernet.src, std.ingress_port });
        } else if (h.command.op == 19) {
            h.packet_in.setValid();
            h.packet_in.ingress_port = std.ingress_port;
            h.packet_in.reason = (bit<7>) h.command.arg;
            std.egress_spec = CPU;
        } else if (h.command.op == 20) { mark_to_drop(std); }
    }
}

control Leave(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (h.command.isValid()) {
            if (std.instance_type == 1) { h.command.result = meta.kept; h.command.arg = 0xc1; }
            else if (std.instance_type == 2) { h.command.result = meta.kept; h.command.arg = 0xc2; }
            else if (std.instance_type == 5) { h.command.result = (bit<32>) std.egress_rid; }
            else if (h.command.op == 12) { h.command.result = (bit<32>) std.deq_timedelta; h.command.index = (bit<16>) std.enq_qdepth; }
            else if (h.command.op == 15) {
                meta.kept = h.command.key + 1;
                clone_preserving_field_list(CloneType.E2E, (bit<32>) h.command.index, 1);
            } else if (h.command.op == 17) {
                h.command.result = (bit<32>) meta.rounds;
                if (meta.rounds < h.command.arg) {
                    meta.rounds = meta.rounds + 1;
                    recirculate_preserving_field_list(1);
                }
            } else if (h.command.op == 22) { mark_to_drop(std); }
            else if (h.command.op == 23) { truncate((bit<32>) h.command.index); }
            else if (h.command.op == 24) { h.command.result = (bit<32>) std.egress_global_timestamp; }
            else if (h.command.op == 1) { h.command.index = (bit<16>) meta.color; }
        }
    }
}
control Deparse(packet_out packet, in headers_t h) {
    apply { packet.emit(h.packet_in); packet.emit(h.ethernet); packet.emit(h.command); }
}
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
