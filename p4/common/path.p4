/*
 * Label -> next hop, or the end of the tree. A label that nobody installed costs the packet its tag, not its life: it is
 * counted and routed.
 */
control Path(inout headers_t hdr, inout metadata_t meta) {
    DIRECT_COUNTER(path_counter)

    @id(ID_FORWARD)
    action forward(@id(1) bit<9> port) {
        DIRECT_COUNT(path_counter)
        hdr.tag.hops = hdr.tag.hops + 1;
        meta.egress_port = port;
        meta.queue = hdr.tag.queue;
    }

    @id(ID_SINK)
    action sink() {
        DIRECT_COUNT(path_counter)
        hdr.tag.sink = 1;
        meta.queue = hdr.tag.queue;
    }

    @id(ID_PATH_MISS)
    action path_miss() {
        hdr.ethernet.ether_type = hdr.tag.next_type;
        hdr.tag.setInvalid();
        meta.reason = REASON_LABEL_MISS;
    }

    @id(ID_PATH_FORWARD)
    table path_forward {
        key = { hdr.tag.label : exact @id(1) @name("label"); }
        actions = { forward; sink; @defaultonly path_miss; }
        const default_action = path_miss;
        size = LABEL_SIZE;
        TABLE_COUNTER(path_counter)
    }

    apply {
        path_forward.apply();
    }
}
