#include <core.p4>
#include <v1model.p4>

header H { bit<8> a; }
extern void two(in bit<8> a, in bit<8> b);
extern void over(in bit<8> a);
extern void over(in bit<8> b);
extern void over(in bit<8> a, in bit<8> b);
extern void later(@optional in bit<8> a = 1); //~ ERROR E0406 optional parameter cannot have a default
extern void back(out bit<8> a = 1); //~ ERROR E0406 only values that go in

extern Obj {
    Obj(in bit<8> x); //~ ERROR E0405 has no direction
    void use(inout Obj2 other); //~ ERROR E0101 no type named `Obj2`
}
parser Sub(packet_in p) { state start { transition accept; } }
control Ctl() { apply {} }
action order(bit<8> data, in bit<8> directed) {} //~ ERROR E0405 must stand before

bit<8> f(in bit<8> x) {
    two(x); //~ ERROR E0401 no argument is given for `b`
    two(x, x, x); //~ ERROR E0401 takes 2 arguments, but 3
    two(a = x, c = x); //~ ERROR E0401 has no parameter `c`
    two(a = x, x); //~ ERROR E0401 either all arguments or none must be named
    over(x); //~ ERROR E0404 more than one declaration
    over(b = x);
    over(); //~ ERROR E0401 no declaration of `over` takes 0 arguments
    two(_, x); //~ ERROR E0309 `_` can be given only for
    x(1); //~ ERROR E0402 `x` is a variable and cannot be called
    order(1, 2); //~ ERROR E0403 actions cannot be called in a function
    verify(x == 1, error.NoError); //~ ERROR E0403 in parsers only
    return x;
}

control Calls(inout H h) {
    table t { key = { h.a : exact; } actions = { NoAction; } }
    action a() {
        t.apply(); //~ ERROR E0403 tables cannot be applied in an action
        Ctl.apply(); //~ ERROR E0403 nothing can be applied in an action
    }
    apply {
        h.extract(); //~ ERROR E0104 has no method `extract`
        h.setValid(1); //~ ERROR E0401 takes no arguments
        mark_to_drop(); //~ WARN W0004 deprecated
    }
}

parser Extract(packet_in p, out H h) {
    bit<8> x;
    state start {
        p.extract(x); //~ ERROR E0951 fills a header
        p.extract(h, 8); //~ ERROR E0951 no varbit member
        transition accept;
    }
}

bit<8> twin(in bit<8> a) { return a; }
bit<8> twin(in bit<8> a) { return a + 1; } //~ WARN W0006 no call can tell this `twin` from
bit<8> twin(in bit<8> b, in bit<8> c) { return b + c; }
bit<8> which(in bit<8> x) {
    bit<8> clear = twin(x, x);
    return twin(x); //~ ERROR E0404 twin
}
extern void native(in bit<8> a);
extern void native(in bit<8> a); //~ ERROR E0102 declared twice
