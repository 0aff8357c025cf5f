#include <core.p4>

struct S { bit<8> a; }
header H { bit<8> a; }
extern bit<8> random();

bit<8> f(in bit<8> x, in int<8> y, inout bit<16> z) {
    z = x + z; //~ ERROR E0301 `+` is not defined on `bit<8>` and `bit<16>`
    z = (bit<16>)(x + (bit<8>)y);
    bool b = !x; //~ ERROR E0301 `!` is not defined on `bit<8>`
    bit<8> n = ~1; //~ ERROR E0301 `~` is not defined on `int`
    bit<8> sum = y + x; //~ ERROR E0301 is not defined on `int<8>` and `bit<8>`
    bit<8> d = 8w5 / 0; //~ ERROR E0303 division by zero
    const int m = -5 % 3; //~ ERROR E0303 negative
    bit<8> s = x << -1; //~ ERROR E0304 negative amount
    bit<8> t = 1 << x; //~ ERROR E0304 constant amount
    bit<8> far = x << 8; //~ WARN W0001 moves every bit out
    bit<8> out_of = 8w256; //~ WARN W0001 256 does not fit in `bit<8>`
    bit<4> part = x[8:5]; //~ ERROR E0305 bit 8 is outside
    bit<4> back = x[1:4]; //~ ERROR E0305 must not be below
    bit<8> bits = z[x:0]; //~ ERROR E0302 must be known at compile time
    tuple<bit<8>, bool> pair = { 1, true };
    bool q = pair[2]; //~ ERROR E0306 index 2 is outside
    bit<8> none = x[0]; //~ ERROR E0306 has no elements
    x = 1; //~ ERROR E0307 this cannot be assigned to
    bit<8> ty = S; //~ ERROR E0308 `S` is a type and not a value
    bit<8> fn = random; //~ ERROR E0308 `random` is a function and not a value
    tuple<bit<8>> all = { ..., 1 }; //~ ERROR E0309 must be the last element
    return x > 1 ? 1 : 2; //~ ERROR E0301 the width of this choice is not known
}

const bool holds = static_assert(1 + 1 == 2, "arithmetic");
const bool fails = static_assert(1 + 1 == 3, "this shows"); //~ ERROR E0310 this shows
const bit<8> runtime = random(); //~ ERROR E0403 top level
//~^ ERROR E0302 not known at compile time
