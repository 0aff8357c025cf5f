#include <core.p4>

struct S { bit<8> a; bit<16> b; }
header H { bit<8> a; }
header_union U { H h; }
struct G<T> { T t; }
const int negative = -1;
const bit<8> eight = 8;

void f(in bit<8> x) {
    bit<16> wide = x; //~ ERROR E0201 expected `bit<16>`, found `bit<8>`
    bool truth = x; //~ ERROR E0201 expected `bool`
    bit<negative> w; //~ ERROR E0202 width
    bit<x> v; //~ ERROR E0302 must be known at compile time
    int<0> zero; //~ ERROR E0202 must be between 1 and
    H[negative] stack; //~ ERROR E0202 number of elements
    G g; //~ ERROR E0203 needs 1 type argument
    G<bit<8>, bit<8>> g2; //~ ERROR E0203 takes 1 type argument, but 2 are given
    S<bit<8>> s1; //~ ERROR E0203 takes no type arguments
    int big; //~ ERROR E0205 a variable cannot have the type `int`
    packet_in p; //~ ERROR E0205 a variable cannot have the type `packet_in`
    int<16> c = (int<16>)x; //~ ERROR E0206 `bit<8>` cannot be cast to `int<16>`
    S s = { 1 }; //~ ERROR E0211 has 2 members, but 1 is given
    S t = { a = 1 }; //~ ERROR E0211 no value is given for `b`
    S u = { a = 1, a = 2 }; //~ ERROR E0211 given twice
    H h = {#};
    bool same = { 1 } == {#}; //~ ERROR E0201 `{#}` is a header
}

header Bad {
    string name; //~ ERROR E0204 `string` cannot be a member of a header
    S fine;
    H inner; //~ ERROR E0204 `H` cannot be a member of a header
}
header_union BadUnion { bit<8> x; } //~ ERROR E0204 cannot be a member of a header union
typedef match_kind Kind; //~ ERROR E0204 cannot be renamed

enum bool Truth { no = 0 } //~ ERROR E0208 represented as `bit<W>` or `int<W>`
type error Err; //~ ERROR E0208 makes new types of
enum bit<2> Two { a = 3, b = 4 } //~ ERROR E0209 4 does not fit

extern void generic<T>(in T x);
extern T result<T>();
void g() {
    generic(5); //~ ERROR E0207 the width of this number is not known
    result(); //~ ERROR E0207 type argument `T` of `result` cannot be found out
    generic({ a = 8w1 }); //~ ERROR E0207 type of this structure is not known
    match_kind m = ...; //~ ERROR E0205 cannot have the type `match_kind`
    bit<8> size = (bit<8>)error.minSizeInBits(); //~ ERROR E0212 no size in bits
}
extern Ext { Ext(); }
control C(Ext e) {
    action a(bit<8> x) {}
    table t {
        actions = { a; }
        default_action = a(...);
    }
    apply {}
}
struct Deep { tuple<match_kind> m; }
const Deep deep = ...; //~ ERROR E0210 has no default value
struct Pair<T> { T a; T b; }
const Pair<_> open = { a = 8w1, b = 8w2 }; //~ ERROR E0205 cannot be left open
control Signature<T>(T x);
package WithDefault<T>(Signature<T> s = Signature(T > 3)); //~ ERROR E0308 `T` is a type
