// rtl --device
// refused: an egress that looks at what earlier packets have left (E.seen), with more than one queue a port, in device: E (device_with_a_register.p4:17)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
    register<bit<8>>(16) seen;
    apply {
        hdr.h.a = 1;
        seen.read(hdr.h.b, 3);
    }
}
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
