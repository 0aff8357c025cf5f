// What the language allows beyond everyday programs.
#include <core.p4>

enum bit<8> Code { a = 1, b = a + 1, c = 3 }
enum Plain { x, y }
struct Pair<A, B> { A first; B second; }
struct Nested { Pair<bit<8>, bool> p; tuple<bit<4>, bit<4>> t; Plain e; }
header H { bit<8> f; int<8> g; Code code; }
header K { bit<16> f; }
header_union U { H h; K k; }
const Pair<bit<8>, bool> pair = { 5, true };
const bit<8> folded = pair.second ? pair.first + 3 : 0;
const bit<folded> wide = -1;
const int huge = 1 << 100;
const bit<16> joined = 8w1 ++ 8w2;
const bit<4> cut = huge[103:100];
const string text = "a" ++ "b";
const list<Pair<bit<8>, bool>> rows = (list<Pair<bit<8>, bool>>){ { 1, true }, { 2, false } };
const bool checked = static_assert(folded == 8 && joined == 0x0102 && cut == 1, text);
const bit<32> bits = (bit<32>)H.minSizeInBits() + U.maxSizeInBytes();

T id<T>(in T x) { return x; }
bit<8> overloaded(in bit<8> a) { return a; }
bit<8> overloaded(in bit<8> a, in bit<8> b) { return a + b; }

extern Source<T> { Source(T start); T get(); void put(in T x); void put(in T x, in bit<8> times); }
extern Hook { Hook(); abstract bit<8> next(in bit<8> x); bit<8> run(in bit<8> x); }
extern void opt(in bit<8> a, @optional in bit<16> b);
extern void def(in bit<8> a, in bool b = true);

control Inner<T>(inout T x)(bit<8> amount) {
    apply { T copy = x; x = copy; }
}
control Each(inout bit<8> v)(int n, bit<8> step) {
    const bit<8> twice = step + step;
    Hook() hook = {
        bit<8> next(in bit<8> x) { return x + twice; }
    };
    Source(16w3) source;
    Inner<bit<8>>(3) inner;
    action set(inout bit<8> where, bit<8> what) { where = what; }
    table t {
        key = { v : exact @name("value"); }
        actions = { set(v); }
        default_action = set(v, twice);
    }
    apply {
        Nested n = ...;
        n = { p = { first = 1, ... }, t = { 1, 2 }, e = Plain.y };
        n.t[0] = 3;
        H h = { 1, -1, Code.c };
        h = (H){ code = Code.a, ... };
        U u = {#};
        u.h = h;
        H[3] stack = { h, h, {#} };
        stack.push_front(1);
        if (u.isValid() && h == { 1, 2, Code.b }) { h.setInvalid(); }
        v = id(v) + id<bit<8>>(2) + overloaded(b = 1, a = 2) + Code.b;
        v[3:0] = v[7:4];
        v[v+:2] = 1;
        v <<= 2;
        v |+|= 3;
        bool[2] flags = { true, false };
        for (bit<8> i = 0; i < 4; i = i + 1) { if (i == 2) { break; } v = v + i; }
        for (bit<8> i in 1 .. 3) { v = v + i; }
        for (H each in stack) { v = v + each.f; }
        switch (h.code) { Code.a: Code.b: { v = 1; } default: { v = 2; } }
        source.put(x = source.get(), times = 3);
        opt(v);
        def(v);
        v = hook.run(v);
        inner.apply(v);
        t.apply();
        varbit<8> empty = ...;
    }
}
control Other(inout bit<8> v) { apply { v = .folded; } }
control Once(inout bit<8> v) {
    apply { Other.apply(v); }
}
parser P(packet_in p, out H h)(bool deep) {
    state start {
        bit<8> first = p.lookahead<bit<8>>();
        transition select(deep, first, h.code) {
            (true, 1 .. 3, Code.a): more;
            (_, 0x10 &&& 0xF0, Code.b &&& Code.c): more;
            default: accept;
        }
    }
    state more {
        p.extract(h);
        p.advance(8);
        transition select({ h.f, h.f }) { { 1, 2 }: accept; default: reject; }
    }
}
parser PType<T>(packet_in p, out T h);
control CType<T>(inout T x);
package Switch<A, B>(PType<A> p, CType<B> c, @optional CType<A> extra);
Switch(P(true), Each(3, 1)) main;

// A mask stands for all entries that it matches, whatever the match kind.
control Masked(inout bit<8> v) {
    table t {
        key = { v : exact; }
        actions = { NoAction; }
        const entries = { 0x10 &&& 0xFC : NoAction; }
    }
    apply { t.apply(); }
}
