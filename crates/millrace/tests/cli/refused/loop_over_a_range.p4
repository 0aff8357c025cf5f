// rtl
// refused: a loop that may go round more than 96 times (limit MAX_UNROLL), in I (loop_over_a_range.p4:19)
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
    apply {
        s.egress_spec = 1;
        if (hdr.h.a > 3) {
            hdr.h.b = 0;
        }

        for (bit<8> i in 1..hdr.h.a) {
            hdr.h.b = hdr.h.b + i;
        }
    }
}
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
