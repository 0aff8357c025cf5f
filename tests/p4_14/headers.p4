// Stacks, headers added, removed and copied, and their order in the packet. Language: P4_14.

header_type a_t { fields { op : 8; next_ : 8; } }
header_type b_t { fields { v : 8; next_ : 8; } }

header a_t first;
header b_t stack[3];
header b_t inner;
header b_t outer;
header a_t never;

parser start {
    extract(first);
    return select(latest.next_) {
        1 : parse_stack;
        2 : parse_outer;
        default : ingress;
    }
}
parser parse_outer {
    extract(outer);
    return select(outer.next_) {
        3 : parse_inner;
        default : ingress;
    }
}
parser parse_stack {
    extract(stack[next]);
    return select(stack[last].next_) {
        1 : parse_stack;
        3 : parse_inner;
        default : ingress;
    }
}
parser parse_inner {
    extract(inner);
    return ingress;
}

action push_two() { push(stack, 2); }
action pop_one() { pop(stack, 1); }
action add_both() {
    add_header(inner);
    add_header(outer);
    modify_field(outer.v, 0xee);
}
action add_again() { add_header(inner); }
action add_never() {
    add_header(never);
    modify_field(never.op, 0xff);
}
action remove_inner() {
    remove_header(inner);
    modify_field(inner.v, 0x99);
}
action copy_inner() { copy_header(stack[1], inner); }
action keyed(v) { modify_field(first.next_, v); }

table run {
    reads { first.op : exact; }
    actions { push_two; pop_one; add_both; add_again; add_never; remove_inner; copy_inner; }
}
table by_validity {
    reads {
        inner : valid;
        stack[1].valid : exact;
        first.op mask 0xf0 : exact;
    }
    actions { keyed; }
}

control ingress {
    apply(run) {
        miss { apply(by_validity); }
    }
}
