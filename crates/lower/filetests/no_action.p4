// A table that needs `NoAction` has it once, also if an action of the program has its name; p4c prints such programs.
// test lower
// in: table ingress.by_default
// check: action ingress.set
// check: action NoAction#...
// check-not: default_only
// in: table ingress.of_groups
// check: action NoAction#...
// check-not: default_only
// in: table ingress.without
// check: action NoAction...default_only
#include "../tests/common.p4"
INGRESS(ingress) {
    action set() { m.y = 1; }
    @name(".NoAction") action mine() {}
    table by_default { key = { m.x : exact; } actions = { set; mine; } }
    table of_groups {
        key = { m.x : exact; m.y : selector; }
        actions = { set; mine; }
        default_action = mine();
        implementation = action_selector(HashAlgorithm.crc16, 16, 8);
    }
    table without { key = { m.x : exact; } actions = { set; } }
    apply { by_default.apply(); of_groups.apply(); without.apply(); }
}
MAIN(ingress);
