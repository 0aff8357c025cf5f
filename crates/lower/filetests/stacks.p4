// Stacks: constant and run-time indices, push and pop, copies, equality.
// test lower
// in: body control ingress
// check: hdr.st[1].a = hdr.st[0].a
// check: m.x = mux(lt(ingress.tmp, 8w3), mux(lt(ingress.tmp, 8w1), hdr.st[0].b, mux(lt(ingress.tmp, 8w2), hdr.st[1].b, hdr.st[2].b)), 8w0)
// check: hdr.st[0].a = mux(eq(ingress.tmp$1, 8w0), m.x, hdr.st[0].a)
// check: hdr.st[1].a = mux(eq(ingress.tmp$1, 8w1), m.x, hdr.st[1].a)
// check: hdr.st[2].a = mux(eq(ingress.tmp$1, 8w2), m.x, hdr.st[2].a)
// check: select (ingress.tmp$2) {
// check: set_valid hdr.st[2]
// check: set_invalid hdr.st[0]
// check: hdr.st.nextIndex = mux(le(hdr.st.nextIndex, 32w2), add(hdr.st.nextIndex, 32w1), 32w3)
// check: set_invalid hdr.st[1]
// check: set_invalid hdr.st[2]
// check: hdr.st.nextIndex = mux(le(32w2, hdr.st.nextIndex), sub(hdr.st.nextIndex, 32w2), 32w0)
// check: set_invalid hdr.h
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        hdr.st[1].a = hdr.st[0].a;
        m.x = hdr.st[m.y].b;
        hdr.st[m.y].a = m.x;
        hdr.st[m.y].setValid();
        hdr.st.push_front(1);
        hdr.st.pop_front(2);
        if (hdr.st[0] == hdr.st[1]) { m.x = 1; }
        hdr.h = hdr.st[m.x];
    }
}
MAIN(ingress);
