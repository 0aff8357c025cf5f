// Fields wider than 255 bits: parameters that say how far to shift. Language: P4_14.

header_type pkt_t {
    fields {
        op   : 8;
        wide : 320;
    }
}

header pkt_t pkt;

parser start {
    extract(pkt);
    return ingress;
}

action place(value, leftshift) { modify_field(pkt.wide, value << leftshift); }
action put(value, leftshift, mask) { modify_field(pkt.wide, (pkt.wide & ~mask) | ((value << leftshift) & mask)); }
action lower(rightshift) { shift_right(pkt.wide, pkt.wide, rightshift); }
action answer() { modify_field(standard_metadata.egress_spec, standard_metadata.ingress_port); }

table run {
    reads { pkt.op : exact; }
    actions { place; put; lower; }
}
table out { actions { answer; } }

control ingress {
    apply(run);
    apply(out);
}
