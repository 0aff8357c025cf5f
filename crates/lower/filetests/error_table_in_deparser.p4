// test lower
// error: a table cannot be applied here
#include "../tests/common.p4"
control D(packet_out p, in headers_t hdr) {
    table t { key = { hdr.h.a : exact; } actions = { NoAction; } }
    apply { t.apply(); }
}
V1Switch(NoParser(), NoVerify(), NoIngress(), NoEgress(), NoCompute(), D()) main;
