/*
 * Headers on the wire and towards the controller, and the metadata that controls share; a target adds what only it needs
 * (TARGET_METADATA, externs.p4). Byte layouts are a contract: p4/README.md.
 */
#ifndef RINGPATH_HEADERS
#define RINGPATH_HEADERS

@controller_header("packet_out")
header packet_out_t {
    @id(1) bit<16> egress_port;
}

@controller_header("packet_in")
header packet_in_t {
    @id(1) bit<16> ingress_port;
    @id(2) bit<8>  reason;
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

/* 24 bytes. The queue sits in the first byte so that a kernel filter on a veth can read it. */
header tag_t {
    bit<4>  version;
    bit<3>  queue;
    bit<1>  sink;        /* set within the sink leaf, never on a wire */
    bit<8>  hops;
    bit<16> label;
    bit<16> slot;        /* index at the sink leaf; 0 = not tracked */
    bit<8>  epoch;
    bit<8>  reserved;
    bit<32> seq;
    bit<32> time;        /* source leaf's clock, ticks */
    bit<32> delay;       /* sum of queue delays, ticks */
    bit<16> depth;       /* largest queue depth met, packets */
    bit<16> next_type;
}

/* The first byte as a whole: only 0x45 (version 4, no options) is looked into. */
header ipv4_t {
    bit<8>  version_ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<16> fragment;    /* reserved, DF, MF, 13 bits of offset */
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

/* Only requests for IPv4 over Ethernet get this far. */
header arp_t {
    bit<48> kind;        /* hardware and protocol type, lengths */
    bit<16> oper;
    bit<48> sender_mac;
    bit<32> sender_addr;
    bit<48> target_mac;
    bit<32> target_addr;
}

header message_t {
    bit<16> magic;
    bit<8>  version;
    bit<8>  op;
}

header readout_t {
    bit<32> request_id;
    bit<16> slot;
    bit<16> reserved;
    bit<32> interval;
}

header probe_t {
    bit<32> switch_id;
    bit<16> port;
    bit<16> reserved;
    bit<32> incarnation;
    bit<64> counter;
    bit<64> mac;
    bit<32> sent_incarnation;
}

/* Which life of which switch answered, and when. */
header stamp_t {
    bit<32> time;
    bit<32> incarnation;
}

header slot_cells_t {
    bit<32> interval;
    bit<32> next_seq;
    bit<32> packets;
    bit<32> bytes;
    bit<32> lost;
    bit<32> reordered;
    bit<32> interval_number;
    bit<32> interval_packets;
    bit<32> interval_bytes;
    bit<32> interval_active;
    bit<32> interval_delay_sum;
    bit<32> interval_delay_max;
    bit<32> interval_depth_max;
    bit<32> interval_first;
    bit<32> interval_last;
    bit<8>  sink_epoch;
    bit<24> reserved;
}

header source_cells_t {
    bit<32> source_seq;
    bit<32> source_seen;
    bit<8>  source_flip;
    bit<24> reserved;
}

struct headers_t {
    packet_out_t   packet_out;
    packet_in_t    packet_in;
    ethernet_t     ethernet;
    tag_t          tag;
    message_t      message;
    readout_t      readout;
    probe_t        probe;
    stamp_t        stamp;
    slot_cells_t   slot_cells;
    source_cells_t source_cells;
    arp_t          arp;
    ipv4_t         ipv4;
}

struct metadata_t {
    /* set by the parser and the edge */
    bit<9>   ingress_port;
    bit<32>  now;            /* ticks of this switch */
    bit<16>  src_port;       /* 0 where the packet has none */
    bit<16>  dst_port;
    bit<24>  dst_qp;

    /* the decision */
    bit<9>   egress_port;    /* PORT_NONE until somebody chooses */
    bit<3>   queue;
    bit<1>   dropped;        /* final: later stages leave the packet alone */
    reason_t reason;

    bit<2>   role;
    bit<32>  flow_hash;
    bit<16>  path_hash;

    /* from `classify` to the source state */
    bit<16>  src_slot;
    bit<8>   flip;
    bit<16>  old_label;
    bit<3>   old_queue;
    bit<1>   force;

    /* from `switch_config` */
    bit<32>  incarnation;
    bit<32>  idle_gap;

    TARGET_METADATA
}

#endif
