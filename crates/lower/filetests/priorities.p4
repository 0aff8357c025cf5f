// The order of entries: by place, by number either way, and by bmv2's annotation. In the IR the largest wins.
// test lower
// in: table ingress.by_place
// check: entry const priority 3 (8w1 &&& 8w0xff) => NoAction()
// check: entry const priority 2 (8w0 &&& 8w0xf) => NoAction()
// check: entry const priority 1 (8w0 &&& 8w0) => NoAction()
// in: table ingress.by_number
// check: entry priority 10 (8w1 &&& 8w0xff) => NoAction()
// check: entry priority 30 (8w0 &&& 8w0xf) => NoAction()
// in: table ingress.smallest_first
// check: entry priority 21 (8w1 &&& 8w0xff) => NoAction()
// check: entry priority 1 (8w0 &&& 8w0xf) => NoAction()
// in: table ingress.annotated
// check: entry const priority 1 (8w1 &&& 8w0xff) => NoAction()
// check: entry const priority 2 (8w2 &&& 8w0xff) => NoAction()
// check: entry const priority 3 (8w0 &&& 8w0xf) => NoAction()
#include "../tests/common.p4"
INGRESS(ingress) {
    table by_place {
        key = { m.x : ternary; }
        actions = { NoAction; }
        const entries = { 1 : NoAction(); 0 &&& 0xf : NoAction(); _ : NoAction(); }
    }
    table by_number {
        key = { m.x : ternary; }
        actions = { NoAction; }
        entries = { priority = 10: 1 : NoAction(); priority = 30: 0 &&& 0xf : NoAction(); }
    }
    table smallest_first {
        key = { m.x : ternary; }
        actions = { NoAction; }
        largest_priority_wins = false;
        entries = { priority = 10: 1 : NoAction(); priority = 30: 0 &&& 0xf : NoAction(); }
    }
    table annotated {
        key = { m.x : ternary; }
        actions = { NoAction; }
        const entries = {
            1 : NoAction() @priority(3);
            2 : NoAction();
            0 &&& 0xf : NoAction() @priority(1);
        }
    }
    apply { by_place.apply(); by_number.apply(); smallest_first.apply(); annotated.apply(); }
}
MAIN(ingress);
