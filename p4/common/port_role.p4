/* Ingress port -> role. A port without an entry is an edge port: nothing that it sends is trusted. */
control PortRole(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_SET_PORT_ROLE)
    action set_port_role(@id(1) bit<2> role) {
        meta.role = role;
    }

    @id(ID_PORT_ROLE)
    table port_role {
        key = { meta.ingress_port : exact @id(1) @name("ingress_port"); }
        actions = { set_port_role; @defaultonly NoAction; }
        const default_action = NoAction;
        size = PORTS;
    }

    apply {
        port_role.apply();
    }
}

/* A tag that must not be believed: from a host, gone round in circles, or of a version that we do not know. */
control Trust(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action refuse_tag(reason_t reason) {
        hdr.tag.setInvalid();
        meta.dropped = 1;
        meta.reason = reason;
    }

    apply {
        if (meta.role == ROLE_FABRIC) {
            refuse_tag(REASON_HOP_LIMIT);
        } else {
            refuse_tag(REASON_EDGE_HEADER);
        }
    }
}
