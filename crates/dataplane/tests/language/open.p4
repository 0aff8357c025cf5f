// What the P4_16 specification leaves open, seen from a program. The first byte of a packet chooses the case, the rest are
// operands, so that nothing is known at compile time. What a case finds out stands in `result` of the packet sent.
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
}
header result_t {
    bit<8> r0;
    bit<8> r1;
    bit<8> r2;
    bit<8> r3;
}
header item_t {
    bit<8> v;
}
header left_t {
    bit<8> l;
}
header right_t {
    bit<16> r;
}
header_union either_t {
    left_t  left;
    right_t right;
}
enum bit<8> Kind {
    One = 1,
    Two = 2
}
struct headers_t {
    op_t      op;
    result_t  result;
    item_t[3] items;
    item_t    spare;
    either_t  either;
}
struct inner_t {
    bit<8> x;
    bool   y;
}
struct metadata_t {
    inner_t inner;
    bit<8>  m;
}

parser ParserImpl(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.op);
        transition select(hdr.op.op) {
            20: items;
            21: two_items;
            22: last_index;
            23: no_match;
            _: accept;
        }
    }
    state items {
        packet.extract(hdr.items.next);
        transition items;
    }
    state two_items {
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        meta.m = (bit<8>) hdr.items.lastIndex;
        transition accept;
    }
    state no_match {
        transition select(hdr.op.a) {
            1: accept;
        }
    }
    state last_index {
        meta.m = (bit<8>) hdr.items.lastIndex;
        transition accept;
    }
}

// Functions that leave a trace of being called.
bit<8> bump(inout bit<8> counter) {
    counter = counter + 1;
    return counter;
}
bool touched(inout bit<8> counter) {
    counter = counter + 1;
    return true;
}

// Functions whose arguments are named.
struct both_t {
    bit<8> first;
    bit<8> second;
}
bit<8> digits(in bit<8> first, in bit<8> second) {
    return first * 10 + second;
}
void give(out bit<8> first, out bit<8> second) {
    first = 1;
    second = 2;
}

// Functions whose arguments are members of a union.
bit<8> to_left(inout left_t left, in right_t right) {
    left.setValid();
    left.l = 9;
    return (bit<8>) right.r;
}
void leave_alone(inout left_t left) { }

control VerifyImpl(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressImpl(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<8> counter = 0;
    register<bit<8>>(8) cells;

    action leave(out bit<8> left) {
        // `left` is not written.
    }
    action stop(inout bit<8> value) {
        value = 9;
        exit;
    }

    action set(bit<8> value) {
        hdr.result.r0 = value;
    }
    table first_wins {
        key = {
            hdr.op.a: ternary;
        }
        actions = {
            set;
        }
        const entries = {
            1 &&& 1: set(1);
            3 &&& 3: set(2);
            _: set(3);
        }
    }
    table no_default {
        key = {
            hdr.op.a: exact;
        }
        actions = {
            set;
        }
    }

    apply {
        bit<8> local;
        inner_t pair;
        item_t fresh;
        sm.egress_spec = 1;
        hdr.result.setValid();
        if (hdr.op.op == 0) {
            // Uninitialised variables.
            hdr.result.r0 = local;
            hdr.result.r1 = pair.x;
            hdr.result.r2 = pair.y ? 8w1 : 8w2;
            hdr.result.r3 = fresh.isValid() ? 8w1 : 8w2;
        } else if (hdr.op.op == 1) {
            // Invalid headers.
            hdr.spare.v = hdr.op.a;
            hdr.result.r0 = hdr.spare.v;
            hdr.spare.setValid();
            hdr.result.r1 = hdr.spare.v;
            hdr.spare.v = hdr.op.a;
            hdr.spare.setInvalid();
            hdr.result.r2 = hdr.spare.v;
            fresh = hdr.spare;
            hdr.result.r3 = fresh.isValid() ? 8w1 : fresh.v;
        } else if (hdr.op.op == 2) {
            // An index outside a stack.
            hdr.items[hdr.op.a].setValid();
            hdr.items[hdr.op.a].v = hdr.op.b;
            hdr.result.r0 = hdr.items[hdr.op.a].v;
            hdr.result.r1 = hdr.items[hdr.op.a].isValid() ? 8w1 : 8w2;
            hdr.result.r2 = hdr.items[0].v + hdr.items[1].v + hdr.items[2].v;
            hdr.items[0].setInvalid();
            hdr.items[1].setInvalid();
            hdr.items[2].setInvalid();
        } else if (hdr.op.op == 3) {
            // One member of a union is valid at most.
            hdr.either.left.setValid();
            hdr.either.left.l = hdr.op.a;
            hdr.either.right.setValid();
            hdr.result.r0 = hdr.either.left.isValid() ? 8w1 : 8w2;
            hdr.result.r1 = hdr.either.left.l;
            hdr.result.r2 = (bit<8>) hdr.either.right.r;
            hdr.either.right.setInvalid();
            hdr.result.r3 = hdr.either.isValid() ? 8w1 : 8w2;
        } else if (hdr.op.op == 4) {
            // Values that an enum does not name keep their number.
            Kind kind = (Kind) hdr.op.a;
            hdr.result.r0 = (bit<8>) kind;
            hdr.result.r1 = kind == Kind.One ? 8w1 : 8w2;
        } else if (hdr.op.op == 5) {
            // Shifts by the width and more, of both signs.
            int<8> negative = (int<8>) hdr.op.a;
            hdr.result.r0 = hdr.op.a << hdr.op.b;
            hdr.result.r1 = hdr.op.a >> hdr.op.b;
            hdr.result.r2 = (bit<8>) (negative >> hdr.op.b);
        } else if (hdr.op.op == 6) {
            // Arithmetic on both ends.
            hdr.result.r0 = hdr.op.a + hdr.op.b;
            hdr.result.r1 = hdr.op.a |+| hdr.op.b;
            hdr.result.r2 = (bit<8>) ((int<8>) hdr.op.a |+| (int<8>) hdr.op.b);
            hdr.result.r3 = -hdr.op.a;
        } else if (hdr.op.op == 7) {
            // An `out` parameter that is not written.
            hdr.result.r0 = hdr.op.a;
            leave(hdr.result.r0);
        } else if (hdr.op.op == 8) {
            // `exit` copies out, and egress runs.
            stop(hdr.result.r0);
            hdr.result.r1 = 1;
        } else if (hdr.op.op == 9) {
            // Operands from left to right, each once; logical operators only as far as needed.
            hdr.result.r0 = bump(counter) * 10 + bump(counter);
            if (hdr.op.a == 0 && touched(counter)) { }
            if (hdr.op.a == 0 || touched(counter)) { }
            hdr.result.r1 = counter;
        } else if (hdr.op.op == 10) {
            // Entries of the source without priorities; a table without a default action.
            first_wins.apply();
            hdr.result.r1 = no_default.apply().hit ? 8w1 : 8w2;
        } else if (hdr.op.op == 11) {
            // Making one member of a union invalid.
            hdr.either.left.setValid();
            hdr.either.left.l = hdr.op.a;
            hdr.either.right.setInvalid();
            hdr.result.r0 = hdr.either.left.isValid() ? 8w1 : 8w2;
            hdr.result.r1 = hdr.either.left.l;
        } else if (hdr.op.op == 12) {
            // What comes first behind ingress.
            hdr.result.r0 = (bit<8>) sm.instance_type;
            if (sm.instance_type == 0) {
                mark_to_drop(sm);
            }
            if (hdr.op.a == 1) {
                sm.egress_spec = 2;
            } else if (hdr.op.a == 2) {
                sm.mcast_grp = 1;
            } else if (hdr.op.a == 3 && sm.instance_type == 0) {
                resubmit_preserving_field_list(0);
            }
        } else if (hdr.op.op == 13) {
            // Behind egress; what recirculates is parsed as case 13 again.
            if (sm.instance_type == 0) {
                hdr.result.r0 = 13;
                hdr.result.r1 = hdr.op.a;
            } else {
                hdr.result.r0 = (bit<8>) sm.instance_type;
            }
        } else if (hdr.op.op == 14) {
            // Arguments and members with names: as they are written, and copied back so.
            hdr.result.r0 = digits(second = bump(counter), first = bump(counter));
            both_t both = { second = bump(counter), first = bump(counter) };
            hdr.result.r1 = both.first * 10 + both.second;
            give(second = hdr.result.r2, first = hdr.result.r2);
            cells.write(value = bump(counter), index = (bit<32>) bump(counter));
            cells.read(hdr.result.r3, 6);
        } else if (hdr.op.op == 16) {
            // Arguments of externs, and members of lists among them.
            hash(hdr.result.r0, HashAlgorithm.identity, counter, { bump(counter), counter }, 16w256);
            hdr.result.r1 = counter;
            cells.write((bit<32>) bump(counter), counter);
            cells.read(hdr.result.r2, 2);
            hash(hdr.result.r3, HashAlgorithm.identity, bump(counter), { counter, bump(counter) }, counter ++ 8w0);
        } else if (hdr.op.op == 15) {
            // An invalid header copied to a member of a union, also where a call ends.
            left_t invalid;
            hdr.either.right.setValid();
            hdr.either.left = invalid;
            hdr.result.r0 = hdr.either.isValid() ? 8w1 : 8w2;
            hdr.either.right.setValid();
            hdr.either.right.r = (bit<16>) hdr.op.a;
            hdr.result.r1 = to_left(hdr.either.left, hdr.either.right);
            hdr.result.r2 = hdr.either.right.isValid() ? 8w1 : hdr.either.left.l;
            hdr.either.right.setValid();
            leave_alone(hdr.either.left);
            hdr.result.r3 = hdr.either.isValid() ? 8w1 : 8w2;
        } else {
            hdr.result.r0 = meta.m;
            hdr.result.r1 = sm.parser_error == error.NoError ? 8w0
                          : sm.parser_error == error.StackOutOfBounds ? 8w1
                          : sm.parser_error == error.PacketTooShort ? 8w2
                          : sm.parser_error == error.NoMatch ? 8w3 : 8w4;
        }
    }
}

control EgressImpl(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.op.op == 8) {
            hdr.result.r2 = 7;
        } else if (hdr.op.op == 12) {
            hdr.result.r1 = (bit<8>) sm.instance_type;
            hdr.result.r2 = (bit<8>) sm.egress_spec;
        } else if (hdr.op.op == 13) {
            if (hdr.result.r0 == 13) {
                recirculate_preserving_field_list(0);
            } else {
                hdr.result.r1 = (bit<8>) sm.instance_type;
            }
            if (hdr.op.a == 0) {
                mark_to_drop(sm);
            }
        }
    }
}

control ComputeImpl(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control DeparserImpl(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.items);
    }
}

V1Switch(ParserImpl(), VerifyImpl(), IngressImpl(), EgressImpl(), ComputeImpl(), DeparserImpl()) main;
