/*
 * A source leaf's memory, one set of cells per `src_slot`: sequence number, last packet, flip in force. The registers belong to
 * the ingress (SOURCE_REGISTERS), since two controls use them. Each read-modify-write stands in one action, because that is what
 * BMv2 makes atomic.
 */
#define SOURCE_REGISTERS \
    register<bit<32>, bit<16>>(SLOTS) source_seq; \
    register<bit<32>, bit<16>>(SLOTS) source_seen; \
    register<bit<8>, bit<16>>(SLOTS) source_flip;

/* For a packet that has just been tagged. */
control SourceState(inout headers_t hdr, inout metadata_t meta,
                    register<bit<32>, bit<16>> source_seq, register<bit<32>, bit<16>> source_seen,
                    register<bit<8>, bit<16>> source_flip) {
    counter<bit<16>>(SLOTS, CounterType.packets) forced_flips;

    /* Number the packet; while the wanted flip is not in force, keep to the old path until the flow has paused. */
    @hidden
    action number_and_flip() {
        bit<32> seen;
        bit<8> in_force;
        source_seq.read(hdr.tag.seq, meta.src_slot);
        source_seq.write(meta.src_slot, hdr.tag.seq + 1);
        source_seen.read(seen, meta.src_slot);
        source_seen.write(meta.src_slot, meta.now);
        source_flip.read(in_force, meta.src_slot);
        if (in_force != meta.flip) {
            if (meta.now - seen >= meta.flip_gap) {
                source_flip.write(meta.src_slot, meta.flip);
            } else if (meta.force == 1) {
                source_flip.write(meta.src_slot, meta.flip);
                forced_flips.count(meta.src_slot);
            } else {
                hdr.tag.label = meta.old_label;
                hdr.tag.queue = meta.old_queue;
            }
        }
    }

    @hidden
    action untracked() {
        hdr.tag.slot = 0;
    }

    apply {
        if (meta.src_slot != 0 && meta.src_slot < SLOTS) {
            number_and_flip();
        } else {
            untracked();
        }
    }
}

/* For a readout request with op `source`. */
control SourceReadout(inout headers_t hdr, inout metadata_t meta,
                      register<bit<32>, bit<16>> source_seq, register<bit<32>, bit<16>> source_seen,
                      register<bit<8>, bit<16>> source_flip) {
    @hidden
    action zeros() {
        hdr.source_cells.setValid();
        hdr.source_cells.source_seq = 0;
        hdr.source_cells.source_seen = 0;
        hdr.source_cells.source_flip = 0;
        hdr.source_cells.reserved = 0;
    }

    @hidden
    action cells() {
        source_seq.read(hdr.source_cells.source_seq, hdr.readout.slot);
        source_seen.read(hdr.source_cells.source_seen, hdr.readout.slot);
        source_flip.read(hdr.source_cells.source_flip, hdr.readout.slot);
    }

    apply {
        zeros();
        if (hdr.readout.slot < SLOTS) {
            cells();
        }
    }
}
