// rtl
// refused: a loop that may go round more than 96 times (limit MAX_UNROLL), in P.routes (loop_of_a_parser.p4:10)
#include <core.p4>
#include <v1model.p4>
header r_t { bit<1> last; bit<7> id; }
struct headers { r_t[127] r; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { transition routes; }
    state routes {
        p.extract(hdr.r.next);
        transition select(hdr.r.last.last) { 1: accept; default: routes; }
    }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
