// A field of the metadata that is the set of ports that get a copy. It goes before `egress_spec`, and not after `mark_to_drop`.
// test lower
// in: body control I
// check: m.ports = 16w0xa
// check: I.tmp = mux(bool_and(switch.marked_to_drop, eq(s.egress_spec, zext(9w0x1ff, 9))), 64w0, zext(m.ports, 64))
// check: I.tmp$1 = bool_and(ne(I.tmp, 64w0), eq(and(I.tmp, sub(I.tmp, 64w1)), 64w0))
// check: switch.egress_ports = mux(I.tmp$1, 64w0, I.tmp)
// check: switch.drop = bool_and(bool_and(eq(s.egress_spec, zext(9w0x1ff, 9)), eq(s.mcast_grp, 16w0)), eq(I.tmp, 64w0))
// check: switch.marked_to_drop = true
// check: s.egress_spec = zext(9w0x1ff, 9)
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct metadata { @egress_ports bit<16> ports; }
parser P(packet_in packet, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    apply {
        m.ports = 10;
        if (hdr.h.a == 0) { mark_to_drop(s); }
    }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control C(inout headers hdr, inout metadata m) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
