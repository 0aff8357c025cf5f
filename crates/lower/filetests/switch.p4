// switch over values: labels without statements share those of the next.
// test lower
// in: body control ingress
// check: select (m.x) {
// check: 8w1 => block4
// check: 8w2 => block4
// check: 8w0x10 => block5
// check: default => block3
// check: select (m.y) {
// check: 8w2 => block7
// check: default => block6
#include "../tests/common.p4"
enum bit<8> E { one = 1, two = 2 }
INGRESS(ingress) {
    apply {
        switch (m.x) {
            1:
            2: { m.y = 1; }
            0x10: { m.y = 2; }
            default: { m.y = 3; }
        }
        switch ((E)m.y) {
            E.two: { m.z = 2; }
        }
    }
}
MAIN(ingress);
