/* The first byte after the type of Ethernet says how a plugin misbehaves; packets go from port 0 to 1. The second plugin is called
   by an annotated action. */
#include <core.p4>
#include <v1model.p4>

@plugin("faulty", rewrites) extern bit<8> faulty(in bit<8> how);

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; bit<8> how; }
struct headers { ethernet_t ethernet; }
struct metadata { }

parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    @plugin("empty") action send(bit<9> port) { s.egress_spec = port; }
    apply {
        h.ethernet.how = faulty(h.ethernet.how);
        send(1);
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
