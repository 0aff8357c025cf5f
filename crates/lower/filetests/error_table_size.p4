// test lower
// error: the size of a table is 0 to
#include "../tests/common.p4"
INGRESS(ingress) {
    table t { key = { m.x : exact; } actions = { NoAction; } size = 1000000000; }
    apply { t.apply(); }
}
MAIN(ingress);
