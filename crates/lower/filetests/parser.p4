// Parsers: stacks, select with every kind of keyset, verify, lookahead, varbits, nested parsers, value sets.
// test lower
// in: value_set
// check: value_set P.vs (a: bit<8> ternary, b: bit<8> exact) size 4
// in: body parser P
// check: set_invalid hdr.h
// check: P.tmp = hdr.h.a
// check: select (P.tmp, P.tmp$1) {
// check: (8w1, 8w2) => block9
// check: (8w3 &&& 8w0xf, _) => block10
// check: (_, 8w5 .. 8w9) => block11
// check: block4 state sub.start:
// check: extract hdr.h
// check: 8w0 => block5
// check: reject
// check: block6 state sub.more:
// check: branch lt(hdr.h.b, 8w0xa), block7, block8
// check: sm.parser_error = 16w4
// check: reject
// check: branch lt(hdr.st.nextIndex, 32w3), block17, block16
// check: block10 state varied:
// check: extract_var hdr.v, P.tmp$3
// check: block11 state peek:
// check: lookahead P.tmp$5, skip 8
// check: m.x = P.next.b
// check: extract hdr.u.y
// check: set_invalid hdr.u.x
// check: advance 32w0x10
// check: m.z = zext(packet_length, 16)
// check: sm.parser_error = 16w2
// check: branch bool_and(eq(P.tmp, m.x), eq(P.tmp$1, 8w1)), block11, block15
// check: in P.vs => block12
// check: extract hdr.st[2]
// check: hdr.st.nextIndex = add(hdr.st.nextIndex, 32w1)
#include "../tests/common.p4"
struct vs_t { @match(ternary) bit<8> a; bit<8> b; }
parser Sub(packet_in p, out h_t h, in bit<8> limit) {
    state start {
        p.extract(h);
        transition select(h.a) { 0: reject; default: more; }
    }
    state more {
        verify(h.b < limit, error.HeaderTooShort);
        transition accept;
    }
}
PARSER(P) {
    Sub() sub;
    value_set<vs_t>(4) vs;
    state start {
        sub.apply(p, hdr.h, 10);
        transition select(hdr.h.a, hdr.h.b) {
            (1, 2): stack;
            (3 &&& 0xf, _): varied;
            (_, 5 .. 9): peek;
            (m.x, 1): peek;
            vs: skip;
        }
    }
    state stack {
        p.extract(hdr.st.next);
        transition select(hdr.st.last.a) { 0: accept; default: stack; }
    }
    state varied {
        p.extract(hdr.v, (bit<32>)hdr.h.a * 8);
        p.extract<wide_t>(_);
        transition accept;
    }
    state peek {
        h_t next = p.lookahead<h_t>();
        m.x = next.b;
        m.z = p.lookahead<bit<16>>();
        p.extract(hdr.u.y);
        transition accept;
    }
    state skip {
        p.advance(16);
        m.z = (bit<16>)p.length();
        transition accept;
    }
}
MAIN_PARSER(P);
