// Drops every packet: what a switch runs until a controller brings a program.
#include <core.p4>
#include <v1model.p4>

struct none_t {}

parser Parse(packet_in packet, out none_t hdr, inout none_t meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control Check(inout none_t hdr, inout none_t meta) { apply {} }
control In(inout none_t hdr, inout none_t meta, inout standard_metadata_t std) {
    apply { mark_to_drop(std); }
}
control Out(inout none_t hdr, inout none_t meta, inout standard_metadata_t std) { apply {} }
control Compute(inout none_t hdr, inout none_t meta) { apply {} }
control Deparse(packet_out packet, in none_t hdr) { apply {} }

V1Switch(Parse(), Check(), In(), Out(), Compute(), Deparse()) main;
