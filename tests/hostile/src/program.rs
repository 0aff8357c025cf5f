//! Frames of programs, into which families put what is hostile.

use std::fmt::{Display, Write};

/// A program to compile.
#[derive(Clone, Debug)]
pub struct Program {
    /// The text.
    pub text: String,
    /// Whether it is P4_14.
    pub p4_14: bool,
}

/// So many pieces, each made from its number.
pub fn repeat<T: Display>(n: usize, piece: impl Fn(usize) -> T) -> String {
    let mut out = String::new();
    for i in 0..n {
        let _ = write!(out, "{}", piece(i));
    }
    out
}

/// As many pieces as fill that many bytes.
pub fn fill<T: Display>(bytes: usize, piece: impl Fn(usize) -> T) -> String {
    let mut out = String::with_capacity(bytes + 256);
    for i in 0.. {
        if out.len() >= bytes {
            break;
        }
        let _ = write!(out, "{}", piece(i));
    }
    out
}

/// How many pieces of that length (the longest expected) fill so many bytes.
pub fn count(bytes: usize, piece: usize) -> usize {
    (bytes / piece).max(1)
}

/// A P4_16 program as it is.
pub fn bare(text: impl Into<String>) -> Program {
    Program { text: text.into(), p4_14: false }
}

/// A P4_14 program as it is.
pub fn old(text: impl Into<String>) -> Program {
    Program { text: text.into(), p4_14: true }
}

/// A program for v1model, with places for what is hostile.
#[derive(Clone, Debug, Default)]
pub struct V1 {
    /// Declarations of the top level.
    pub top: String,
    /// Fields of the structure of headers.
    pub headers: String,
    /// Fields of the structure of metadata.
    pub meta: String,
    /// The parser's declarations.
    pub parser_locals: String,
    /// The parser's states; `start` accepts if none are given.
    pub states: String,
    /// Ingress' declarations.
    pub locals: String,
    /// Ingress' statements.
    pub body: String,
    /// The deparser's statements.
    pub deparser: String,
}

impl V1 {
    /// The whole program.
    pub fn program(self) -> Program {
        let states = if self.states.is_empty() { "state start { transition accept; }" } else { &self.states };
        let V1 { top, headers, meta, parser_locals, locals, body, deparser, .. } = &self;
        bare(format!(
            "#include <core.p4>\n#include <v1model.p4>\n\
             header h_t {{ bit<32> a; bit<32> b; }}\n\
             {top}\n\
             struct headers_t {{ h_t h; {headers} }}\n\
             struct meta_t {{ bit<32> x; bit<32> y; {meta} }}\n\
             parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {{\n\
             {parser_locals}\n{states}\n}}\n\
             control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
             control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {{\n\
             {locals}\napply {{\n{body}\n}} }}\n\
             control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t sm) {{ apply {{ }} }}\n\
             control C(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
             control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.h);\n{deparser} }} }}\n\
             V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
        ))
    }
}

/// A program whose top level is hostile.
pub fn top(text: impl Into<String>) -> Program {
    V1 { top: text.into(), ..V1::default() }.program()
}

/// A program whose ingress has these statements.
pub fn body(text: impl Into<String>) -> Program {
    V1 { body: text.into(), ..V1::default() }.program()
}

/// A program whose ingress has these declarations and statements.
pub fn ingress(locals: impl Into<String>, text: impl Into<String>) -> Program {
    V1 { locals: locals.into(), body: text.into(), ..V1::default() }.program()
}

/// A P4_14 program around these declarations, with these statements in ingress.
pub fn old_ingress(declarations: impl Display, text: impl Display) -> Program {
    old(format!(
        "header_type h_t {{ fields {{ a : 32; b : 32; }} }}\nheader h_t h;\n\
         header_type m_t {{ fields {{ x : 32; y : 32; }} }}\nmetadata m_t m;\n\
         parser start {{ extract(h); return ingress; }}\n\
         action nothing() {{ }}\n\
         {declarations}\ncontrol ingress {{\n{text}\n}}\n"
    ))
}

impl Program {
    /// Another state of a P4_14 parser to start with.
    #[must_use]
    pub fn entry(mut self, start: &str, state: &str) -> Program {
        self.text = self.text.replacen(
            &format!("parser {start} {{ extract(h); return ingress; }}"),
            &format!("parser {start} {{ extract(h); return {state}; }}"),
            1,
        );
        self
    }
}
