//! Programs of few bytes whose machine code is much, or of which much has to be known before there is any.

use crate::program::{Program, V1, count, ingress, repeat};
use crate::{Family, Size};

const SUM: &str = "hdr.w.v=hdr.w.v+(hdr.w.v^(hdr.w.v>>1));";
const SHIFT: &str = "hdr.w.v=(hdr.w.v<<hdr.w.v)^hdr.w.v;";

/// The families; what they get is the number of bytes.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "code-stack", size: Size::Bytes, make: |n| stack(count(n, 50), "bit<8>") },
    Family { name: "code-stack-shorter", size: Size::Bytes, make: |n| stack(count(n, 500), "bit<8>") },
    Family { name: "code-stack-wide", size: Size::Bytes, make: |n| stack(count(n, 800), "bit<800>") },
    Family { name: "code-concatenated", size: Size::Bytes, make: concatenated },
    Family { name: "code-products", size: Size::Bytes, make: products },
    Family { name: "code-sums", size: Size::Bytes, make: |n| wide(n, 256, SUM) },
    Family { name: "code-sums-wide", size: Size::Bytes, make: |n| wide(n, 2048, SUM) },
    Family { name: "code-sums-wider", size: Size::Bytes, make: |n| wide(n, 16000, SUM) },
    Family { name: "code-shifts", size: Size::Bytes, make: |n| wide(n, 2048, SHIFT) },
];

/// A parser that extracts so many headers, one after the other, until the packet says that it is the last.
fn stack(n: usize, ty: &str) -> Program {
    V1 {
        top: format!("header l_t {{ bit<8> n; {ty} v; }}"),
        headers: format!("l_t[{n}] l;"),
        states: "state start { p.extract(hdr.h); transition more; }\n\
                 state more { p.extract(hdr.l.next); transition select(hdr.l.last.n) { 0: accept; _: more; } }"
            .to_owned(),
        deparser: "p.emit(hdr.l);".to_owned(),
        ..V1::default()
    }
    .program()
}

/// One value of many parts.
fn concatenated(bytes: usize) -> Program {
    let n = count(bytes, 10).min(1000);
    let parts = repeat(n - 1, |i| format!("hdr.h.{} ++ ", if i % 2 == 0 { 'a' } else { 'b' }));
    let width = 32 * n;
    ingress("", format!("bit<{width}> w = {parts}hdr.h.a; hdr.h.b = w[{}:{}];", width / 2 + 31, width / 2))
}

/// Products of the widest numbers, whose code is one block.
fn products(bytes: usize) -> Program {
    let n = count(bytes, 10).min(20);
    let all = repeat(n, |_| "x = x * y; y = y * x;\n");
    ingress(
        "",
        format!("bit<65536> x = (bit<65536>)hdr.h.a; bit<65536> y = x;\n{all}hdr.h.b = x[31:0] ^ y[95:64];"),
    )
}

/// A statement on a field of so many bits, again and again, and a decision that depends on none of it. More of it is no machine code.
fn wide(bytes: usize, width: usize, statement: &'static str) -> Program {
    let n = count(bytes.min(2000), statement.len());
    V1 {
        top: format!("header w_t {{ bit<{width}> v; }}"),
        headers: "w_t w;".to_owned(),
        states: "state start { p.extract(hdr.h); p.extract(hdr.w); transition accept; }".to_owned(),
        body: format!("{} if (hdr.h.a == 1) hdr.h.b = 2;", repeat(n, |_| statement)),
        deparser: "p.emit(hdr.w);".to_owned(),
        ..V1::default()
    }
    .program()
}
