// Arguments: aliases where nothing can tell, copies where the callee could see the difference.
// test lower
// in: body control ingress
// check: m.y = add(m.y, m.x)
// check: ingress.a = m.x
// check: ingress.b = m.x
// check: ingress.a = 8w1
// check: ingress.b = add(ingress.b, ingress.a)
// check: m.x = ingress.a
// check: m.x = ingress.b
// check: ingress.a$1 = m.y
// check: m.y = 8w0
// check: m.y = ingress.a$1
// check: ingress.b$1 = 8w0
// check: ingress.b$1 = hdr.h.a
// check: hdr.h.b = ingress.b$1
// check: ingress.a$2 = m.z[7:0]
// check: ingress.a$2 = 8w1
// check: m.y = add(m.y, ingress.a$2)
// check: m.z = concat(m.z[15:8], ingress.a$2)
#include "../tests/common.p4"
bit<8> disjoint(in bit<8> a, inout bit<8> b) { b = b + a; return b; }
void overlap(inout bit<8> a, inout bit<8> b) { a = 1; b = b + a; }
void both(in bit<8> a, out bit<8> b) { b = a; }
INGRESS(ingress) {
    apply {
        m.z = (bit<16>)disjoint(m.x, m.y);
        overlap(m.x, m.x);
        both(m.y, m.y);
        both(hdr.h.a, hdr.h.b);
        overlap(m.z[7:0], m.y);
    }
}
MAIN(ingress);
