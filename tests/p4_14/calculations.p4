// Calculations over the payload, value sets, and what the language leaves to the target. Language: P4_14.

header_type a_t { fields { kind : 8; len : 8; sum : 16; } }
header_type b_t { fields { v : 16; } }

header a_t a;
header b_t b;

parser_value_set kinds;

parser start {
    extract(a);
    return select(a.kind) {
        1 : parse_b;
        kinds : parse_b;
        default : ingress;
    }
}
parser parse_b {
    extract(b);
    return ingress;
}

field_list covered {
    a.kind;
    a.len;
    payload;
}
field_list_calculation sum {
    input { covered; }
    algorithm : csum16;
    output_width : 16;
}
calculated_field a.sum { update sum; }

field_list standard {
    standard_metadata.packet_length;
    standard_metadata.egress_spec;
}

action forget() {
    modify_field(standard_metadata.egress_spec, 6);
    resubmit(standard);
}
action tell() {
    modify_field(a.len, standard_metadata.parser_error_location);
    add_to_field(a.len, standard_metadata.egress_spec);
    modify_field(standard_metadata.egress_spec, 1);
}
table t_forget { actions { forget; } default_action : forget; }
table t_tell { actions { tell; } default_action : tell; }

control ingress {
    if (a.kind == 7) {
        if (standard_metadata.instance_type == 0) {
            apply(t_forget);
        } else {
            apply(t_tell);
        }
    }
}
