// test lower
// error: `@egress_queue` is for a field of type bit<W>, of at most 16 bits
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct inner_t { @send_at bit<48> when; }
struct headers { h_t h; }
struct metadata { @egress_queue bit<24> queue; inner_t inner; }
parser P(packet_in packet, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    apply {
        m.queue = 7;
        m.inner.when = s.ingress_global_timestamp + 250;
    }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control C(inout headers hdr, inout metadata m) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
