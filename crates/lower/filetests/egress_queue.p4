// Fields of the metadata by which a program asks the traffic manager for a queue and for a time to send at.
// test lower
// in: body control I
// check: m.queue = 12w7
// check: m.inner.when = add(s.ingress_global_timestamp, 48w0xfa)
// check: switch.queue = zext(m.queue, 16)
// check: switch.send_time = mul(zext(m.inner.when, 64), 64w0x3e8)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct inner_t { @send_at bit<48> when; }
struct headers { h_t h; }
struct metadata { @egress_queue bit<12> queue; inner_t inner; }
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
