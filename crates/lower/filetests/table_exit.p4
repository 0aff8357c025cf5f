// The exit edge of an application: only where an action of the table can exit.
// test lower
// in: body action ingress.stop
// check: exit
// in: table ingress.stays
// check: const_default ingress.go(8w3)
// in: body control ingress
// check: apply ingress.quits, hit = ingress.tmp, next = block2, exit = block1
// check: apply ingress.stays, action = ingress.tmp$1, next = block6, exit = block6
// check: select (ingress.tmp$1) {
// check: 16w0 => block9
// check: default => block8
// check: block8:
// check: m.y = 8w3
// check: block9:
// check: m.y = 8w2
#include "../tests/common.p4"
INGRESS(ingress) {
    action stop() { exit; }
    action go(bit<8> v) { m.x = v; }
    table quits { key = { m.y : exact; } actions = { stop; go; } default_action = stop(); }
    table stays { key = { m.y : exact; } actions = { go; NoAction; } const default_action = go(3); size = 16; }
    apply {
        if (quits.apply().hit) { m.y = 1; }
        switch (stays.apply().action_run) {
            go: { m.y = 2; }
            default: { m.y = 3; }
        }
    }
}
MAIN(ingress);
