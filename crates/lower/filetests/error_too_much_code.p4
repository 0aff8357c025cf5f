// test lower
// error: more than 131072 blocks of code
#include "../tests/common.p4"
#define TWICE(a, b) void a(inout bit<8> v) { b(v); b(v); b(v); b(v); b(v); b(v); b(v); b(v); }
void f0(inout bit<8> v) { if (v == 3) { v = v + 1; } }
TWICE(f1, f0)
TWICE(f2, f1)
TWICE(f3, f2)
TWICE(f4, f3)
TWICE(f5, f4)
TWICE(f6, f5)
INGRESS(ingress) { apply { f6(m.x); } }
MAIN(ingress);
