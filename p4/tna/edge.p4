/*
 * Between Tofino's intrinsic metadata and ours. The parser copies the port in; the rest is here. A tick is 1.024 us: bits 41 to 10
 * of the 48-bit nanosecond clock, taken through a hash unit, since no action can shift a field across containers.
 */
#ifndef RINGPATH_EDGE
#define RINGPATH_EDGE

#define EDGE_CLOCK(clock)        Hash<bit<32>>(HashAlgorithm_t.IDENTITY) clock;
#define EDGE_TICKS(clock, parsed) clock.get({ parsed.global_tstamp[41:10] })

/* Queue depth is counted in cells of 80 bytes; 16 cells, 1280 bytes, stand for a packet. */
#define EDGE_DEPTH(depth)        Hash<bit<16>>(HashAlgorithm_t.IDENTITY) depth;
#define EDGE_QUEUE_DEPTH(depth, standard) depth.get({ 1w0 ++ standard.enq_qdepth[18:4] })

/* One flow hash for all tiers would send every flow of a group the same way at the next tier: crc is linear, a seed does not
 * help. Each routed hop lowers the TTL, so its two low bits choose the polynomial that this tier uses. */
#define FLOW_FIELDS(hdr, meta) \
    { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.src_port, meta.dst_port, meta.dst_qp }

control TierHash(inout headers_t hdr, inout metadata_t meta) {
    CRCPolynomial<bit<16>>(16w0x8005, true, false, false, 16w0x0000, 16w0x0000) polynomial_0;
    CRCPolynomial<bit<16>>(16w0x1021, false, false, false, 16w0xffff, 16w0x0000) polynomial_1;
    CRCPolynomial<bit<16>>(16w0x3d65, true, false, false, 16w0x0000, 16w0xffff) polynomial_2;
    CRCPolynomial<bit<16>>(16w0x8bb7, false, false, false, 16w0x0000, 16w0x0000) polynomial_3;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial_0) tier_0;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial_1) tier_1;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial_2) tier_2;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial_3) tier_3;

    apply {
        if (hdr.ipv4.ttl[1:0] == 0) {
            meta.path_hash = tier_0.get(FLOW_FIELDS(hdr, meta));
        } else if (hdr.ipv4.ttl[1:0] == 1) {
            meta.path_hash = tier_1.get(FLOW_FIELDS(hdr, meta));
        } else if (hdr.ipv4.ttl[1:0] == 2) {
            meta.path_hash = tier_2.get(FLOW_FIELDS(hdr, meta));
        } else {
            meta.path_hash = tier_3.get(FLOW_FIELDS(hdr, meta));
        }
    }
}

/* RFC 1624 for a TTL that falls by one: the checksum rises by 0x0100, with end-around carry and no 0xffff. */
control RoutedChecksum(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action raise(bit<16> amount) {
        meta.routed_checksum = hdr.ipv4.checksum + amount;
    }

    apply {
        if (hdr.ipv4.checksum[15:8] == 0xff || hdr.ipv4.checksum == 0xfeff) {
            raise(0x0101);
        } else {
            raise(0x0100);
        }
    }
}

/* The decision, after ingress. A reason is set for every drop and for the label miss, which alone goes on; it is also the one that
 * can come before another, and then stays. Traffic without a tag never gets the control queue. */
#define EDGE_INGRESS_OUT(hdr, meta, deparser, manager, drops) \
    if (meta.reason != REASON_NONE) { drops.count(meta.reason); } \
    else if (meta.late_reason != REASON_NONE) { drops.count(meta.late_reason); } \
    if (meta.dropped == 1) { deparser.drop_ctl = 1; } \
    manager.ucast_egress_port = meta.egress_port; \
    if (hdr.ipv4.isValid() && !hdr.tag.isValid() && meta.queue == CONTROL_QUEUE) { manager.qid = (QueueId_t)BEST_EFFORT_QUEUE; } \
    else { manager.qid = (QueueId_t)meta.queue; }

#endif
