/*
 * Flow -> label, queue and slots. A hit pushes the tag; what needs memory (sequence number, orderly flip) is the source
 * state's part, which finds the rest of the entry in the metadata.
 */
control Classify(inout headers_t hdr, inout metadata_t meta) {
    DIRECT_COUNTER(classify_counter)

    @id(ID_TAG)
    action tag(@id(1) bit<16> label, @id(2) bit<3> queue, @id(3) bit<16> src_slot, @id(4) bit<16> slot,
               @id(5) bit<8> epoch, @id(6) bit<8> flip, @id(7) bit<16> old_label, @id(8) bit<3> old_queue,
               @id(9) bit<1> force, @id(10) bit<32> flip_gap) {
        DIRECT_COUNT(classify_counter)
        hdr.tag.setValid();
        hdr.tag.version = TAG_VERSION;
        hdr.tag.queue = queue;
        hdr.tag.sink = 0;
        hdr.tag.hops = 0;
        hdr.tag.label = label;
        hdr.tag.slot = slot;
        hdr.tag.epoch = epoch;
        hdr.tag.reserved = 0;
        hdr.tag.seq = 0;
        hdr.tag.time = meta.now;
        hdr.tag.delay = 0;
        hdr.tag.depth = 0;
        hdr.tag.next_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = ETHERTYPE_TAG;
        meta.src_slot = src_slot;
        meta.flip = flip;
        meta.old_label = old_label;
        meta.old_queue = old_queue;
        meta.force = force;
        KEEP_FLIP_GAP(meta, flip_gap)
    }

    @id(ID_CLASSIFY)
    table classify {
        key = {
            hdr.ipv4.src_addr : ternary @id(1) @name("src_addr");
            hdr.ipv4.dst_addr : ternary @id(2) @name("dst_addr");
            hdr.ipv4.protocol : ternary @id(3) @name("protocol");
            meta.src_port     : ternary @id(4) @name("src_port");
            meta.dst_port     : ternary @id(5) @name("dst_port");
            meta.dst_qp       : ternary @id(6) @name("dst_qp");
        }
        actions = { tag; @defaultonly NoAction; }
        const default_action = NoAction;
        size = CLASSIFY_SIZE;
        TABLE_COUNTER(classify_counter)
    }

    apply {
        classify.apply();
    }
}
