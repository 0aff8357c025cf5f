// Verification sets checksum_error, computation writes the field; both only under their condition.
// test lower
// in: body control V
// check: branch valid(hdr.h), block2, block3
// check: hash V.tmp, csum16, (hdr.h.a, hdr.h.b)
// check: branch ne(V.tmp, m.z), block4, block5
// check: sm.checksum_error = 1w1
// check: hash V.tmp$1, csum16, (header hdr.g, payload)
// in: body control C
// check: branch m.c, block2, block3
// check: hash C.tmp, csum16, (m.x, hdr.v.data, payload)
// check: m.z = C.tmp
#include "../tests/common.p4"
control V(inout headers_t hdr, inout meta_t m) {
    apply {
        verify_checksum(hdr.h.isValid(), { hdr.h.a, hdr.h.b }, m.z, HashAlgorithm.csum16);
        verify_checksum_with_payload(true, { hdr.g }, m.z, HashAlgorithm.csum16);
    }
}
control C(inout headers_t hdr, inout meta_t m) {
    apply { update_checksum_with_payload(m.c, { m.x, hdr.v.data }, m.z, HashAlgorithm.csum16); }
}
V1Switch(NoParser(), V(), NoIngress(), NoEgress(), C(), NoDeparser()) main;
