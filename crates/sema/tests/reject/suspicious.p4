// Allowed, and most likely not what was meant. Nothing here is an error.
#include <core.p4>

header h_t { bit<8> f; bit<8> g; }
struct pair { bit<8> a; bit<8> b; }
struct headers { h_t h; }

match_kind { optional_like }

extern bit<8> some();
extern void two(out bit<8> x, inout bit<8> y);

const bit<8> limit = 4;

parser no_transition(packet_in packet, out headers hdr, in bit<8> x) {
    state start { packet.extract(hdr.h); transition next; }
    state next { } //~ WARN W0007 the state `next` has no transition
}

parser rejects_all(packet_in packet) { //~ WARN W0002 never reaches `accept`
    state start { transition reject; }
}

parser sets_in_other_states(packet_in packet, out bit<8> found) {
    bit<8> kind;
    state start { kind = 1; transition next; }
    state next {
        found = kind;
        transition select(kind) { 1: start; default: accept; }
    }
}

void x_of(in bit<8> x) { }

bit<8> reads(in bit<8> x) {
    bit<8> never;
    bit<8> sometimes;
    pair p;
    bit<8> looped;
    p.a = 1;
    if (x == 1) {
        sometimes = 1;
    }
    for (bit<8> i in 1..4) {
        if (i == 2) { x_of(looped); }
        looped = i;
    }
    return never + sometimes + p.b; //~ WARN W0008 nothing has set `never`
}

action forgets(out bit<8> a, out bit<8> b, in bit<8> c) { //~ WARN W0008 nothing sets the `out` parameter `b`
    a = c;
}

control c(inout headers hdr, out bit<8> result, in bit<8> x) {
    bit<8> by_action;
    bit<8> unset;
    h_t local;
    h_t made;
    pair p = { 1, 2 };
    action set() { by_action = 1; }
    action hides(in bit<8> x) { by_action = x; } //~ WARN W0005 `x` hides the parameter
    action limit() { } //~ WARN W0005 `limit` hides the constant
    table t {
        key = {
            x: ternary;
            8w3: exact; //~ WARN W0002 always the same
        }
        actions = { set; limit; }
        default_action = limit();
        entries = {
            (0x0f &&& 0xf0, 3): set(); //~ WARN W0001 the mask leaves out bits of 15: it matches as 0
            (0x10 &&& 0xf0, 3): limit();
        }
    }
    table covered {
        key = {
            x: ternary;
            result: optional_like;
        }
        actions = { set; hides(x); }
        default_action = set();
        entries = {
            (0x10 &&& 0xf0, _): set();
            (0x11, 3): set(); //~ WARN W0002 never matched
            (0x20 &&& 0xf0, 3): set();
            (0x20 &&& 0xf0, _): set();
            (_, 4): set();
            (0x30 &&& 0x30, 4): set(); //~ WARN W0002 never matched
        }
    }
    apply {
        t.apply();
        covered.apply();
        result = by_action;
        result = unset; //~ WARN W0008 nothing has set `unset`
        local.f = 1; //~ WARN W0009 `local` is not valid here
        made.setValid();
        made.f = 1;
        result = made.f;
        two(p.a, p.b);
        two(p.a, p.a); //~ WARN W0010 writes one place twice
        bit<8> again = 1;
        if (x == 1) {
            bit<8> again = 2; //~ WARN W0005 `again` hides the variable
            result = again;
        }
        result = result + again;
        switch (t.apply().action_run) {
            set: { result = 1; }
            limit: //~ WARN W0007 the last label has no block
        }
    }
}

header ragged_t { bit<4> a; bit<7> b; } //~ WARN W0011 11 bits, which do not fill 2 bytes
header with_options_t { bit<4> a; bit<4> b; varbit<320> options; }
