/*
 * A source leaf's memory, one set of cells per `src_slot`: sequence number, last packet, flip in force. A register is reached once
 * a packet and in one stage, so what v1model does in one action is a chain here:
 *
 *   number, last packet -> flip_wait (below 0: silent for longer than the gap) -> flip in force -> old path, or forced flip counted
 *
 * A readout takes the same road with the other action of each register. Stateful memory can put out a sum of an input and the
 * cell as it was; that is how differences cost no stage.
 */
control SourceState(inout headers_t hdr, inout metadata_t meta) {
    @name(".LeafIngress.source_seq")
    Register<bit<32>, bit<16>>(SLOTS, 0) source_seq;
    @name(".LeafIngress.source_seen")
    Register<bit<32>, bit<16>>(SLOTS, 0) source_seen;
    @name(".LeafIngress.source_flip")
    Register<bit<8>, bit<16>>(SLOTS, 0) source_flip;
    Counter<bit<32>, bit<16>>(SLOTS, CounterType_t.PACKETS) forced_flips;

    RegisterAction<bit<32>, bit<16>, bit<32>>(source_seq) number = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
            cell = cell + 1;
        }
    };
    RegisterAction<bit<32>, bit<16>, bit<32>>(source_seq) read_seq = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(source_seen) see = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell + meta.flip_wait;
            cell = meta.now;
        }
    };
    RegisterAction<bit<32>, bit<16>, bit<32>>(source_seen) read_seen = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };

    RegisterAction<bit<8>, bit<16>, bit<8>>(source_flip) flip = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell - meta.flip;
            cell = meta.flip;
        }
    };
    /* For a readout `meta.flip` is 0 and the result is the cell. */
    RegisterAction<bit<8>, bit<16>, bit<8>>(source_flip) look = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell - meta.flip;
        }
    };

    @hidden
    action untracked() {
        hdr.tag.slot = 0;
    }

    @hidden
    action keep_old_path() {
        hdr.tag.label = meta.old_label;
        hdr.tag.queue = meta.old_queue;
    }

    @hidden
    action count_forced() {
        forced_flips.count(meta.src_slot);
    }

    @hidden
    action answer() {
        hdr.source_cells.setValid();
        hdr.source_cells.reserved = 0;
    }

    @hidden
    action zeros() {
        hdr.source_cells.source_seq = 0;
        hdr.source_cells.source_seen = 0;
        hdr.source_cells.source_flip = 0;
    }

    @hidden
    action answer_flip() {
        hdr.source_cells.source_flip = meta.flip_differs;
    }

    apply {
        if (meta.tagged == 1) {
            if (meta.src_slot == 0 || meta.src_slot & NO_SUCH_SLOT != 0) {
                untracked();
            } else {
                meta.tracked = 1;
                hdr.tag.seq = number.execute(meta.src_slot);
                meta.flip_wait = see.execute(meta.src_slot);
            }
        } else if (meta.source_read == READ_CELLS) {
            hdr.source_cells.source_seq = read_seq.execute(meta.src_slot);
            hdr.source_cells.source_seen = read_seen.execute(meta.src_slot);
        } else if (meta.source_read == READ_ZEROS) {
            zeros();
        }
        if (meta.source_read != READ_NOTHING) {
            answer();
        }

        if (meta.tracked == 1 && (meta.flip_wait[31:31] == 1 || meta.force == 1)) {
            meta.flip_differs = flip.execute(meta.src_slot);
        } else if (meta.tracked == 1 || meta.source_read == READ_CELLS) {
            meta.flip_differs = look.execute(meta.src_slot);
        }

        if (meta.source_read == READ_CELLS) {
            answer_flip();
        } else if (meta.tracked == 1 && meta.flip_differs != 0 && meta.flip_wait[31:31] == 0) {
            if (meta.force == 1) {
                count_forced();
            } else {
                keep_old_path();
            }
        }
    }
}
