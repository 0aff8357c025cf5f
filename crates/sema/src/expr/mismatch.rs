//! An expression has another type than its place wants: what wants it, and which conversion would put it right.

use crate::check::Checker;
use crate::codes;
use crate::hir::{Direction, Expr, ExprKind, Ty, TyKind};
use millrace_syntax::{Diagnostic, Span};

/// What an expression has to fit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// Nothing that has a place of its own.
    Unsaid,
    /// A condition.
    Condition,
    /// The type or name in the declaration of what is set.
    Declared(Span),
    /// A parameter.
    Parameter(Span),
    /// A member of a structure.
    Member(Span),
    /// The result type of the function around.
    Result(Span),
    /// A field of a table's or select's key, or what a `switch` chooses by.
    Key(Span),
}

impl Why {
    fn place(self, wanted: &str) -> Option<(Span, String)> {
        Some(match self {
            Self::Unsaid | Self::Condition => return None,
            Self::Declared(span) => (span, format!("declared as `{wanted}`")),
            Self::Parameter(span) => (span, format!("the parameter is `{wanted}`")),
            Self::Member(span) => (span, format!("the member is `{wanted}`")),
            Self::Result(span) => (span, format!("the result is `{wanted}`")),
            Self::Key(span) => (span, format!("matched against `{wanted}`")),
        })
    }
}

impl Checker<'_> {
    /// Reports that an expression has another type than wanted.
    pub(crate) fn mismatch(&mut self, e: &Expr, ty: Ty, why: Why) {
        let blocks = |k: &TyKind| matches!(k, TyKind::BlockType(..) | TyKind::Parser(_) | TyKind::Control(_));
        if blocks(&self.kind(ty)) && blocks(&self.kind(e.ty)) {
            return self.other_signature(e, ty, why);
        }
        let (want, have) = (self.show(ty), self.show(e.ty));
        let message = format!("expected `{want}`, found `{have}`");
        let mut found =
            Diagnostic::error(codes::TYPE_MISMATCH, e.span, message).with_label(format!("this is `{have}`"));
        if let Some((span, text)) = why.place(&want).filter(|(span, _)| *span != e.span) {
            found = found.with_secondary(span, text);
        }
        if let Some(help) = self.conversion(e, ty) {
            found = found.with_help(help);
        }
        self.report(found);
    }

    /// A parser or control whose `apply` has other parameters than wanted.
    fn other_signature(&mut self, e: &Expr, ty: Ty, why: Why) {
        let (want, have) = (self.show(ty), self.show(e.ty));
        let mut found =
            Diagnostic::error(codes::SIGNATURE, e.span, format!("expected `{want}`, found `{have}`"))
                .with_label(format!("this is `{have}`"));
        if let Some((span, text)) = why.place(&want) {
            found = found.with_secondary(span, text);
        }
        let is_parser = |c: &Self, ty: Ty| match c.kind(ty) {
            TyKind::BlockType(id, _) => c.hir.block_types[id].is_parser,
            kind => matches!(kind, TyKind::Parser(_)),
        };
        let word = |parser: bool| if parser { "a parser" } else { "a control" };
        let (wants_parser, is_one) = (is_parser(self, ty), is_parser(self, e.ty));
        if wants_parser != is_one {
            found =
                found.with_note(format!("{} is wanted, and this is {}", word(wants_parser), word(is_one)));
        } else {
            if let Some((wanted, had)) = self.first_difference(ty, e.ty) {
                found = found.with_secondary(wanted, "this parameter is wanted");
                found = found.with_secondary(had, "and this one is there");
            }
            for (side, ty) in [("wanted", ty), ("found", e.ty)] {
                if let Some(shape) = self.apply_shape(ty) {
                    let params: Vec<(Direction, Ty)> = shape.into_iter().map(|(d, t, _)| (d, t)).collect();
                    let shown = self.show_params(&params);
                    found = found.with_note(format!("{side}: apply({shown})"));
                }
            }
        }
        self.report(found);
    }

    /// The declarations of the first parameters that differ between what is wanted and what is there.
    fn first_difference(&mut self, wanted: Ty, had: Ty) -> Option<(Span, Span)> {
        let (left, right) = (self.apply_shape(wanted)?, self.apply_shape(had)?);
        let (places, others) = (self.apply_places(wanted), self.apply_places(had));
        for ((l, r), found) in left.into_iter().zip(right).zip(places.into_iter().zip(others)) {
            if l.0 != r.0 || self.settle(l.1) != self.settle(r.1) {
                return Some(found);
            }
        }
        None
    }

    /// Where the parameters of what can be applied are declared.
    fn apply_places(&mut self, ty: Ty) -> Vec<Span> {
        let vars = match self.kind(ty) {
            TyKind::Parser(id) => &self.hir.parsers[id].params,
            TyKind::Control(id) => &self.hir.controls[id].params,
            TyKind::BlockType(id, args) => {
                return self.block_type_signature(id, &args).params.into_iter().map(|p| p.span).collect();
            }
            _ => return Vec::new(),
        };
        vars.iter().map(|&v| self.hir.vars[v].span).collect()
    }

    /// Directions and types as a list of parameters has them.
    pub(crate) fn show_params(&mut self, params: &[(Direction, Ty)]) -> String {
        let mut shown = Vec::with_capacity(params.len());
        for &(direction, ty) in params {
            let ty = self.settle(ty);
            shown.push(format!("{}{}", direction_prefix(direction), self.show(ty)));
        }
        shown.join(", ")
    }

    /// How a value could be made one of another type, in words for a help line.
    pub(crate) fn conversion(&self, e: &Expr, ty: Ty) -> Option<String> {
        use TyKind as T;
        let shown = self.show(ty);
        let literal = matches!(e.kind, ExprKind::Int(_));
        Some(match (self.kind(ty), self.kind(e.ty)) {
            (T::Bits(_), T::String) => match &e.kind {
                ExprKind::String(text) => match address(text) {
                    Some(number) => format!("addresses are written as numbers: `{number}`"),
                    None => "strings are for annotations and messages; write a number".into(),
                },
                _ => return None,
            },
            (T::Bool, T::Bits(1)) => "compare it, `... == 1`, or cast it: `(bool)`".into(),
            (T::Bool, T::Bits(_) | T::SignedBits(_) | T::Int) if literal => "write `true` or `false`".into(),
            (T::Bool, T::Bits(_) | T::SignedBits(_)) => "compare it with a number: `... != 0`".into(),
            (T::Bool, T::Struct(_)) if self.is_header(e.ty) => "ask whether it is valid: `.isValid()`".into(),
            (T::Bits(1), T::Bool) => "cast it: `(bit<1>)`".into(),
            (T::Bits(_), T::Bool) => format!("cast it twice: `({shown})(bit<1>)`"),
            (T::Bits(w), T::Bits(_) | T::SignedBits(_)) if literal => {
                format!("write it with `{w}w` before it")
            }
            (T::SignedBits(w), T::Bits(_) | T::SignedBits(_)) if literal => {
                format!("write it with `{w}s` before it")
            }
            (T::Bits(w), T::Bits(v)) | (T::SignedBits(w), T::SignedBits(v)) if w < v => {
                format!("cast it, which drops the upper bits: `({shown})`")
            }
            (T::Bits(_), T::Bits(_)) | (T::SignedBits(_), T::SignedBits(_)) => {
                format!("cast it: `({shown})`")
            }
            (T::Bits(w), T::SignedBits(v)) | (T::SignedBits(w), T::Bits(v)) if w == v => {
                format!("cast it: `({shown})`")
            }
            (T::Bits(_), T::SignedBits(v)) => format!("cast it twice: `({shown})(bit<{v}>)`"),
            (T::SignedBits(_), T::Bits(v)) if v > 0 => format!("cast it twice: `({shown})(int<{v}>)`"),
            (T::New(id), _) if self.hir.types.new_types[id].base == e.ty => format!("cast it: `({shown})`"),
            (T::New(_), T::Int) => format!("cast it: `({shown})`"),
            (_, T::New(id)) if self.hir.types.new_types[id].base == ty => format!("cast it: `({shown})`"),
            (T::Enum(id), _) => match self.hir.types.enums[id].repr {
                Some(repr) if repr == e.ty || self.kind(e.ty) == T::Int => {
                    format!("write one of its members, or cast it: `({shown})`")
                }
                Some(_) | None => format!("write one of its members, as `{shown}.member`"),
            },
            (T::Struct(_), T::Tuple(_)) if !matches!(e.kind, ExprKind::Aggregate(_)) => {
                "a tuple does not become a structure: set its members one by one".into()
            }
            _ => return None,
        })
    }
}

/// A MAC or IP address in text as the number that it is.
fn address(text: &str) -> Option<String> {
    if let Ok(ip) = text.parse::<std::net::Ipv4Addr>() {
        return Some(format!("0x{:08x}", ip.to_bits()));
    }
    if let Ok(ip) = text.parse::<std::net::Ipv6Addr>() {
        return Some(format!("0x{:032x}", ip.to_bits()));
    }
    let octets: Vec<&str> = text.split([':', '-']).collect();
    let octet = |o: &&str| o.len() == 2 && o.bytes().all(|b| b.is_ascii_hexdigit());
    (octets.len() == 6 && octets.iter().all(octet)).then(|| format!("0x{}", octets.concat().to_lowercase()))
}

/// A direction as written before a parameter.
fn direction_prefix(direction: Direction) -> &'static str {
    match direction {
        Direction::None => "",
        Direction::In => "in ",
        Direction::Out => "out ",
        Direction::InOut => "inout ",
    }
}
