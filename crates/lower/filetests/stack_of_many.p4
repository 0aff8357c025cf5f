// An element with a number that is known takes nothing of the others: a stack of many may be filled element by element, often.
// test lower
// check: header ingress.s[1023]: one_t {
#include "../tests/common.p4"
header one_t { bit<8> v; }
INGRESS(ingress) {
    one_t[1024] s;
    action f0() { s[0].setValid(); s[1].setValid(); s[2].setValid(); s[3].setValid(); }
    action f1() { f0(); f0(); f0(); f0(); f0(); f0(); f0(); f0(); }
    action f2() { f1(); f1(); f1(); f1(); f1(); f1(); f1(); f1(); }
    apply {
        f2();
        f2();
        f2();
        s[1023].v = 1;
        if (s[3].isValid()) { m.x = s[1023].v; }
    }
}
MAIN(ingress);
