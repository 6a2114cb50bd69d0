/*
 * Between v1model's intrinsic metadata and ours. The parser does the copying in at ingress; these macros do the rest, as macros
 * so that they melt into the neighbouring statements instead of becoming tables of their own.
 */
#ifndef RINGPATH_EDGE
#define RINGPATH_EDGE

/* The decision, after ingress. `reason` is set for every drop and for the label miss, which alone goes on. */
#define EDGE_INGRESS_OUT(meta, standard, drops) \
    standard.egress_spec = (PortId_t)meta.egress_port; \
    standard.priority = meta.queue; \
    if (meta.reason != REASON_NONE) { \
        drops.count(meta.reason); \
        if (meta.dropped == 1) { mark_to_drop(standard); } \
    }

/* One hop's part of the path's queueing: microseconds, and packets found on arrival. */
#define EDGE_QUEUE_DELAY(standard) standard.deq_timedelta
#define EDGE_QUEUE_DEPTH(standard) (standard.enq_qdepth > 0xffff ? 16w0xffff : (bit<16>)standard.enq_qdepth)
#define EDGE_EGRESS_TIME(standard) (bit<32>)standard.egress_global_timestamp

#endif
