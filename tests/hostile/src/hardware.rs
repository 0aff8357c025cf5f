//! Programs of few bytes whose hardware is much: wide operations, headers at many places, loops, tables and objects one after the other.

use crate::program::{Program, V1, count, ingress, repeat};
use crate::{Family, Size};

/// States before those of a family.
const START: &str = "state start { p.extract(hdr.h); transition more; }";

macro_rules! families {
    ($($name:literal $make:expr;)*) => { &[$(Family { name: $name, size: Size::Bytes, make: $make }),*] };
}

/// The families; what they get is the number of bytes.
pub(crate) const FAMILIES: &[Family] = families! {
    "hardware-shifts" |n| wide(8192, n, |_| "hdr.w.v=(hdr.w.v<<hdr.h.a)^hdr.w.v;\n".to_owned());
    "hardware-shifts-narrower" |n| wide(1024, n, |_| "hdr.w.v=(hdr.w.v<<hdr.h.a)^hdr.w.v;\n".to_owned());
    "hardware-shifts-apart" |n| wide(16000, n, |i| format!("if(hdr.h.b=={i})hdr.h.a=hdr.h.a^(hdr.w.v>>hdr.h.a)[31:0];\n"));
    "hardware-comparisons" |n| wide(8192, n, |i| format!("if(hdr.w.v>hdr.w.v<<1)hdr.w.v=~hdr.w.v;else hdr.w.v[7:0]={};\n", i % 256));
    "hardware-comparisons-narrower" |n| wide(1024, n, |i|
        format!("if(hdr.w.v>hdr.w.v<<1)hdr.w.v=~hdr.w.v;else hdr.w.v[7:0]={};\n", i % 256));
    "hardware-sums" |n| wide(2048, n, |_| "hdr.w.v=hdr.w.v+(hdr.w.v^(hdr.w.v>>1));\n".to_owned());
    "hardware-saturating" |n| wide(2048, n, |_| "hdr.w.v=hdr.w.v|+|(hdr.w.v^(hdr.w.v>>1));\n".to_owned());
    "hardware-products" |n| wide(256, n, |_| "hdr.w.v=hdr.w.v*(hdr.w.v>>1);\n".to_owned());
    "hardware-quotients" |n| wide(128, n, |_| "hdr.w.v=hdr.w.v/(hdr.w.v>>1);\n".to_owned());
    "hardware-slices" |n| wide(16000, n, |i| {
        let (to, from) = (i % 990 * 8, i % 990 * 16);
        format!("if(hdr.h.a[{0}:{0}]==1)hdr.w.v[{1}:{to}]=hdr.w.v[{2}:{from}];\n", i % 32, to + 7, from + 7)
    });
    "hardware-hashes" |n| wide(8192, n, |i| format!("hash(hdr.h.a,HashAlgorithm.crc32,(bit<32>)0,{{hdr.w.v,hdr.h.a}},(bit<32>)1000+{i});\n"));
    "hardware-decisions" |n| ingress("", repeat(count(n, 40), |i| format!("if(hdr.h.a=={i})hdr.h.b=hdr.h.b+{i};\n")));
    "hardware-exits" |n| ingress("", repeat(count(n, 40), |i| format!("if(hdr.h.a=={i}){{hdr.h.b={i};exit;}}\n")));
    "hardware-emitted" |n| {
        let n = count(n, 85);
        V1 {
            top: optional_headers(n),
            headers: repeat(n, |i| format!("o{i}_t o{i};")),
            body: repeat(n, |i| format!("if(hdr.h.a[{0}:{0}]==1)hdr.o{i}.setValid();\n", i % 32)),
            deparser: repeat(n, |i| format!("p.emit(hdr.o{i});")),
            ..V1::default()
        }.program()
    };
    "hardware-emitted-again" |n| V1 {
        top: "header e_t{bit<8> v;}".to_owned(),
        headers: "e_t[250] e;".to_owned(),
        body: "hdr.e[hdr.h.a].setValid();".to_owned(),
        deparser: repeat(count(n, 15), |_| "p.emit(hdr.e);"),
        ..V1::default()
    }.program();
    "hardware-places" |n| {
        let n = count(n, 150);
        let states = repeat(n, |i| format!(
            "state s{i}{{transition select(hdr.h.a[{0}:{0}]){{1:a{i};_:s{1};}}}} state a{i}{{p.extract(hdr.o{i});transition s{1};}}\n", i % 32, i + 1));
        V1 {
            top: optional_headers(n),
            headers: repeat(n, |i| format!("o{i}_t o{i};")),
            states: format!("{START} state more{{transition s0;}} {states} state s{n}{{transition accept;}}"),
            deparser: repeat(n, |i| format!("p.emit(hdr.o{});", n - 1 - i)),
            ..V1::default()
        }.program()
    };
    "hardware-selected" |n| V1 {
        states: format!("{START} state more{{transition select(hdr.h.a,hdr.h.b){{ {} _:accept;}}}} state s{{m.x=1;transition accept;}}",
            repeat(count(n, 30), |i| format!("({i}&&&{},{i}..{}):s;\n", i * 77_777, i * 13 + 5))),
        ..V1::default()
    }.program();
    "hardware-lengths" |n| {
        let (n, most) = (count(n, 180).min(12), 2040);
        let states = repeat(n, |i| format!("state l{i}{{p.extract(hdr.v{i},(bit<32>)p.lookahead<bit<8>>()*8);transition l{};}}\n", i + 1));
        V1 {
            top: format!("header v_t{{bit<8> n;varbit<{most}> v;}}"),
            headers: repeat(n, |i| format!("v_t v{i};")),
            states: format!("{START} state more{{transition l0;}} {states} state l{n}{{transition accept;}}"),
            deparser: repeat(n, |i| format!("p.emit(hdr.v{i});")),
            ..V1::default()
        }.program()
    };
    "hardware-stacks" |n| {
        let n = count(n, 200);
        let states = repeat(n, |i| format!("state l{i}{{p.extract(hdr.l{i}.next);transition select(hdr.l{i}.last.n){{0:l{};_:l{i};}}}}\n", i + 1));
        V1 {
            top: LABEL.to_owned(),
            headers: repeat(n, |i| format!("l_t[24] l{i};")),
            states: format!("{START} state more{{transition l0;}} {states} state l{n}{{transition accept;}}"),
            deparser: repeat(n, |i| format!("p.emit(hdr.l{i});")),
            ..V1::default()
        }.program()
    };
    "hardware-loops-in-loops" |n| {
        let size = count(n, 40).min(96);
        V1 {
            top: LABEL.to_owned(),
            headers: format!("l_t[{size}] l; l_t[{size}] k;"),
            states: format!("{START} state more{{p.extract(hdr.l.next);transition select(hdr.l.last.n){{0:accept;1:inner;_:more;}}}} \
                state inner{{p.extract(hdr.k.next);transition select(hdr.k.last.n){{0:more;1:accept;_:inner;}}}}"),
            deparser: "p.emit(hdr.l);p.emit(hdr.k);".to_owned(),
            ..V1::default()
        }.program()
    };
    "hardware-indices" |n| stack(n, |i| format!("hdr.l[hdr.h.a].v=hdr.l[hdr.h.b+{i}].v+1;\n"));
    "hardware-pushes" |n| stack(n, |i| format!("if(hdr.h.a=={i})hdr.l.push_front({});else hdr.l.pop_front({});\n", i % 7 + 1, i % 5 + 1));
    "hardware-tables-exact" |n| tables(n, "exact");
    "hardware-tables-ternary" |n| tables(n, "ternary");
    "hardware-tables-lpm" |n| tables(n, "lpm");
    "hardware-tables-range" |n| tables(n, "range");
    "hardware-entries" |n| ingress(
        format!("action a(bit<32> x){{hdr.h.b=x;}} table t{{key={{hdr.h.a:ternary;hdr.h.b:range;}} actions={{a;}} const entries={{ {} }}}}",
            repeat(count(n, 40), |i| format!("({i}&&&{},{i}..{}):a({i});\n", i * 77_777, i * 13 + 5))),
        "t.apply();");
    "hardware-registers" |n| {
        let n = count(n, 90);
        ingress(repeat(n, |i| format!("register<bit<32>>(1048576) r{i};\n")),
            repeat(n, |i| format!("r{i}.read(m.x,hdr.h.a);r{i}.write(hdr.h.b,m.x+1);\n")))
    };
    "hardware-members" |n| {
        let n = count(n, 80);
        let states = repeat(n, |i| format!("state v{i}{{transition select(hdr.h.a){{s{i}:v{};_:accept;}}}}\n", i + 1));
        V1 {
            parser_locals: repeat(n, |i| format!("value_set<bit<32>>(1024) s{i};\n")),
            states: format!("{START} state more{{transition v0;}} {states} state v{n}{{transition accept;}}"),
            ..V1::default()
        }.program()
    };
    "hardware-one-register" |n| ingress("register<bit<32>>(1024) r;", repeat(count(n, 50), |i|
        format!("r.read(m.x,hdr.h.a+{i});r.write(hdr.h.b^{i},m.x);\n")));
    "hardware-meters" |n| {
        let n = count(n, 80);
        ingress(repeat(n, |i| format!("meter(65536,MeterType.bytes) c{i};\n")),
            repeat(n, |i| format!("c{i}.execute_meter(hdr.h.a,m.x);hdr.h.b=hdr.h.b+m.x;\n")))
    };
    "hardware-counters" |n| {
        let n = count(n, 75);
        ingress(repeat(n, |i| format!("counter(65536,CounterType.packets_and_bytes) c{i};\n")),
            repeat(n, |i| format!("c{i}.count(hdr.h.a);\n")))
    };
    "hardware-digests" |n| ingress("", repeat(count(n, 50), |i| format!("if(hdr.h.a=={i})digest<bit<32>>(1,hdr.h.b);\n")));
    "hardware-messages" |n| ingress("register<bit<32>>(1024) r;", format!("bit<32> e=0xffffffff;bit<32> v=0xffffffff;\n{}", repeat(count(n, 130), |i|
        format!("r.read(v,{i});log_msg(\"v={{}},i={{}},e={{}}\",{{v,(bit<32>){i},e}});assert(v!=0||e!={i});if(v==0&&e==0xffffffff)e={i};\n")))
        + "hdr.h.b=e;");
    "hardware-messages-in-sequence" |n| ingress(repeat(16, |i| format!("register<bit<32>>(1024) r{i};\n")),
        format!("bit<32> e=0xffffffff;bit<32> v=hdr.h.a;\n{}hdr.h.b=e;", repeat(count(n, 180), |i|
            format!("r{}.read(v,v);log_msg(\"v={{}},e={{}}\",{{v,e}});assert(v!=0||e!={i});if(v==0&&e==0xffffffff)e={i};\n", i % 16))));
    "hardware-random" |n| ingress("", repeat(count(n, 30), |i| format!("random(hdr.h.a,0,hdr.h.b+{i});\n")));
    "hardware-copies" |n| ingress("", repeat(count(n, 100), |i|
        format!("if(hdr.h.a=={i}){{resubmit_preserving_field_list(1);clone_preserving_field_list(CloneType.I2E,{i},1);}}\n")));
};

/// A header whose field counts down to the end of a stack.
const LABEL: &str = "header l_t{bit<8> n;bit<24> v;}";

/// Headers whose sizes differ, so that what comes after them may be at many places.
fn optional_headers(n: usize) -> String {
    repeat(n, |i| format!("header o{i}_t{{bit<{}> v;}}\n", 8 * (1 + i * i % 50)))
}

/// Statements on a field of so many bits.
fn wide(width: usize, bytes: usize, statement: fn(usize) -> String) -> Program {
    V1 {
        top: format!("header w_t{{bit<{width}> v;}}"),
        headers: "w_t w;".to_owned(),
        states: format!("{START} state more{{p.extract(hdr.w);transition accept;}}"),
        body: repeat(count(bytes, statement(0).len()), statement),
        deparser: "p.emit(hdr.w);".to_owned(),
        ..V1::default()
    }
    .program()
}

/// Statements on a stack.
fn stack(bytes: usize, statement: fn(usize) -> String) -> Program {
    V1 {
        top: LABEL.to_owned(),
        headers: "l_t[64] l;".to_owned(),
        states: format!(
            "{START} state more{{p.extract(hdr.l.next);transition select(hdr.l.last.n){{0:accept;_:more;}}}}"
        ),
        body: repeat(count(bytes, statement(0).len()), statement),
        deparser: "p.emit(hdr.l);".to_owned(),
        ..V1::default()
    }
    .program()
}

/// Tables, each of which may change the key of the next.
fn tables(bytes: usize, kind: &str) -> Program {
    let n = count(bytes, 80);
    ingress(
        format!(
            "action a(bit<32> x){{hdr.h.b=hdr.h.b+x;}}\n{}",
            repeat(n, |i| format!(
                "table t{i}{{key={{hdr.h.b:{kind};}} actions={{a;NoAction;}} size=512;}}\n"
            ))
        ),
        repeat(n, |i| format!("t{i}.apply();\n")),
    )
}
