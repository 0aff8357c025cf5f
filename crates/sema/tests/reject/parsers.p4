#include <core.p4>

struct S { bit<8> a; }

parser NoStart(packet_in p) { //~ ERROR E0701 no state `start`
    state other { transition accept; }
}
parser Names(packet_in p) {
    state start { transition nxt; } //~ ERROR E0702 no state `nxt`
    state next { transition accept; }
    state next { transition accept; } //~ ERROR E0102 `next` is declared twice
    state accept { transition reject; } //~ ERROR E0703 is built in
}
parser Sets(packet_in p, in S s, in bit<8> x)(bit<8> c) {
    value_set<bit<16>>(4) wide;
    state start {
        transition select(x, x) {
            (1, 2): accept;
            (1, 2, 3): reject; //~ ERROR E0704 3 sets of values are given for 2 keys
            (c, 0x0F &&& 0xF0): accept;
            (x &&& 1, _): accept; //~ ERROR E0302 must be known at compile time
            default: accept;
            (5, 6): reject; //~ WARN W0002 never reached
        }
    }
    state by_struct {
        transition select(s) { //~ ERROR E0704 cannot select on a `S`
            default: accept;
        }
    }
    state by_set {
        transition select(x) {
            wide: accept; //~ ERROR E0704 a value set over `bit<16>`
            true: accept; //~ ERROR E0201 expected `bit<8>`, found `bool`
            default: reject;
        }
    }
}
parser Endless(packet_in p) { //~ ERROR E0705 never reaches
    state start { transition again; }
    state again { transition start; }
}
