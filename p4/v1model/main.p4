/*
 * Ringpath for v1model: BMv2's simple_switch and the embedded switch.
 *
 *   port_role ─┬─ tagged, fabric port ───────────────┐
 *              ├─ IPv4, edge port ─ classify ─ flip ─┤ tagged ─ path_forward ─ forward ──────────────┐
 *              │                        └ untagged ──┼──┐         └ sink ┐ └ miss: pop ┐             │
 *              │                                     │  └─ host / traffic_class, route ┘─────────────┼─ queue, port ─ TM
 *              └─ ARP, controller messages ──────────┴─ arp / controller port ───────────────────────┘
 *
 *   TM ─ tagged: add this hop's delay and depth ─ sink: telemetry, pop ─ readout: cells, stamp ─ out
 */
#include <core.p4>
#define V1MODEL_VERSION 20200408   /* registers and counters with an index type of their own */
#include <v1model.p4>
#include "../common/sizes.p4"
#include "../common/ids.p4"
#include "../common/types.p4"
#include "externs.p4"
#include "../common/headers.p4"
#include "edge.p4"
#include "parser.p4"
#include "source_state.p4"
#include "sink_state.p4"
#include "../common/port_role.p4"
#include "../common/classify.p4"
#include "../common/path.p4"
#include "../common/route.p4"
#include "../common/arp.p4"
#include "../common/controller_port.p4"
#include "../common/switch_config.p4"

control LeafIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    PortRole() port_role;
    Trust() trust;
    Classify() classify;
    SOURCE_REGISTERS
    SourceState() source_state;
    SourceReadout() source_readout;
    Path() path;
    Route() route;
    Arp() arp;
    ControllerPort() controller_port;
    counter<bit<8>>(DROP_REASONS, CounterType.packets) drops;

    apply {
        port_role.apply(hdr, meta);

        if (hdr.tag.isValid() && (meta.role != ROLE_FABRIC || hdr.tag.hops >= MAX_HOPS || hdr.tag.version != TAG_VERSION)) {
            trust.apply(hdr, meta);
        } else if (meta.role == ROLE_EDGE && hdr.ipv4.isValid()) {
            classify.apply(hdr, meta);
            if (hdr.tag.isValid()) {
                source_state.apply(hdr, meta, source_seq, source_seen, source_flip);
            }
        }

        if (hdr.tag.isValid()) {
            path.apply(hdr, meta);
        }

        /* Whatever has no port by now: sinks, untagged packets, label misses, and what is not IPv4 at all. */
        if (meta.egress_port == PORT_NONE && meta.dropped == 0) {
            if (hdr.ipv4.isValid()) {
                route.apply(hdr, meta);
            } else if (hdr.message.isValid() || hdr.packet_out.isValid()) {
                controller_port.apply(hdr, meta);
                if (hdr.packet_in.isValid() && hdr.message.op == OP_SOURCE) {
                    source_readout.apply(hdr, meta, source_seq, source_seen, source_flip);
                }
            } else if (hdr.arp.isValid() && meta.role == ROLE_EDGE && hdr.arp.sender_addr != hdr.arp.target_addr) {
                arp.apply(hdr, meta);
            } else {
                meta.dropped = 1;
                meta.reason = REASON_UNHANDLED;
            }
        }

        EDGE_INGRESS_OUT(meta, standard, drops)
    }
}

control LeafEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    SwitchConfig() switch_config;
    SinkState() sink_state;

    /* This hop's part of the path's queueing. */
    @hidden
    action accumulate() {
        bit<16> depth = EDGE_QUEUE_DEPTH(standard);
        hdr.tag.delay = hdr.tag.delay + EDGE_QUEUE_DELAY(standard);
        if (depth > hdr.tag.depth) {
            hdr.tag.depth = depth;
        }
    }

    apply {
        if (hdr.tag.isValid()) {
            accumulate();
        }

        if (hdr.tag.isValid() && hdr.tag.sink == 1 || hdr.message.isValid()) {
            meta.now = EDGE_EGRESS_TIME(standard);
            switch_config.apply(hdr, meta);
            if (hdr.tag.isValid() || hdr.readout.isValid() && hdr.message.op != OP_SOURCE) {
                sink_state.apply(hdr, meta);
            }
            if (hdr.packet_in.isValid()) {
                hdr.stamp.setValid();
                hdr.stamp.time = meta.now;
                hdr.stamp.incarnation = meta.incarnation;
            } else if (hdr.probe.isValid()) {
                hdr.probe.sent_incarnation = meta.incarnation;
            }
        }
    }
}

V1Switch(LeafParser(), LeafVerifyChecksum(), LeafIngress(), LeafEgress(), LeafComputeChecksum(), LeafDeparser()) main;
