// Conditions one after the other, with and without braces. Language: P4_14.

header_type h_t { fields { a : 8; b : 8; path : 8; sum : 8; } }
header h_t h;

parser start {
    extract(h);
    return ingress;
}

action step(bit) { modify_field(h.path, bit, bit); }
action finish(v) {
    modify_field(h.sum, v);
    modify_field(standard_metadata.egress_spec, 0);
}

table one { actions { step; } default_action : step(1); }
table two { actions { step; } default_action : step(2); }
table four { actions { step; } default_action : step(4); }
table eight { actions { step; } default_action : step(8); }
table sixteen { actions { step; } default_action : step(16); }
table equal { actions { finish; } default_action : finish(1); }
table other { actions { finish; } default_action : finish(2); }

control ingress {
    if (h.a == 1) {
        apply(one);
    } else {
        apply(two);
    }
    // A statement of its own, whatever came of the one above.
    if (h.b == 1) {
        apply(four);
    }
    if (h.a == 2) apply(eight); else if (h.a == 3) apply(sixteen);
    // An `else` belongs to the last `if`, a negation holds the comparison.
    if (h.a != 9) if (not h.a == h.b) apply(other); else apply(equal);
}
