// Primitive actions on fields: widths, signs and saturation. Language: P4_14.

header_type pkt_t {
    fields {
        op  : 8;
        u8  : 8;
        us8 : 8 (saturating);
        s8  : 8 (signed);
        ss8 : 8 (signed, saturating);
        u16 : 16;
        u4  : 4;
        us4 : 4 (saturating);
    }
}

header pkt_t pkt;

parser start {
    extract(pkt);
    return ingress;
}

action narrow() {
    modify_field(pkt.u8, pkt.u16);
    modify_field(pkt.us8, pkt.u16);
    modify_field(pkt.ss8, pkt.u16);
    modify_field(pkt.us4, pkt.s8);
    modify_field(pkt.u4, pkt.s8);
}
action widen_signed() { modify_field(pkt.u16, pkt.s8); }
action widen_unsigned() { modify_field(pkt.u16, pkt.u8); }
action same_width() {
    modify_field(pkt.us8, pkt.s8);
    modify_field(pkt.ss8, pkt.u8);
}
action sums() {
    add(pkt.us8, pkt.u8, 200);
    add_to_field(pkt.ss8, 100);
    add(pkt.u16, pkt.u8, 200);
    add_to_field(pkt.u8, 200);
}
action differences() {
    subtract(pkt.us8, pkt.u8, 200);
    subtract_from_field(pkt.ss8, 100);
    subtract(pkt.u16, pkt.u8, 200);
    subtract_from_field(pkt.u8, 200);
}
action negative() {
    add_to_field(pkt.u8, -1);
    add_to_field(pkt.us8, -1);
    add_to_field(pkt.ss8, -1);
    subtract_from_field(pkt.u16, -1);
}
action mixed() {
    add(pkt.us8, pkt.us8, pkt.s8);
    add(pkt.us4, pkt.u8, pkt.s8);
}
action masked(value) { modify_field(pkt.u8, value, 0x0f); }
action bits() {
    bit_and(pkt.u4, pkt.u8, 0x3c);
    bit_or(pkt.us8, pkt.u8, 0x0f);
    bit_xor(pkt.u16, pkt.u8, 0xffff);
}
action shifts() {
    shift_right(pkt.u8, pkt.u16, 4);
    shift_left(pkt.u16, pkt.u8, 8);
    shift_right(pkt.s8, pkt.s8, 1);
    shift_left(pkt.u4, pkt.u4, 3);
}
action extremes() {
    max(pkt.us8, pkt.u8, pkt.s8);
    min(pkt.ss8, pkt.u8, pkt.s8);
}
action expressions(v) { modify_field(pkt.u16, pkt.u8 * 2 + v); }
action twice(x) {
    add_to_field(x, 1);
    add_to_field(x, pkt.u8);
}
action by_name() {
    twice(pkt.u8);
    twice(pkt.u16);
}

table run {
    reads { pkt.op : exact; }
    actions {
        narrow; widen_signed; widen_unsigned; same_width; sums; differences; negative; mixed; masked; bits; shifts;
        extremes; expressions; by_name; no_op;
    }
    default_action : no_op;
}

action set_u4(v) { modify_field(pkt.u4, v); }
action wrapped_and() { set_u4(5); }
action below_zero() { set_u4(9); }
action above() { set_u4(6); }
table t_below { actions { below_zero; } default_action : below_zero; }
table t_wrapped { actions { wrapped_and; } default_action : wrapped_and; }
table t_above { actions { above; } default_action : above; }

control ingress {
    apply(run);
    if (pkt.op == 0x20) {
        // A field that is signed is compared so, also with a constant.
        if (pkt.s8 < 0) {
            apply(t_below);
        }
    } else if (pkt.op == 0x21) {
        // All at the width of the widest, 8 bits: 255 + 1 is 0.
        if (pkt.u8 + 1 == 0 and not (pkt.u8 + pkt.us8 > 255)) {
            apply(t_wrapped);
        }
    } else if (pkt.op == 0x22) {
        // A signed and an unsigned field are compared as unsigned ones, as in C.
        if (pkt.s8 > pkt.u8) {
            apply(t_above);
        }
    }
}
