// test lower
// error: a plugin takes and gives numbers and truth values
#include "../tests/common.p4"
@plugin("find") extern bit<8> find(in h_t h);
INGRESS(I) { apply { m.x = find(hdr.h); } }
MAIN(I);
