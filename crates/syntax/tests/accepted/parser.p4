// Parsers: states, select with every keyset, value sets, local declarations, sub-parsers.

header eth { bit<48> dst; bit<48> src; bit<16> type; }
header tag { bit<12> id; bit<16> type; }
struct headers { eth ethernet; tag[3] tags; }
extern packet_in {
    void extract<T>(out T hdr);
    void advance(in bit<32> size);
    T lookahead<T>();
}

parser Inner(packet_in p, out tag t)(bit<32> skip, bool deep) {
    state start {
        p.advance(skip);
        p.extract(t);
        transition accept;
    }
}

@name("the.parser")
parser Outer(packet_in p, out headers h) {
    const bit<16> VLAN = 0x8100;
    bit<8> count = 0;
    tag scratch;
    Inner(8, deep = true) inner;
    @size_hint(4) value_set<bit<16>>(4) types;
    value_set<tuple<bit<16>, bit<4>>>(8) pairs;

    @first
    state start {
        p.extract(h.ethernet);
        count = count + 1;
        bit<8> again = p.lookahead<bit<8>>();
        {
            const bit<8> one = 1;
            again = one;
        }
        if (again == 3) {
            count = 0;
        } else if (again == 4)
            count = 1;
        transition select(h.ethernet.type, again[3:0]) {
            (VLAN, _): more;
            (0x0800 &&& 0xFF00, 0 .. 7): accept;
            (types, default): accept;
            pairs: accept;
            (0x86dd, 4w1 + 4w2): done;
            default: reject;
        }
    }
    state more {
        p.extract(h.tags.next);
        inner.apply(p, scratch);
        Inner.apply(p, scratch);
        transition select(h.tags.last.type) {
            VLAN: more;
            (VLAN): more;
            (VLAN + 1) * 2: done;
            (bit<16>) 7: done;
            (1 &&& 3): done;
            _: accept;
        }
    }
    state done { transition accept; }
    state fall_through_to_reject {}
}
