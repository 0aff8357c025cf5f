// Plugins: what goes in and what comes out are words of 64 bits, the most significant first; an annotated action calls its plugin
// with its parameters before all else.
// test lower
// check: plugin find passes
// check: plugin seal rewrites
// check: plugin watch
// in: body control I
// check: call I.tmp, find, (concat(hdr.h.a, hdr.h.b)), 2
// check: call_result I.tmp$1, 0
// check: call_result I.tmp$2, 1
// check: stop ne(I.tmp, 1w0)
// check: call ..., seal, (128w0x10000000000000002[127:64], 128w0x10000000000000002[63:0], bool_to_bits(m.c)), 3
// check: m.c = ne(I.tmp$4, 64w0)
// check: I.tag = zext(concat(I.tmp$5, I.tmp$6), 72)
// check: call ..., watch, (8w9), 0
// check: stop ...
// check: m.x = 8w9
#include "../tests/common.p4"
@plugin("find", passes) extern bit<16> find(in bit<16> what, out bool known);
@plugin("seal", rewrites) extern void seal(in bit<128> key, inout bool flag, out bit<72> tag);
INGRESS(I) {
    @plugin("watch") action note(in bit<8> what) { m.x = what; }
    bit<72> tag;
    apply {
        m.z = find(hdr.h.a ++ hdr.h.b, m.c);
        seal((bit<128>)1 << 64 | 2, m.c, tag);
        m.y = tag[71:64];
        note(9);
    }
}
MAIN(I);
