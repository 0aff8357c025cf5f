#include <core.p4>

enum E { a, b }

bit<8> missing(in bool b) { //~ ERROR E0603 does not return a `bit<8>` on every path
    if (b) { return 1; }
}
bit<8> all_paths(in E e) {
    switch (e) {
        E.a: { return 1; }
        default: { return 2; }
    }
}
void nothing() {
    return 1; //~ ERROR E0602 nothing can be returned here
}
bit<8> something() {
    return; //~ ERROR E0602 must give a `bit<8>`
    break; //~ ERROR E0601 in loops only
    exit; //~ ERROR E0601 `exit` is not allowed in a function
}

control C(inout bit<8> v) {
    action a() {}
    action b() {}
    table t { key = { v : exact; } actions = { a; } default_action = a; }
    apply {
        switch (v) {
            1: {}
            2: {}
            1: {} //~ ERROR E0604 appears twice
            default: {}
            3: {} //~ ERROR E0604 `default` must be the last label
        }
        switch (t.apply().action_run) {
            a: {}
            b: {} //~ ERROR E0604 not an action of the table `t`
        }
        switch ("text") {} //~ ERROR E0605 cannot choose by a `string`
        for (bit<8> i in 1 .. 3) { continue; }
        if (v) {} //~ ERROR E0201 expected `bool`
        v.x = 1; //~ ERROR E0104 has no member `x`
    }
}
