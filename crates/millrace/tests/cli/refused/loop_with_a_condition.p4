// rtl
// refused: a loop that may go round more than 96 times (limit MAX_UNROLL), in I.sum (loop_with_a_condition.p4:16)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
    action sum(bit<8> most) {
        hdr.h.b = 0;
        bit<8> other = hdr.h.a;
        for (bit<8> i = 0;
             i != most;
             i = i + 3) {
            if (other == 7) {
                hdr.h.b = hdr.h.b + i;
            }
            other = other + 1;
        }
    }
    table t { key = { hdr.h.a: exact; } actions = { sum; } default_action = sum(3); }
    apply {
        s.egress_spec = 1;
        t.apply();
    }
}
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
