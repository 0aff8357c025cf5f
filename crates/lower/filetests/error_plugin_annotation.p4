// test lower
// error: `@plugin("NAME")` is expected
#include "../tests/common.p4"
@plugin("find", writes) extern bit<8> find();
INGRESS(I) { apply { m.x = find(); } }
MAIN(I);
