/* ARP requests of hosts are answered here; a target without an entry goes to the controller, in the lowest queue. */
control Arp(inout headers_t hdr, inout metadata_t meta) {
    @id(ID_ARP_REPLY)
    action arp_reply(@id(1) bit<48> mac) {
        bit<32> asked = hdr.arp.target_addr;
        hdr.ethernet.dst_addr = hdr.arp.sender_mac;
        hdr.ethernet.src_addr = mac;
        hdr.arp.oper = ARP_OPER_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_addr = hdr.arp.sender_addr;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_addr = asked;
        meta.egress_port = meta.ingress_port;
    }

    @id(ID_ARP)
    table arp {
        key = { hdr.arp.target_addr : exact @id(1) @name("target_addr"); }
        actions = { arp_reply; @defaultonly NoAction; }
        const default_action = NoAction;
        size = ARP_SIZE;
    }

    apply {
        if (!arp.apply().hit) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (bit<16>)meta.ingress_port;
            hdr.packet_in.reason = PUNT_ARP;
            meta.egress_port = CPU_PORT;
        }
    }
}
