/*
 * Ringpath for Tofino 1 (TNA).
 *
 *   port_role ─┬─ controller messages ─ controller port ──────────────────────────────────┐
 *              ├─ ARP, edge port ─ arp ───────────────────────────────────────────────────┤
 *              ├─ tagged, fabric port ───────────────┐                                    │
 *              └─ IPv4, edge port ─ classify ─ flip ─┤ tagged ─ path_forward ─ forward ───┤
 *                                       └ untagged ──┤             └ sink ┐ └ miss: pop ┐ │
 *                                                    └─ host / traffic_class, route ────┴─┴─ count, queue, port ─ TM
 *
 *   TM ─ tagged: add this hop's delay and depth ─ sink: telemetry, pop ─ readout: cells, stamp ─ out
 *
 * The order of the branches is not v1model's: what needs no path is decided beside it, since stages are what is scarce.
 * A hop's queue delay is its egress time less its ingress time; both are added to the tag in passing, so nothing else travels.
 */
#include <core.p4>
#include <tna.p4>
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

control LeafIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t standard,
                    in ingress_intrinsic_metadata_from_parser_t parsed,
                    inout ingress_intrinsic_metadata_for_deparser_t deparser,
                    inout ingress_intrinsic_metadata_for_tm_t manager) {
    EDGE_CLOCK(clock)
    TierHash() tier_hash;
    RoutedChecksum() routed_checksum;
    PortRole() port_role;
    Trust() trust;
    Classify() classify;
    SourceState() source_state;
    Path() path;
    Route() route;
    Arp() arp;
    ControllerPort() controller_port;
    Counter<bit<32>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS) drops;

    @hidden
    action leave() {
        hdr.tag.delay = hdr.tag.delay - meta.now;
    }

    @hidden
    action unhandled() {
        meta.dropped = 1;
        meta.reason = REASON_UNHANDLED;
    }

    apply {
        meta.now = EDGE_TICKS(clock, parsed);
        port_role.apply(hdr, meta);
        tier_hash.apply(hdr, meta);
        routed_checksum.apply(hdr, meta);

        if (hdr.message.isValid() || hdr.packet_out.isValid()) {
            controller_port.apply(hdr, meta);
        } else if (hdr.arp.isValid()) {
            if (meta.role == ROLE_EDGE) {
                if (hdr.arp.sender_addr != hdr.arp.target_addr) {
                    arp.apply(hdr, meta);
                }
            }
        } else if (hdr.tag.isValid()) {
            if (meta.role != ROLE_FABRIC || hdr.tag.hops >= MAX_HOPS || hdr.tag.version != TAG_VERSION) {
                trust.apply(hdr, meta);
            }
        } else if (hdr.ipv4.isValid() && meta.role == ROLE_EDGE) {
            classify.apply(hdr, meta);
        }
        source_state.apply(hdr, meta);

        if (hdr.tag.isValid()) {
            leave();
            path.apply(hdr, meta);
        }

        /* Whatever has no port by now: sinks, untagged packets, label misses, and what is not IPv4 at all. */
        if (meta.egress_port == PORT_NONE && meta.dropped == 0) {
            if (hdr.ipv4.isValid()) {
                route.apply(hdr, meta);
            } else {
                unhandled();
            }
        }

        EDGE_INGRESS_OUT(hdr, meta, deparser, manager, drops)
    }
}

control LeafEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t standard,
                   in egress_intrinsic_metadata_from_parser_t parsed,
                   inout egress_intrinsic_metadata_for_deparser_t deparser,
                   inout egress_intrinsic_metadata_for_output_port_t port) {
    EDGE_CLOCK(clock)
    EDGE_DEPTH(depth)
    SwitchConfig() switch_config;
    SinkState() sink_state;

    /* This hop's part of the path's queueing. */
    @hidden
    action accumulate() {
        hdr.tag.delay = hdr.tag.delay + meta.now;
        meta.depth = meta.depth |-| hdr.tag.depth;
    }

    @hidden
    action deepen() {
        hdr.tag.depth = hdr.tag.depth + meta.depth;
    }

    @hidden
    action stamp() {
        hdr.stamp.setValid();
        hdr.stamp.time = meta.now;
        hdr.stamp.incarnation = meta.incarnation;
    }

    @hidden
    action stamp_sent() {
        hdr.probe.sent_incarnation = meta.incarnation;
    }

    apply {
        meta.now = EDGE_TICKS(clock, parsed);
        switch_config.apply(hdr, meta);

        if (hdr.tag.isValid()) {
            meta.depth = EDGE_QUEUE_DEPTH(depth, standard);
            accumulate();
            deepen();
        }
        if (hdr.message.isValid()) {
            if (hdr.packet_in.isValid()) {
                stamp();
            } else if (hdr.probe.isValid()) {
                stamp_sent();
            }
        }
        sink_state.apply(hdr, meta);
    }
}

Pipeline(LeafIngressParser(), LeafIngress(), LeafIngressDeparser(),
         LeafEgressParser(), LeafEgress(), LeafEgressDeparser()) pipe;

Switch(pipe) main;
