// rtl
// refused: more than 4096 cycles in a stage (limit MAX_LATENCY), in egress, most of them in X (cycles_of_egress.p4:13)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<128> a; bit<128> b; }
struct headers { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control X(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
    apply {
        for (bit<8> i in 1..80) {
            hdr.h.a = (hdr.h.a + 1) / hdr.h.b;
        }
    }
}
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), X(), V(), D()) main;
