// bit<0> has no storage; what is computed with it vanishes.
// test lower
// in: body control ingress
// check: m.y = 8w1
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        bit<0> nothing = 0;
        m.x = (m.x ++ nothing) + (bit<8>)nothing;
        if (nothing == nothing) { m.y = 1; }
    }
}
MAIN(ingress);
