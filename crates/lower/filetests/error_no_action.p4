// test lower
// error: the name `NoAction` is taken by an action that does something
#include "../tests/common.p4"
INGRESS(ingress) {
    @name(".NoAction") action mine() { m.y = 1; }
    table t { key = { m.x : exact; } actions = { mine; } }
    apply { t.apply(); }
}
MAIN(ingress);
