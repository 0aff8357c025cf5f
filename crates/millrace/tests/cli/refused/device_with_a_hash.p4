// rtl --device
// refused: the hash calc, whose parameters the control plane sets, in device: I (device_with_a_hash.p4:15)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct headers { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        hash(hdr.h.b, HashAlgorithm.crc16_custom, 16w0, { hdr.h.a }, 32w65536);
    }
}
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
