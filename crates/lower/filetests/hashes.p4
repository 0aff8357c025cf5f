// `random` hashes nothing: any number of the width. A selector must choose alike for a flow, so it takes crc32.
// test lower
// in: profile
// check: profile ingress.choose size 8 selector crc32 width 16 max_group_size 0
// in: body control ingress
// check: random ingress.tmp, 64w0, 64w0xffffffffffffffff
// check: m.z = zext(mod(ingress.tmp, 64w0x64), 16)
// check: hash ingress.tmp$1, identity, (m.x, m.z)
#include "../tests/common.p4"
INGRESS(ingress) {
    action_selector(HashAlgorithm.random, 8, 16) choose;
    table picks {
        key = { m.x : exact; hdr.h.a : selector; }
        actions = { NoAction; }
        implementation = choose;
    }
    apply {
        hash(m.z, HashAlgorithm.random, 16w0, { m.x }, 16w100);
        hash(m.z, HashAlgorithm.identity, 16w0, { m.x, m.z }, 16w100);
        picks.apply();
    }
}
MAIN(ingress);
