// Keysets that are not constant become conditions in their place; what else their case says is a condition too.
// test lower
// in: body parser P
// check: P.flag = true
// check: P.tmp = bool_to_bits(m.c)
// check: P.tmp$1 = m.x
// check: branch bool_and(eq(P.tmp, bool_to_bits(P.flag)), bool_and(le(8w3, P.tmp$1), le(P.tmp$1, 8w9))), block3, block5
// check: (1w1, 8w7) => block3
// check: default => block4
#include "../tests/common.p4"
PARSER(P) {
    bool flag = true;
    state start {
        transition select(m.c, m.x) {
            (flag, 3 .. 9): one;
            (true, 7): one;
        }
    }
    state one { transition accept; }
}
MAIN_PARSER(P);
