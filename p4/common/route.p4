/*
 * IPv4 delivery: attached hosts (for packets at the end of their tree, and for untagged ones), else the
 * longest prefix, a port or an ECMP group. Untagged traffic takes its queue from the DSCP, never the control queue.
 */
control Route(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_TO_HOST)
    action to_host(@id(1) bit<9> port) {
        meta.egress_port = port;
    }

    @id(ID_HOST)
    table host {
        key = { hdr.ipv4.dst_addr : exact @id(1) @name("dst_addr"); }
        actions = { to_host; @defaultonly NoAction; }
        const default_action = NoAction;
        size = HOST_SIZE;
    }

    @id(ID_SET_QUEUE)
    action set_queue(@id(1) bit<3> queue) {
        SET_TRAFFIC_QUEUE(meta, queue)
    }

    @id(ID_TRAFFIC_CLASS)
    table traffic_class {
        key = { hdr.ipv4.dscp : exact @id(1) @name("dscp"); }
        actions = { set_queue; @defaultonly NoAction; }
        const default_action = NoAction;
        size = DSCP_SIZE;
    }

    @id(ID_ROUTE_TO)
    action route_to(@id(1) bit<9> port) {
        meta.egress_port = port;
        DECREASE_TTL(meta, hdr.ipv4)
    }

    ECMP_SELECTOR(ecmp)

    /* A selector table has no default action on BMv2: a miss is what leaves the port unchosen. */
    @id(ID_ROUTE)
    table route {
        key = {
            hdr.ipv4.dst_addr : lpm @id(1) @name("dst_addr");
            meta.path_hash    : selector;
        }
        actions = { route_to; }
        size = ROUTE_SIZE;
        TABLE_SELECTOR(ecmp)
    }

    /* The first reason counts: a label miss that no route helps stays a label miss. */
    @hidden
    action refuse(reason_t reason) {
        meta.dropped = 1;
        FIRST_REASON(meta, reason)
    }

    apply {
        if (!hdr.tag.isValid()) {
            traffic_class.apply();
        }
        if (!host.apply().hit) {
            if (hdr.tag.isValid()) {
                refuse(REASON_HOST_MISS);
            } else if (hdr.ipv4.ttl <= 1) {
                refuse(REASON_TTL);
            } else {
                FLOW_HASH(meta, hdr.ipv4)
                IF_ROUTE_MISSES(route, meta) {
                    refuse(REASON_NO_ROUTE);
                }
            }
        }
    }
}
