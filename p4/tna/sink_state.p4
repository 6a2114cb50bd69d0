/*
 * A sink leaf's memory, one set of cells per slot and two interval copies of it (index 2 * slot + low bit of the interval). What v1model does in
 * one action is a chain of stages here, each register in one of them:
 *
 *   epoch, expected number, source time, running interval -> totals, arrival -> interval number, lost -> the interval's cells
 *
 * Every number is modulo 2^32. The expected number follows each packet, late ones too: what a late packet seems to gain, the
 * next one gives back, so the sum of `lost` is exact and no comparison of sequence numbers is needed, which stateful memory
 * cannot do modulo 2^32. A run of late packets counts once in `reordered`.
 */
#define CELLS(cells)  Register<bit<32>, bit<16>>(SLOTS, 0) cells;
#define COPIES(cells) Register<bit<32>, bit<16>>(SLOT_COPIES, 0) cells;

#define READ_CELL(cells, read) \
    RegisterAction<bit<32>, bit<16>, bit<32>>(cells) read = { \
        void apply(inout bit<32> cell, out bit<32> result) { result = cell; } \
    };

/* Add, but start anew with the first packet of an epoch or interval. */
#define ADD(cells, add, first, amount) \
    RegisterAction<bit<32>, bit<16>, bit<32>>(cells) add = { \
        void apply(inout bit<32> cell) { \
            if (meta.first != 0) { cell = amount; } else { cell = cell + amount; } \
        } \
    };

control SinkState(inout headers_t hdr, inout metadata_t meta) {
    Register<bit<8>, bit<16>>(SLOTS, 0) sink_epoch;
    RegisterAction<bit<8>, bit<16>, bit<8>>(sink_epoch) enter_epoch = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell - hdr.tag.epoch;
            cell = hdr.tag.epoch;
        }
    };
    RegisterAction<bit<8>, bit<16>, bit<8>>(sink_epoch) read_epoch = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell;
        }
    };

    CELLS(next_seq)
    RegisterAction<bit<32>, bit<16>, bit<32>>(next_seq) expect_next = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell - hdr.tag.seq;
            cell = hdr.tag.seq + 1;
        }
    };
    READ_CELL(next_seq, read_next_seq)

    CELLS(last_sent)
    RegisterAction<bit<32>, bit<16>, bit<32>>(last_sent) since_sent = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell - hdr.tag.time;
            cell = hdr.tag.time;
        }
    };

    CELLS(last_arrival)
    RegisterAction<bit<32>, bit<16>, bit<32>>(last_arrival) since_arrival = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = meta.now - cell;
            cell = meta.now;
        }
    };

    /* Only forward: a duplicate of an old request must not turn the interval back. */
    Register<bit<32>, bit<16>>(1, 0) interval;
    RegisterAction<bit<32>, bit<16>, bit<32>>(interval) advance = {
        void apply(inout bit<32> cell, out bit<32> result) {
            if (meta.advance > cell) { cell = meta.advance; }
            result = cell;
        }
    };

    CELLS(packets)
    RegisterAction<bit<32>, bit<16>, bit<32>>(packets) add_packet = {
        void apply(inout bit<32> cell) {
            if (meta.fresh != 0) { cell = 1; } else { cell = cell + 1; }
        }
    };
    READ_CELL(packets, read_packets)

    CELLS(bytes)
    ADD(bytes, add_bytes, fresh, meta.length)
    READ_CELL(bytes, read_bytes)

    CELLS(lost)
    RegisterAction<bit<32>, bit<16>, bit<32>>(lost) add_lost = {
        void apply(inout bit<32> cell) {
            if (meta.fresh != 0) { cell = 0; } else { cell = cell - meta.behind; }
        }
    };
    READ_CELL(lost, read_lost)

    CELLS(reordered)
    RegisterAction<bit<32>, bit<16>, bit<32>>(reordered) add_reordered = {
        void apply(inout bit<32> cell) {
            if (meta.fresh != 0) { cell = 0; }
            else if ((int<32>)meta.behind > 0) { cell = cell + 1; }
        }
    };
    READ_CELL(reordered, read_reordered)

    COPIES(interval_number)
    RegisterAction<bit<32>, bit<16>, bit<8>>(interval_number) enter_interval = {
        void apply(inout bit<32> cell, out bit<8> result) {
            result = 0;
            if (cell != meta.running || meta.fresh != 0) { result = 1; }
            cell = meta.running;
        }
    };
    READ_CELL(interval_number, read_number)

    COPIES(interval_packets)
    RegisterAction<bit<32>, bit<16>, bit<32>>(interval_packets) add_interval_packet = {
        void apply(inout bit<32> cell) {
            if (meta.renew != 0) { cell = 1; } else { cell = cell + 1; }
        }
    };
    READ_CELL(interval_packets, read_interval_packets)

    COPIES(interval_bytes)
    ADD(interval_bytes, add_interval_bytes, renew, meta.length)
    READ_CELL(interval_bytes, read_interval_bytes)

    COPIES(interval_active)
    ADD(interval_active, add_active, renew, meta.active)
    READ_CELL(interval_active, read_active)

    COPIES(interval_delay_sum)
    ADD(interval_delay_sum, add_delay, renew, meta.path_delay)
    READ_CELL(interval_delay_sum, read_delay_sum)

    COPIES(interval_delay_max)
    RegisterAction<bit<32>, bit<16>, bit<32>>(interval_delay_max) raise_delay = {
        void apply(inout bit<32> cell) {
            if (meta.renew != 0 || meta.path_delay > cell) { cell = meta.path_delay; }
        }
    };
    READ_CELL(interval_delay_max, read_delay_max)

    COPIES(interval_depth_max)
    RegisterAction<bit<32>, bit<16>, bit<32>>(interval_depth_max) raise_depth = {
        void apply(inout bit<32> cell) {
            if (meta.renew != 0 || meta.path_depth > cell) { cell = meta.path_depth; }
        }
    };
    READ_CELL(interval_depth_max, read_depth_max)

    COPIES(interval_first)
    RegisterAction<bit<32>, bit<16>, bit<32>>(interval_first) note_first = {
        void apply(inout bit<32> cell) {
            if (meta.renew != 0) { cell = meta.now; }
        }
    };
    READ_CELL(interval_first, read_first)

    COPIES(interval_last)
    RegisterAction<bit<32>, bit<16>, bit<32>>(interval_last) note_last = {
        void apply(inout bit<32> cell) {
            cell = meta.now;
        }
    };
    READ_CELL(interval_last, read_last)

    @hidden
    action pop() {
        hdr.ethernet.ether_type = hdr.tag.next_type;
        hdr.tag.setInvalid();
    }

    @hidden
    action answer() {
        hdr.slot_cells.setValid();
        hdr.slot_cells.reserved = 0;
        hdr.slot_cells.interval = meta.running;
    }

    @hidden
    action zeros() {
        hdr.slot_cells.next_seq = 0;
        hdr.slot_cells.packets = 0;
        hdr.slot_cells.bytes = 0;
        hdr.slot_cells.lost = 0;
        hdr.slot_cells.reordered = 0;
        hdr.slot_cells.interval_number = 0;
        hdr.slot_cells.interval_packets = 0;
        hdr.slot_cells.interval_bytes = 0;
        hdr.slot_cells.interval_active = 0;
        hdr.slot_cells.interval_delay_sum = 0;
        hdr.slot_cells.interval_delay_max = 0;
        hdr.slot_cells.interval_depth_max = 0;
        hdr.slot_cells.interval_first = 0;
        hdr.slot_cells.interval_last = 0;
        hdr.slot_cells.sink_epoch = 0;
    }

    @hidden
    action double_slot() {
        meta.copy = meta.slot << 1;
    }

    @hidden
    action odd_copy() {
        meta.copy = meta.copy | 1;
    }

    @hidden
    action measure() {
        meta.length = (bit<32>)hdr.ipv4.total_len;
    }

    @hidden
    action idle_left() {
        meta.idle_left = meta.idle_gap + meta.silence;
        meta.path_delay = hdr.tag.delay;
        meta.path_depth = (bit<32>)hdr.tag.depth;
    }

    apply {
        double_slot();
        if (meta.sink_work != WORK_NONE) {
            meta.running = advance.execute(0);
        }
        if (meta.sink_work == WORK_DELIVER) {
            measure();
            meta.fresh = enter_epoch.execute(meta.slot);
            meta.behind = expect_next.execute(meta.slot);
            meta.silence = since_sent.execute(meta.slot);

            if (meta.running[0:0] == 1) {
                odd_copy();
            }
            idle_left();
            meta.active = since_arrival.execute(meta.slot);
            add_packet.execute(meta.slot);
            add_bytes.execute(meta.slot);
            add_lost.execute(meta.slot);
            add_reordered.execute(meta.slot);
            meta.renew = enter_interval.execute(meta.copy);
            if (meta.fresh != 0 || meta.idle_left[31:31] == 1) {
                meta.active = 0;
            }

            add_interval_packet.execute(meta.copy);
            add_interval_bytes.execute(meta.copy);
            add_active.execute(meta.copy);
            add_delay.execute(meta.copy);
            raise_delay.execute(meta.copy);
            raise_depth.execute(meta.copy);
            note_first.execute(meta.copy);
            note_last.execute(meta.copy);
            pop();
        } else if (meta.sink_work == WORK_READ || meta.sink_work == WORK_ZEROS) {
            answer();
            if (meta.sink_work == WORK_READ) {
                if (hdr.readout.interval[0:0] == 1) {
                    odd_copy();
                }
                hdr.slot_cells.sink_epoch = read_epoch.execute(meta.slot);
                hdr.slot_cells.next_seq = read_next_seq.execute(meta.slot);
                hdr.slot_cells.packets = read_packets.execute(meta.slot);
                hdr.slot_cells.bytes = read_bytes.execute(meta.slot);
                hdr.slot_cells.lost = read_lost.execute(meta.slot);
                hdr.slot_cells.reordered = read_reordered.execute(meta.slot);
                hdr.slot_cells.interval_number = read_number.execute(meta.copy);
                hdr.slot_cells.interval_packets = read_interval_packets.execute(meta.copy);
                hdr.slot_cells.interval_bytes = read_interval_bytes.execute(meta.copy);
                hdr.slot_cells.interval_active = read_active.execute(meta.copy);
                hdr.slot_cells.interval_delay_sum = read_delay_sum.execute(meta.copy);
                hdr.slot_cells.interval_delay_max = read_delay_max.execute(meta.copy);
                hdr.slot_cells.interval_depth_max = read_depth_max.execute(meta.copy);
                hdr.slot_cells.interval_first = read_first.execute(meta.copy);
                hdr.slot_cells.interval_last = read_last.execute(meta.copy);
            } else {
                zeros();
            }
        } else if (hdr.tag.isValid() && hdr.tag.sink == 1) {
            pop();
        }
    }
}
