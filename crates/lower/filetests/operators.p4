// Each operator and cast, signed and unsigned.
// test lower
// in: body control ingress
// check: m.x = add_sat(m.x, m.y)
// check: hdr.w.s = sub_sat_signed(hdr.w.s, 16w5)
// check: hdr.w.s = shr_signed(hdr.w.s, 32w3)
// check: m.x = shr(m.x, m.y)
// check: m.c = lt_signed(hdr.w.s, 16w4)
// check: m.c = lt(m.y, m.x)
// check: m.z = zext(m.x, 16)
// check: hdr.w.s = sext(m.x, 16)
// check: m.x = zext(bool_to_bits(m.c), 8)
// check: m.x = concat(concat(m.x[7:4], m.y[7:5]), m.x[0:0])
// check: hdr.w.lo = concat(hdr.w.hi, m.x)
// check: m.x = add(m.x, 8w3)
// check: m.z = zext(and(m.x, bit_not(m.y)), 16)
// check: m.x = zext(hdr.w.s, 8)
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        m.x = m.x |+| m.y;
        hdr.w.s = hdr.w.s |-| 5;
        hdr.w.s = hdr.w.s >> 3;
        m.x = m.x >> m.y;
        m.c = hdr.w.s < 16s4;
        m.c = m.x > m.y;
        m.z = (bit<16>)m.x;
        hdr.w.s = (int<16>)(int<8>)m.x;
        m.x = (bit<8>)(bit<1>)m.c;
        m.x[3:1] = m.y[7:5];
        hdr.w.lo = hdr.w.hi ++ m.x;
        m.x += 3;
        m.z = (bit<16>)(m.x & ~m.y);
        m.x = (bit<8>)(bit<16>)hdr.w.s;
    }
}
MAIN(ingress);
