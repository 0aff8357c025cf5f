// Left to right: what was evaluated keeps its value when a later operand changes the storage.
// test lower
// in: body control ingress
// check: ingress.tmp = m.x
// check: m.x = add(m.x, 8w1)
// check: ingress.tmp$1 = m.x
// check: m.z = concat(ingress.tmp, ingress.tmp$1)
// check: ingress.tmp$2 = m.c
// check: branch ingress.tmp$2, block3, block4
// check: block3:
// check: m.x = 8w7
// check: branch m.c, block9, block10
// check: block9:
// check: m.x = add(m.x, 8w1)
// check: block10:
// check: ingress.tmp$4 = m.x
#include "../tests/common.p4"
bit<8> next(inout bit<8> v) { v = v + 1; return v; }
bool yes(inout bit<8> v) { v = 7; return true; }
INGRESS(ingress) {
    apply {
        m.z = m.x ++ next(m.x);
        if (m.c && yes(m.x)) { m.y = 1; }
        m.y = m.c ? next(m.x) : m.x;
    }
}
MAIN(ingress);
