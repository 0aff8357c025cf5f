// rtl --device
// refused: an egress that looks at queues (s.enq_qdepth), in device: E.mark (device_with_queues.p4:16)
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
    action mark(bit<8> with) {
        hdr.h.a = with;
        hdr.h.b = s.enq_qdepth[7:0];
    }
    table t { key = { hdr.h.a: exact; } actions = { mark; NoAction; } default_action = NoAction(); }
    apply {
        t.apply();
    }
}
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
