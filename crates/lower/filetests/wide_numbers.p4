// An `int` that depends on the packet has 128 bits until it becomes a number of a width again.
// test lower
// in: body control ingress
// check: m.z = zext(add(zext(m.x, 128), 128w0x3e8), 16)
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        m.z = (bit<16>)((int)m.x + 1000);
    }
}
MAIN(ingress);
