// Of a union at most one member is valid.
// test lower
// in: body control ingress
// check: set_valid hdr.u.x
// check: set_invalid hdr.u.y
// check: set_valid hdr.u.y
// check: set_invalid hdr.u.x
// check: hdr.u.y.s = 16w0xfffd
// check: branch valid(hdr.h), block2, block3
// check: block2:
// check: set_valid hdr.u.x
// check: set_invalid hdr.u.y
// check: block3:
// check: set_invalid hdr.u.x
// check: set_invalid hdr.u.y
// check: m.c = bool_or(valid(hdr.u.x), valid(hdr.u.y))
// check: set_invalid hdr.u.x
// check: set_invalid hdr.u.y
// check: set_invalid hdr.u.y
// check: set_invalid hdr.u.x
// check: branch valid(hdr.us[0].x), block5, block6
#include "../tests/common.p4"
INGRESS(ingress) {
    apply {
        hdr.u.x.setValid();
        hdr.u.y = { 1, 2, -3, true, 5 };
        hdr.u.x = hdr.h;
        m.c = hdr.u.isValid();
        hdr.u = {#};
        hdr.u.y.setInvalid();
        hdr.us[1] = hdr.us[0];
    }
}
MAIN(ingress);
