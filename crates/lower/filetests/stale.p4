// An action of a table finds in a header that it has taken off what was there, as in bmv2; a control does not.
// test lower
// in: body action I.decap
// check: hdr.t.id.held24 = hdr.t.id
// check: set_invalid hdr.t
// check: count I.taken, zext(hdr.t.id.held24, 32)
// in: body control I {
// check: set_invalid hdr.u
// check: m.seen = hdr.u.id
#include <core.p4>
#include <v1model.p4>
header t_t { bit<16> id; }
struct headers_t { t_t t; t_t u; }
struct meta_t { bit<16> seen; }
parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.t); p.extract(hdr.u); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply {} }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    counter(16, CounterType.packets) taken;
    action decap() { hdr.t.setInvalid(); taken.count((bit<32>) hdr.t.id); }
    table tunnels { key = { hdr.t.id: exact; } actions = { decap; NoAction; } default_action = NoAction(); }
    apply {
        tunnels.apply();
        hdr.u.setInvalid();
        m.seen = hdr.u.id;
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t m) { apply {} }
control D(packet_out p, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
