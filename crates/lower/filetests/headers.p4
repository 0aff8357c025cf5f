// Headers: validity, copies, aggregates that read what they write, equality, structures.
// test lower
// in: body control ingress
// check: ingress.tmp = hdr.h.b
// check: ingress.tmp$1 = hdr.h.a
// check: set_valid hdr.h
// check: hdr.h.a = ingress.tmp
// check: hdr.h.b = ingress.tmp$1
// check: branch valid(hdr.h), block2, block3
// check: set_valid hdr.g
// check: hdr.g.a = hdr.h.a
// check: set_invalid hdr.g
// check: m.c = bool_or(bool_and(not(valid(hdr.h)), not(valid(hdr.g))), bool_and(bool_and(valid(hdr.h), valid(hdr.g)), bool_and(eq(hdr.h.a, hdr.g.a), eq(hdr.h.b, hdr.g.b))))
// check: set_invalid hdr.h
// check: m.in1.p = m.in2.p
// check: m.in1.q = m.in2.q
// check: m.in2.p = 8w1
// check: set_invalid ingress.local
// check: ingress.local.a = 8w3
// check: set_valid ingress.local
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        hdr.h = { hdr.h.b, hdr.h.a };
        hdr.g = hdr.h;
        m.c = hdr.h == hdr.g;
        hdr.h = {#};
        m.in1 = m.in2;
        m.in2 = { p = 1, q = m.in2.q };
        h_t local;
        local.a = 3;
        local.setValid();
        hdr.g = local;
    }
}
MAIN(ingress);
