/*
 * What the controller sends (frames, probes, readout requests) and what it is sent (probes, readout replies). All of it uses the
 * control queue. The parser leaves `packet_out` valid only for packets of the CPU port, so that header is the proof of trust.
 */
control ControllerPort(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action punt(bit<8> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>)meta.ingress_port;
        hdr.packet_in.reason = reason;
        meta.egress_port = CPU_PORT;
        meta.queue = CONTROL_QUEUE;
    }

    @hidden
    action send() {
        meta.egress_port = (bit<9>)hdr.packet_out.egress_port;
        meta.queue = CONTROL_QUEUE;
    }

    @hidden
    action refuse(reason_t reason) {
        meta.dropped = 1;
        meta.reason = reason;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            if (hdr.readout.isValid()) {
                punt(PUNT_READOUT);
            } else if (hdr.message.isValid() && !hdr.probe.isValid()
                       || hdr.packet_out.egress_port == (bit<16>)CPU_PORT) {
                refuse(REASON_BAD_MESSAGE);
            } else {
                send();
            }
        } else if (meta.role != ROLE_FABRIC) {
            refuse(REASON_EDGE_HEADER);
        } else if (hdr.probe.isValid()) {
            punt(PUNT_PROBE);
        } else {
            refuse(REASON_BAD_MESSAGE);
        }
    }
}
