// A variable without initial value is 0 whenever its declaration runs, also in the second round of a loop.
// test lower
// in: body control ingress
// check: block2:
// check: ingress.fresh = 8w0
// check: ingress.fresh = add(ingress.fresh, 8w1)
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        for (bit<8> i in 0 .. 3) {
            bit<8> fresh;
            fresh = fresh + 1;
            m.x = fresh;
        }
    }
}
MAIN(ingress);
