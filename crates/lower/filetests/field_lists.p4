// Lists with `@field_list(n)` keep their number; those that calls name are numbered from 257. Without a list a call
// names number 0, or 256 where the program has a list 0 of its own.
// test lower
// check: field_list 0 (m.kept)
// check: field_list 3 (m.kept, m.other)
// check: field_list 257 (m.other)
// in: body control ingress
// check: switch.clone_list = 32w0x100
// check: switch.clone_list = 32w3
// check: switch.clone_list = 32w0x101
#include <core.p4>
#include <v1model.p4>
struct headers_t { }
const int THIRD = 2 + 1;
struct meta_t { @field_list(0, 3) bit<8> kept; @field_list(THIRD) bit<8> other; }
parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply {} }
control ingress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {
    apply {
        clone(CloneType.I2E, 1);
        clone_preserving_field_list(CloneType.I2E, 1, 3);
        clone3(CloneType.I2E, 1, { m.other });
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t m) { apply {} }
control D(packet_out p, in headers_t hdr) { apply {} }
V1Switch(P(), V(), ingress(), E(), C(), D()) main;
