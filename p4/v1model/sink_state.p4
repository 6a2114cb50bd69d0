/*
 * A sink leaf's memory, one set of cells per slot and two interval copies of it (index 2 * slot + low bit of the interval).
 * `deliver` is the whole of a packet's telemetry in one action: atomic on BMv2, and one table for an interpreter.
 */
control SinkState(inout headers_t hdr, inout metadata_t meta) {
    /* state of the slot */
    register<bit<8>, bit<16>>(SLOTS) sink_epoch;
    register<bit<32>, bit<16>>(SLOTS) next_seq;
    register<bit<32>, bit<16>>(SLOTS) last_sent;
    register<bit<32>, bit<16>>(SLOTS) last_arrival;

    /* cumulative */
    register<bit<32>, bit<16>>(SLOTS) packets;
    register<bit<32>, bit<16>>(SLOTS) bytes;
    register<bit<32>, bit<16>>(SLOTS) lost;
    register<bit<32>, bit<16>>(SLOTS) reordered;

    /* of an interval */
    register<bit<32>, bit<16>>(1) interval;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_number;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_packets;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_bytes;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_active;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_delay_sum;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_delay_max;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_depth_max;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_first;
    register<bit<32>, bit<16>>(SLOT_COPIES) interval_last;

    @hidden
    action pop() {
        hdr.ethernet.ether_type = hdr.tag.next_type;
        hdr.tag.setInvalid();
    }

    @hidden
    action deliver() {
        bit<16> slot = hdr.tag.slot;
        bit<32> length = (bit<32>)hdr.ipv4.total_len;
        bit<32> depth = (bit<32>)hdr.tag.depth;
        bit<32> old;
        bit<32> active = 0;

        bit<8> epoch;
        sink_epoch.read(epoch, slot);
        bool fresh = epoch != hdr.tag.epoch;
        if (fresh) {
            sink_epoch.write(slot, hdr.tag.epoch);
            next_seq.write(slot, hdr.tag.seq + 1);
            packets.write(slot, 1);
            bytes.write(slot, length);
            lost.write(slot, 0);
            reordered.write(slot, 0);
            last_sent.write(slot, hdr.tag.time);
            last_arrival.write(slot, meta.now);
        } else {
            packets.read(old, slot);
            packets.write(slot, old + 1);
            bytes.read(old, slot);
            bytes.write(slot, old + length);

            next_seq.read(old, slot);
            bit<32> ahead = hdr.tag.seq - old;
            if (ahead < 0x80000000) {
                next_seq.write(slot, hdr.tag.seq + 1);
                if (ahead != 0) {
                    lost.read(old, slot);
                    lost.write(slot, old + ahead);
                }
                /* The pause was the network's, and counts, unless the source itself was silent. */
                last_sent.read(old, slot);
                last_sent.write(slot, hdr.tag.time);
                bit<32> silence = hdr.tag.time - old;
                last_arrival.read(old, slot);
                last_arrival.write(slot, meta.now);
                if (silence <= meta.idle_gap) {
                    active = meta.now - old;
                }
            } else {
                reordered.read(old, slot);
                reordered.write(slot, old + 1);
                lost.read(old, slot);
                lost.write(slot, old - 1);
            }
        }

        bit<32> current;
        interval.read(current, 0);
        bit<16> cell;          /* by an if: a plain sum would be computed again at each use */
        if (current[0:0] == 0) {
            cell = slot << 1;
        } else {
            cell = (slot << 1) + 1;
        }
        bit<32> number;
        interval_number.read(number, cell);
        if (fresh || number != current) {
            interval_number.write(cell, current);
            interval_packets.write(cell, 1);
            interval_bytes.write(cell, length);
            interval_active.write(cell, active);
            interval_delay_sum.write(cell, hdr.tag.delay);
            interval_delay_max.write(cell, hdr.tag.delay);
            interval_depth_max.write(cell, depth);
            interval_first.write(cell, meta.now);
        } else {
            interval_packets.read(old, cell);
            interval_packets.write(cell, old + 1);
            interval_bytes.read(old, cell);
            interval_bytes.write(cell, old + length);
            if (active != 0) {
                interval_active.read(old, cell);
                interval_active.write(cell, old + active);
            }
            interval_delay_sum.read(old, cell);
            interval_delay_sum.write(cell, old + hdr.tag.delay);
            interval_delay_max.read(old, cell);
            if (hdr.tag.delay > old) {
                interval_delay_max.write(cell, hdr.tag.delay);
            }
            interval_depth_max.read(old, cell);
            if (depth > old) {
                interval_depth_max.write(cell, depth);
            }
        }
        interval_last.write(cell, meta.now);

        hdr.ethernet.ether_type = hdr.tag.next_type;
        hdr.tag.setInvalid();
    }

    /* Only forward: a duplicate of an old request must not turn the interval back. */
    @hidden
    action advance() {
        bit<32> current;
        interval.read(current, 0);
        bit<32> ahead = hdr.readout.interval - current;
        if (ahead != 0 && ahead < 0x80000000) {
            interval.write(0, hdr.readout.interval);
        }
    }

    @hidden
    action read_cells() {
        bit<16> slot = hdr.readout.slot;
        bit<16> cell = (slot << 1) + (bit<16>)hdr.readout.interval[0:0];
        hdr.slot_cells.setValid();
        interval.read(hdr.slot_cells.interval, 0);
        next_seq.read(hdr.slot_cells.next_seq, slot);
        packets.read(hdr.slot_cells.packets, slot);
        bytes.read(hdr.slot_cells.bytes, slot);
        lost.read(hdr.slot_cells.lost, slot);
        reordered.read(hdr.slot_cells.reordered, slot);
        interval_number.read(hdr.slot_cells.interval_number, cell);
        interval_packets.read(hdr.slot_cells.interval_packets, cell);
        interval_bytes.read(hdr.slot_cells.interval_bytes, cell);
        interval_active.read(hdr.slot_cells.interval_active, cell);
        interval_delay_sum.read(hdr.slot_cells.interval_delay_sum, cell);
        interval_delay_max.read(hdr.slot_cells.interval_delay_max, cell);
        interval_depth_max.read(hdr.slot_cells.interval_depth_max, cell);
        interval_first.read(hdr.slot_cells.interval_first, cell);
        interval_last.read(hdr.slot_cells.interval_last, cell);
        sink_epoch.read(hdr.slot_cells.sink_epoch, slot);
        hdr.slot_cells.reserved = 0;
    }

    @hidden
    action no_cells() {
        hdr.slot_cells = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        interval.read(hdr.slot_cells.interval, 0);
    }

    apply {
        if (hdr.tag.isValid()) {
            if (hdr.tag.slot != 0 && hdr.tag.slot < SLOTS) {
                deliver();
            } else {
                pop();
            }
        } else {
            if (hdr.message.op == OP_ADVANCE) {
                advance();
            }
            if (hdr.readout.slot < SLOTS) {
                read_cells();
            } else {
                no_cells();
            }
        }
    }
}
