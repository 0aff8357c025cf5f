/* Packets go from port 0 to 1, with what a pattern matcher found in place of the source address; what it finds is counted by pattern. */
#include <core.p4>
#include <v1model.p4>

@plugin("find", passes) extern bit<16> find(out bit<32> at);

header ethernet_t { bit<48> dst; bit<16> pattern; bit<32> at; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata { }

parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        h.ethernet.pattern = find(h.ethernet.at);
        s.egress_spec = 1;
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
