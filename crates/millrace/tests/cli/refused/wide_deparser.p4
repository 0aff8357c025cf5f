// rtl
// refused: a value of 16408 bits, more than 16320 (limit MAX_VALUE), in D (wide_deparser.p4:25)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
header big_t { bit<2048> x; }
struct headers { h_t h; big_t[8] big; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        hdr.big[0].setValid(); hdr.big[1].setValid();
        hdr.big[2].setValid(); hdr.big[3].setValid();
        hdr.big[4].setValid(); hdr.big[5].setValid();
        hdr.big[6].setValid(); hdr.big[7].setValid();
        hdr.big[7].x = 1;
    }
}
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }

control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
