// rtl
// refused: a division of 136 bits, more than 128 (limit MAX_QUOTIENT), in I (division_in_an_action.p4:16)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<136> a; bit<136> b; }
struct headers { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
    action share() {
        if (hdr.h.b > 3) {

            hdr.h.a = hdr.h.a / hdr.h.b;
        }
    }
    apply {
        s.egress_spec = 1;
        share();
    }
}
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
