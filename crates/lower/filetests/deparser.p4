// emit of headers, stacks, unions and structures is that of their headers.
// test lower
// in: body deparser D
// check: emit hdr.h
// check: emit hdr.st[0]
// check: emit hdr.st[1]
// check: emit hdr.st[2]
// check: emit hdr.u.x
// check: emit hdr.u.y
// check: emit hdr.g
// check: emit hdr.w
// check: set_valid D.tmp
// check: D.tmp.a = 8w1
// check: D.tmp.b = 8w2
// check: emit D.tmp
#include "../tests/common.p4"
control D(packet_out p, in headers_t hdr) {
    apply {
        p.emit(hdr.h);
        p.emit(hdr.st);
        p.emit(hdr.u);
        p.emit({ hdr.g, hdr.w });
        p.emit((h_t){ 1, 2 });
    }
}
V1Switch(NoParser(), NoVerify(), NoIngress(), NoEgress(), NoCompute(), D()) main;
