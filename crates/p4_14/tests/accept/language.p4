// One of everything that the other tests leave out.

@pragma header_ordering eth opts
header_type eth_t {
    fields {
        dst : 48;
        src : 48;
        kind : 16;
    }
}
header_type opt_t { fields { len : 8; rest : *; } length : len << 1; max_length : 40; }
header_type intrinsic_metadata_t { fields { ingress_global_timestamp : 64; mcast_grp : 16; priority : 3; other : 5; } }
header_type queueing_metadata_t { fields { enq_timestamp : 48; deq_qdepth : 16; } }
header_type m_t { fields { color : 2; index : 16; hdr : 8; meta : 8; group : 8 (signed); } }

header eth_t eth;
header opt_t opts;
header opt_t more_opts;
metadata intrinsic_metadata_t intrinsic_metadata;
metadata queueing_metadata_t queueing_metadata;
metadata m_t m { index : 16'0x10; }

@pragma parser_value_set_size 12
parser_value_set kinds;

@pragma packet_entry
parser start_i2e_mirrored { return start; }

parser start {
    extract(eth);
    return select(eth.kind) {
        kinds : read_opts;
        0x800, 0x806 mask 0xfffe : ingress;
        default : parse_error p4_pe_unhandled_select;
    }
}
parser read_opts {
    extract(opts);
    m.index = opts.len;
    return select(current(0, 16)) {
        kinds : start;
        default : ingress;
    }
}

field_list parts { eth.dst; m.index; 8'7; inner_parts; }
field_list inner_parts { eth.src; opts; m; }
field_list whole { eth; payload; }
field_list_calculation h32 { input { parts; } algorithm : crc32; output_width : 32; }
field_list flow { eth; m.index; 7; }
field_list_calculation hp { input { flow; } algorithm : programmable_crc; output_width : 12; }
field_list_calculation all { input { whole; } algorithm { csum16; xor16; } output_width : 16; }
calculated_field m.index { update all; }

meter limits { type : bytes; instance_count : 2 * 64; }
meter direct_limits { type : packets; direct : acl; result : m.color; }
register cell { width : 33; instance_count : 8; attributes : signed; }
counter packets { type : packets_and_bytes; instance_count : 10; min_width : 32; saturating; }

action hdr(hdr, meta, hash) {
    modify_field(m.hdr, hdr);
    modify_field(m.meta, meta);
    modify_field_with_hash_based_offset(m.index, hash, h32, 64);
    count(packets, m.index);
}
action send(port) {
    modify_field(standard_metadata.egress_spec, port);
    execute_meter(limits, port, m.color);
    modify_field(intrinsic_metadata.mcast_grp, 0);
    register_write(cell, 1, m.group);
    register_read(m.index, cell, port);
}
action learn(receiver) {
    generate_digest(receiver, inner);
    generate_digest(2, inner);
}
field_list inner { eth.src; standard_metadata.ingress_port; m.index; }
action copies(session) {
    clone_i2e(session, kept);
    clone_ingress_pkt_to_egress(session);
    modify_field(eth.kind, queueing_metadata.deq_qdepth);
    modify_field_conditionally(m.index, session, 4);
    modify_field_with_shift(m.index, eth.dst, 8, 0xff);
    bit_nand(m.hdr, m.hdr, 1);
    bit_not(m.hdr, m.hdr);
    truncate(session);
    copy_header(more_opts, opts);
    modify_field(more_opts.rest, opts.rest);
}
field_list kept { m; }
action loop_back() {
    recirculate(kept);
    clone_e2e(3, kept);
}

table acl {
    reads {
        eth.dst : ternary;
        eth.src mask 0xffffff : exact;
        m.index : range;
        eth : valid;
        eth.kind : valid;
    }
    actions { hdr; send; learn; copies; drop; no_op; }
    min_size : 10;
    max_size : 100;
    support_timeout : true;
    const default_action : hdr(1, 2, 3);
}
action_profile ways { actions { send; drop; } size : 128; dynamic_action_selection : by_hash; }
action_selector by_hash { selection_key : hp; selection_mode : fair; }
table route {
    reads { eth.dst : lpm; }
    action_profile : ways;
}
table back { reads { standard_metadata.egress_port : exact; } actions { loop_back; drop; } }

control ingress {
    apply(acl) {
        hit { route_it(); }
        miss { if (valid(eth) and not (m.index >= 3 or eth.kind != 0x800)) { route_it(); } else if (false) { } }
    }
}
control route_it {
    apply(route) {
        send, drop { }
        default { if ((eth.kind & 0xff00) >> 8 == 8) { } }
    }
}
control egress { apply(back); }
