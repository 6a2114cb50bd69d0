/*
 * The externs that differ between targets, as short macros with the same names and arguments everywhere, and the numbers that
 * belong to the target. Stateful memory is in source_state.p4 and sink_state.p4.
 */
#ifndef RINGPATH_EXTERNS
#define RINGPATH_EXTERNS

/* Differs between boards: 192 is the Ethernet of the CPU on a switch of two pipes. Give another with -D. */
#ifndef RINGPATH_CPU_PORT
#define RINGPATH_CPU_PORT 192
#endif
const bit<9> CPU_PORT  = RINGPATH_CPU_PORT;
const bit<9> PORT_NONE = 511;

#define DIRECT_COUNTER(counter)  DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) counter;
#define DIRECT_COUNT(counter)    counter.count();
#define TABLE_COUNTER(counter)   counters = counter;

/* The key is already a hash. P4Runtime knows the profile; the selector and its hash are no objects of their own there. */
#define ECMP_SELECTOR(selector)  ActionProfile(ECMP_MEMBERS) selector; \
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) selector##_hash; \
    ActionSelector(selector, selector##_hash, SelectorMode_t.FAIR, ECMP_GROUP, ECMP_GROUPS) selector##_selector;
#define TABLE_SELECTOR(selector) implementation = selector##_selector;

/* Found at the start of the ingress, where there is time (TierHash, edge.p4). */
#define FLOW_HASH(meta, ipv4)
#define DECREASE_TTL(meta, ipv4) ipv4.ttl = ipv4.ttl - 1; ipv4.checksum = meta.routed_checksum;

#define IF_ROUTE_MISSES(route, meta) if (!route.apply().hit)

/* Actions know no conditions here: the end of the ingress looks after both (EDGE_INGRESS_OUT). */
#define SET_TRAFFIC_QUEUE(meta, wanted) meta.queue = wanted;
#define FIRST_REASON(meta, why)  meta.late_reason = why;

/* Subtracted where a table's value meets the clock: a stage later, one more would be needed. Below zero, with the time of the last
 * packet added, when the flow has been silent for longer than the gap. */
#define KEEP_FLIP_GAP(meta, gap) meta.flip_wait = gap - meta.now; meta.tagged = 1;

#define TARGET_METADATA \
    reason_t late_reason;     /* counts where no other reason does */ \
    bit<16>  routed_checksum; /* of the IPv4 header with the TTL one lower */ \
    bit<1>   tagged;          /* this switch is the packet's source leaf */ \
    bit<2>   source_read;     /* READ_*: what a readout request wants of the source's cells */ \
    bit<32>  flip_wait; \
    bit<1>   tracked; \
    bit<8>   flip_differs; \
    bit<2>   sink_work;       /* WORK_*: what the sink state has to do */ \
    bit<16>  slot; \
    bit<16>  copy;            /* of the interval: 2 * slot + (interval & 1) */ \
    bit<16>  depth;           /* this hop's; then how much deeper it is than what the tag has met */ \
    bit<32>  length; \
    bit<32>  advance;         /* the interval to go to; 0 = as it is */ \
    bit<32>  running; \
    bit<8>   fresh;           /* not 0: first packet of another epoch */ \
    bit<8>   renew;           /* not 0: first packet of the interval, or fresh */ \
    bit<32>  behind;          /* expected minus own sequence number */ \
    bit<32>  silence;         /* of the source, negative */ \
    bit<32>  idle_left;       /* idle_gap minus silence */ \
    bit<32>  active; \
    bit<32>  path_delay; \
    bit<32>  path_depth;

const bit<2> READ_NOTHING = 0;
const bit<2> READ_CELLS   = 1;
const bit<2> READ_ZEROS   = 2;      /* the slot does not exist */

const bit<2> WORK_NONE    = 0;
const bit<2> WORK_DELIVER = 1;
const bit<2> WORK_READ    = 2;
const bit<2> WORK_ZEROS   = 3;

#endif
