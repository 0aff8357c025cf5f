// The parser with its exceptions, headers of varying length, stacks, and the deparser. Language: P4_14.

header_type eth_t { fields { kind : 8; status : 8; } }
header_type opt_t {
    fields {
        tag   : 4;
        words : 4;
        data  : *;
    }
    length : words * 2 + 1;
    max_length : 7;
}
header_type item_t { fields { more : 1; value : 7; } }
header_type meta_t { fields { seen : 8; first : 8; } }
header_type port_t { fields { out : 16; } }

header eth_t eth;
header opt_t opt;
header item_t item[2];
header port_t tail;
metadata meta_t m { seen : 7; }

parser start {
    extract(eth);
    set_metadata(m.first, current(4, 8));
    return select(latest.kind) {
        1 : options;
        2 : items;
        3 : parse_error own;
        4 : parse_error other;
        0x10 mask 0xf0 : masked;
        6, 7 : ingress;
        8 : elsewhere;
    }
}

parser options {
    extract(opt);
    return select(opt.tag, current(0, 8)) {
        0x1ff : finish;
        default : ingress;
    }
}

parser items {
    extract(item[next]);
    return select(latest.more) {
        1 : items;
        default : finish;
    }
}

parser masked {
    set_metadata(m.seen, m.seen + latest_nibble.v);
    return ingress;
}

parser finish {
    extract(tail);
    return ingress;
}

header_type nibble_t { fields { v : 8; } }
metadata nibble_t latest_nibble { v : 3; }

parser_exception own {
    set_metadata(m.seen, 0x55);
    return failed;
}
parser_exception other { parser_drop; }
parser_exception p4_pe_index_out_of_bounds { return failed; }
parser_exception p4_pe_header_too_long { return failed; }
parser_exception p4_pe_default {
    set_metadata(m.seen, 0x77);
    return failed;
}

action tell() {
    modify_field(eth.status, m.seen);
    modify_field(standard_metadata.egress_spec, 1);
}
table t_tell { actions { tell; } default_action : tell; }

action tell_status() {
    modify_field(eth.kind, standard_metadata.parser_status);
    modify_field(eth.status, m.seen);
    modify_field(standard_metadata.egress_spec, 2);
}
table t_status { actions { tell_status; } default_action : tell_status; }

action tell_first() {
    modify_field(eth.status, m.first);
    modify_field(standard_metadata.egress_spec, 3);
}
table t_first { actions { tell_first; } default_action : tell_first; }

control ingress { apply(t_tell); }
control failed { apply(t_status); }
control elsewhere { apply(t_first); }
