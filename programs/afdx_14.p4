// SPDX-License-Identifier: Apache-2.0
//
// The AFDX switch that is published as a P4_14 program: a virtual link (VL) is the last 16 bits of the destination behind a constant
// prefix of 32, a table on ingress port and VL says where its frames go, a meter of bytes (RFC 2698) in each entry polices them, and a bitmap
// of ports multicasts. Language: P4_14, for v1model.
//
// P4_14 has no time to measure the gap between frames with, so token buckets stand in for the account of the standard. afdx.p4 has
// that and the checks that are missing here.

#define MAX_VLS 65536
#define AFDX_PREFIX 0x03000000
#define FCS_BYTES 4
#define SHORTEST_FRAME 64
#define LONGEST_FRAME 1518
#define RED 2

// Which port sends: those of `egress_port_bitmap`.
#define EGRESS_SPEC_MULTICAST 510

// What the cells of the counter `discards` count.
#define LENGTH 0
#define PREFIX 1
#define UNKNOWN_VL 2
#define POLICED 3
#define TOO_SHORT 4
#define TOO_LONG 5
#define REASONS 6

header_type afdx_t {
    fields {
        prefix     : 32;
        vl         : 16;
        src        : 48;
        ether_type : 16;
    }
}

header_type intrinsic_metadata_t {
    fields {
        egress_port_bitmap : 64;
    }
}

header_type meta_t {
    fields {
        length    : 32;
        smin      : 32;
        smax      : 32;
        color     : 8;
        discarded : 1;
    }
}

header afdx_t afdx;
metadata intrinsic_metadata_t intrinsic_metadata;
metadata meta_t meta;

parser start {
    extract(afdx);
    return ingress;
}

meter vl_meter {
    type : bytes;
    direct : vls;
    result : meta.color;
}

counter frames {
    type : packets_and_bytes;
    direct : vls;
}

counter discards {
    type : packets;
    instance_count : REASONS;
}

action discard(reason) {
    count(discards, reason);
    modify_field(meta.discarded, 1);
    drop();
}

action measure() {
    add(meta.length, standard_metadata.packet_length, FCS_BYTES);
}

action forward(port, smin, smax) {
    modify_field(standard_metadata.egress_spec, port);
    modify_field(meta.smin, smin);
    modify_field(meta.smax, smax);
}

action forward_multicast(bitmap, smin, smax) {
    modify_field(standard_metadata.egress_spec, EGRESS_SPEC_MULTICAST);
    modify_field(intrinsic_metadata.egress_port_bitmap, bitmap);
    modify_field(meta.smin, smin);
    modify_field(meta.smax, smax);
}

table measured { actions { measure; } default_action: measure(); }
table length_discard { actions { discard; } default_action: discard(LENGTH); }
table prefix_discard { actions { discard; } default_action: discard(PREFIX); }
table police_discard { actions { discard; } default_action: discard(POLICED); }
table short_discard { actions { discard; } default_action: discard(TOO_SHORT); }
table long_discard { actions { discard; } default_action: discard(TOO_LONG); }

table vls {
    reads {
        standard_metadata.ingress_port : exact;
        afdx.vl : exact;
    }
    actions {
        forward;
        forward_multicast;
        discard;
    }
    default_action: discard(UNKNOWN_VL);
    size : MAX_VLS;
}

control ingress {
    apply(measured);
    if (meta.length < SHORTEST_FRAME or meta.length > LONGEST_FRAME) {
        apply(length_discard);
    } else {
        if (afdx.prefix != AFDX_PREFIX) {
            apply(prefix_discard);
        } else {
            apply(vls);
            if (meta.discarded == 0) {
                if (meta.length < meta.smin) {
                    apply(short_discard);
                } else {
                    if (meta.length > meta.smax) {
                        apply(long_discard);
                    } else {
                        if (meta.color == RED) {
                            apply(police_discard);
                        }
                    }
                }
            }
        }
    }
}

control egress {
}
