// rtl --device
// refused: a hash or checksum over the payload, in device: C (device_with_the_payload.p4:16)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> sum; }
struct headers { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta_t m) { apply { } }
control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers hdr, inout meta_t m) {
    apply {
        update_checksum_with_payload(true, { hdr.h.a, 8w0 }, hdr.h.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
