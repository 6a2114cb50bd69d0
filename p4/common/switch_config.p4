/* What the controller tells the whole switch, by one default action: its present life, and when a source counts as silent. */
control SwitchConfig(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_SET_SWITCH_CONFIG)
    action set_switch_config(@id(1) bit<32> incarnation, @id(2) bit<32> idle_gap) {
        meta.incarnation = incarnation;
        meta.idle_gap = idle_gap;
    }

    @id(ID_SWITCH_CONFIG)
    table switch_config {
        actions = { set_switch_config; }
        default_action = set_switch_config(0, 200);
    }

    apply {
        switch_config.apply();
    }
}
