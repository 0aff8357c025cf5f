// Every instance has its own tables, registers and names; constructor parameters are constants.
// test lower
// in: register
// check: register ingress.p.one.cells: bit<8> size 10
// check: register ingress.p.second.cells: bit<8> size 20
// in: table ingress.p.one.t
// check: key v: exact = m.x
// in: table ingress.p.second.t
// check: key v: exact = ingress.p.second.v
// in: body action ingress.p.one.bump
// check: m.x = add(m.x, ingress.p.one.local)
// check: register_write ingress.p.one.cells, 32w0, m.x
// in: body control ingress
// check: ingress.p.one.local = 8w1
// check: ingress.p.second.v = m.y
// check: ingress.p.second.local = 8w2
// check: m.y = ingress.p.second.v
// check: ingress.p.second.v = m.x
// check: m.x = ingress.p.second.v
#include "../tests/common.p4"
control counted(inout bit<8> v)(bit<8> start, bit<32> size) {
    register<bit<8>>(size) cells;
    bit<8> local = start;
    action bump() { v = v + local; cells.write(0, v); }
    table t { key = { v : exact; } actions = { bump; } default_action = bump(); }
    apply { t.apply(); }
}
control pair(inout meta_t meta) {
    counted(1, 10) one;
    @name("second") counted(2, 20) two;
    apply { one.apply(meta.x); two.apply(meta.y); two.apply(meta.x); }
}
INGRESS(ingress) {
    pair() p;
    apply { p.apply(m); }
}
MAIN(ingress);
