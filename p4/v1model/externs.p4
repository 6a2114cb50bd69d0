/*
 * The externs that differ between targets, as one-line macros with the same names and arguments everywhere, and the numbers that
 * belong to the target. Stateful memory is in source_state.p4 and sink_state.p4.
 */
#ifndef RINGPATH_EXTERNS
#define RINGPATH_EXTERNS

const bit<9> CPU_PORT  = 510;
const bit<9> PORT_NONE = 511;

/* A direct counter counts by itself on v1model; other targets count in each action. */
#define DIRECT_COUNTER(counter)  @name(#counter) direct_counter(CounterType.packets_and_bytes) counter;
#define DIRECT_COUNT(counter)
#define TABLE_COUNTER(counter)   counters = counter;

/* The key is already a hash; crc16 keeps its 16 bits apart and is what every BMv2 knows. */
#define ECMP_SELECTOR(selector)  @id(ID_ECMP) @max_group_size(ECMP_GROUP) @name(#selector) \
    action_selector(HashAlgorithm.crc16, ECMP_MEMBERS, 16) selector;
#define TABLE_SELECTOR(selector) implementation = selector;

/* One flow hash for all tiers would send every flow of a group the same way at the next tier: crc is linear, a seed does not
 * help. Each routed hop lowers the TTL, so its two low bits choose which bits of the hash this tier uses. */
#define FLOW_HASH(meta, ipv4)    hash(meta.flow_hash, HashAlgorithm.crc32, 32w0, \
        { ipv4.src_addr, ipv4.dst_addr, ipv4.protocol, meta.src_port, meta.dst_port, meta.dst_qp }, 33w0x100000000); \
    meta.path_hash = (bit<16>)(meta.flow_hash >> (ipv4.ttl[1:0] ++ 2w0));

/* A group may be empty, and BMv2 has no default action here: the port tells. */
#define IF_ROUTE_MISSES(route, meta) route.apply(); if (meta.egress_port == PORT_NONE)

/* RFC 1624 for a TTL that falls by one: the checksum rises by 0x0100, with end-around carry and no 0xffff. */
#define DECREASE_TTL(meta, ipv4) ipv4.ttl = ipv4.ttl - 1; \
    bit<32> checksum_sum = (bit<32>)ipv4.checksum + 0x0100; \
    ipv4.checksum = (bit<16>)(checksum_sum >= 0xffff ? checksum_sum + 1 : checksum_sum);

/* Conditions within actions, which not every target has. */
#define SET_TRAFFIC_QUEUE(meta, wanted) \
    if (wanted == CONTROL_QUEUE) { meta.queue = BEST_EFFORT_QUEUE; } else { meta.queue = wanted; }
#define FIRST_REASON(meta, why)  if (meta.reason == REASON_NONE) { meta.reason = why; }

/* What the source state needs of an entry besides its plain values. */
#define KEEP_FLIP_GAP(meta, gap) meta.flip_gap = gap;

/* Metadata that only this target needs. */
#define TARGET_METADATA          bit<32> flip_gap;

#endif
