// exit runs the copy-outs of all calls around it and ends the top-level control; return ends one call.
// test lower
// in: body control ingress
// check: ingress.i.v = hdr.h.a
// check: branch eq(ingress.i.v, 8w1), block3, block4
// check: block1:
// check: switch.egress_spec = zext(sm.egress_spec, 32)
// check: block2:
// check: hdr.h.a = ingress.i.v
// check: m.x = 8w9
// check: goto block1
// check: block3:
// check: goto block2
// check: branch eq(ingress.i.v, 8w3), block6, block7
// check: block6:
// check: goto block9
// check: block9:
// check: hdr.h.a = ingress.i.v
// check: goto block1
#include "../tests/common.p4"
control inner(inout bit<8> v) {
    action leave() { exit; }
    apply {
        if (v == 1) { return; }
        v = v + 1;
        if (v == 3) { leave(); }
        v = v + 2;
    }
}
INGRESS(ingress) {
    inner() i;
    apply {
        i.apply(hdr.h.a);
        m.x = 9;
    }
}
MAIN(ingress);
