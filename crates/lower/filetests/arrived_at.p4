// A field of the metadata that holds when the packet came.
// test lower
// in: body parser P
// check: m.arrived = switch.ingress_timestamp
#include <core.p4>
#include <v1model.p4>
header h_t { bit<64> a; }
struct headers { h_t h; }
struct metadata { @arrived_at("ns") bit<64> arrived; }
parser P(packet_in packet, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply { hdr.h.a = m.arrived; } }
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control C(inout headers hdr, inout metadata m) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
