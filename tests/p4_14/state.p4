// Stateful objects, hashes over headers that may be missing, checksums, and packets that go round. Language: P4_14.

header_type h_t {
    fields {
        op    : 8;
        arg   : 8;
        out   : 16;
        check : 16;
        kind  : 8;
    }
}
header_type x_t { fields { a : 8; b : 16; } }
header_type m_t { fields { rounds : 8; kept : 8; lost : 8; start : 8; temp : 32; } }
header_type intrinsic_metadata_t { fields { mcast_grp : 4; egress_rid : 4; } }

header h_t h;
header x_t x;
metadata m_t m { kept : 0x20; start : 0x30; }
metadata intrinsic_metadata_t intrinsic_metadata;

parser start {
    extract(h);
    return select(latest.kind) {
        1 : more;
        default : ingress;
    }
}
parser more {
    extract(x);
    return ingress;
}

// x is left out where it is not there: then the bytes are op, arg only.
field_list hashed { h.op; x.a; x.b; h.arg; }
field_list_calculation fold {
    input { hashed; }
    algorithm : xor16;
    output_width : 16;
}
field_list_calculation narrow {
    input { hashed; }
    algorithm : xor16;
    output_width : 4;
}
field_list summed { h.op; h.arg; h.out; x; }
field_list_calculation sum {
    input { summed; }
    algorithm : csum16;
    output_width : 16;
}
calculated_field h.check {
    verify sum if (h.op == 0xc0);
    update sum if (h.op == 0xc1);
    update sum if (valid(x));
}

register cells {
    width : 16;
    instance_count : 4;
}
register limits {
    width : 8;
    instance_count : 2;
    attributes : saturating;
}
counter hits {
    type : packets;
    instance_count : 8;
}
counter entries_hit {
    type : packets_and_bytes;
    direct : run;
}

field_list kept_fields { m.rounds; m.kept; }

action store() { register_write(cells, h.arg, h.out); }
action load() { register_read(h.out, cells, h.arg); }
action store_limited() {
    register_write(limits, 0, h.out);
    register_read(h.out, limits, 0);
}
action note(index) {
    count(hits, index);
    count(hits, h.arg);
}
action hash_all() { modify_field_with_hash_based_offset(h.out, 0x100, fold, 0x10000); }
action hash_some(base, size) { modify_field_with_hash_based_offset(h.out, base, narrow, size); }
action random_one() { modify_field_rng_uniform(h.out, 5, 5); }
action again() {
    add_to_field(m.rounds, 1);
    add_to_field(m.kept, 1);
    add_to_field(m.lost, 1);
    add_to_field(m.start, 1);
    resubmit(kept_fields);
}
action told() {
    shift_left(h.out, m.kept, 8);
    bit_or(h.out, h.out, m.start);
    modify_field(h.arg, m.lost);
}
action away() { drop(); }
action copied() {
    modify_field(m.kept, 0x44);
    modify_field(m.start, 0x55);
    clone_ingress_pkt_to_egress(1, kept_fields);
}
action group() { modify_field(intrinsic_metadata.mcast_grp, 0x12); }

table run {
    reads { h.op : exact; }
    actions {
        store; load; store_limited; note; hash_all; hash_some; random_one; again; told; away; copied; group;
    }
}
table finish { actions { told; } default_action : told; }

control ingress {
    if (m.rounds < 3) {
        apply(run) {
            again { }
            group {
                // The field is declared with 4 bits: it keeps 2 of 0x12.
                if (intrinsic_metadata.mcast_grp == 2) {
                    apply(reset);
                }
            }
            default { }
        }
    } else {
        apply(finish);
    }
}

action no_group() {
    modify_field(intrinsic_metadata.mcast_grp, 0);
    modify_field(standard_metadata.egress_spec, 4);
}
table reset { actions { no_group; } default_action : no_group; }

control egress {
    if (standard_metadata.instance_type == 1) {
        apply(of_clone);
    }
}
table of_clone { actions { told; } default_action : told; }
