// Loops stay loops; those over lists are unrolled.
// test lower
// in: body control ingress
// check: ingress.i = 8w0
// check: branch lt(ingress.i, m.y), block5, block4
// check: block3:
// check: ingress.i = add(ingress.i, 8w1)
// check: block5:
// check: branch eq(ingress.i, 8w4), block6, block7
// check: branch eq(ingress.i, 8w2), block9, block10
// check: m.x = xor(m.x, ingress.j)
// check: ingress.k = 8w5
// check: m.z = add(m.z, zext(ingress.k, 16))
// check: ingress.k = 8w6
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        for (bit<8> i = 0; i < m.y; i = i + 1) {
            if (i == 4) { break; }
            if (i == 2) { continue; }
            m.x = m.x + i;
        }
        for (bit<8> j in 1 .. 255) { m.x = m.x ^ j; }
        for (bit<8> k in (list<bit<8>>){5, 6}) { m.z = m.z + (bit<16>)k; }
    }
}
MAIN(ingress);
