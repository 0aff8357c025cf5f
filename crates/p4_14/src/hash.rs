//! Field list calculations (specification section 3): the data that an algorithm runs over.
//!
//! A field of an invalid header is left out. v1model leaves out headers as a whole, so the fields of a header that may be
//! invalid are copied into a header made for the purpose, which is valid when the other is. Where zeros change nothing
//! (sums of 16-bit words, with whole words left out) the fields are used as they are.

use millrace_syntax::Span;
use millrace_syntax::ast::{Expr, ExprKind, Name, Stmt, StructKind, Text};
use millrace_syntax::p4_14::ast as p14;

use crate::codes;
use crate::field_list::Item;
use crate::field_ref::{Element, FieldRef, Header};
use crate::model::{self, Kind};
use crate::translate::{self, Translator};
use crate::tree;

/// The algorithms by their names in P4_14, with the bits of their results.
const ALGORITHMS: [(&str, &str, u32); 9] = [
    ("xor16", "xor16", 16),
    ("csum16", "csum16", 16),
    ("optional_csum16", "csum16", 16),
    ("crc16", "crc16", 16),
    ("crc32", "crc32", 32),
    ("crc16_custom", "crc16_custom", 16),
    ("crc32_custom", "crc32_custom", 32),
    ("identity", "identity", 64),
    ("random", "random", 64),
];

/// What a calculation runs over.
pub(crate) struct Data {
    /// `{ a, b, ... }`
    pub(crate) expr: Expr,
    /// The packet after the headers follows.
    pub(crate) payload: bool,
}

impl<'a> Translator<'a> {
    /// A calculation by name.
    pub(crate) fn calculation(&mut self, name: &Name) -> Option<&'a p14::Calculation> {
        let found = self.model.calculations.get(name.as_str()).copied();
        if found.is_none() && self.muted == 0 {
            let known = self.model.calculations.keys().copied();
            model::unknown(&mut self.found, name, "field list calculation", known);
        }
        found
    }

    /// The algorithm as v1model names it.
    pub(crate) fn algorithm(&mut self, calculation: &'a p14::Calculation) -> &'static str {
        let Some(wanted) = calculation.algorithms.first() else {
            let message = format!("calculation `{}` needs an `algorithm`", calculation.name);
            self.error(codes::FIELD_LIST, calculation.name.span, message);
            return "csum16";
        };
        if wanted.as_str() == "programmable_crc" {
            return if self.output_width(calculation) <= 16 { "crc16_custom" } else { "crc32_custom" };
        }
        match ALGORITHMS.iter().find(|(name, ..)| *name == wanted.as_str()) {
            Some((_, algorithm, _)) => algorithm,
            None => {
                let known = ALGORITHMS.iter().map(|(name, ..)| *name).chain(["programmable_crc"]);
                if self.muted == 0 {
                    model::unknown(&mut self.found, wanted, "hash algorithm", known);
                }
                "csum16"
            }
        }
    }

    /// The bits of the result.
    pub(crate) fn output_width(&mut self, calculation: &'a p14::Calculation) -> u32 {
        match &calculation.output_width {
            Some(width) => self.bounded(width, 1, 64).unwrap_or(16),
            None => {
                let message = format!("calculation `{}` needs an `output_width`", calculation.name);
                self.error(codes::FIELD_LIST, calculation.name.span, message);
                16
            }
        }
    }

    /// The entries of the list that a calculation runs over.
    pub(crate) fn calculation_items(&mut self, calculation: &'a p14::Calculation) -> Vec<Item> {
        let Some(input) = calculation.inputs.first() else {
            let message = format!("calculation `{}` has no `input`", calculation.name);
            self.error(codes::FIELD_LIST, calculation.name.span, message);
            return Vec::new();
        };
        match self.model.field_lists.get(input.as_str()).copied() {
            Some(list) => self.items(list),
            None => {
                if self.muted == 0 {
                    let known = self.model.field_lists.keys().copied();
                    model::unknown(&mut self.found, input, "field list", known);
                }
                Vec::new()
            }
        }
    }

    /// The data of a calculation. The headers in `valid` are known to be valid.
    pub(crate) fn data(
        &mut self,
        calculation: &'a p14::Calculation,
        valid: &[Header],
        span: Span,
        out: &mut Vec<Stmt>,
    ) -> Data {
        let words = matches!(self.algorithm(calculation), "csum16" | "xor16");
        let items = self.calculation_items(calculation);
        let mut members = Vec::new();
        let mut payload = false;
        let mut last: Option<Text> = None;
        let mut rest = items.as_slice();
        while let Some((item, after)) = rest.split_first() {
            rest = after;
            match item {
                Item::Constant { value, width, span } => {
                    members.push(self.tree.number(value, *width, false, *span));
                }
                Item::Header(header) => {
                    last = Some(header.instance.clone());
                    members.push(self.header_expr(header));
                }
                Item::Payload(at) => {
                    if !rest.is_empty() {
                        self.error(
                            codes::FIELD_LIST,
                            *at,
                            "v1model takes the payload at the end of a list only",
                        );
                    }
                    payload = true;
                    self.headers_behind(last.as_deref(), span, &mut members);
                }
                Item::Field(reference) => {
                    last = (reference.header.kind == Kind::Header)
                        .then(|| reference.header.instance.clone())
                        .or(last);
                    let more = rest
                        .iter()
                        .take_while(|i| matches!(i, Item::Field(p) if same(&p.header, &reference.header)));
                    let count = more.count();
                    let group: Vec<&FieldRef> = std::iter::once(reference)
                        .chain(rest[..count].iter().filter_map(|i| match i {
                            Item::Field(reference) => Some(reference),
                            _ => None,
                        }))
                        .collect();
                    rest = &rest[count..];
                    let bits: u32 = group.iter().map(|p| p.field.width).sum();
                    let certain = reference.header.kind != Kind::Header
                        || valid.iter().any(|h| same(h, &reference.header))
                        || (words && bits.is_multiple_of(16) && group.iter().all(|p| !p.field.varies));
                    if certain {
                        for reference in group {
                            members.push(self.read_expr(reference));
                        }
                    } else {
                        members.push(self.copied(&group, span, out));
                    }
                }
            }
        }
        Data { expr: self.tree.expr(ExprKind::List(members), span), payload }
    }

    /// The headers that are put after one in the packet.
    fn headers_behind(&mut self, header: Option<&str>, span: Span, members: &mut Vec<Expr>) {
        let at = self.order.iter().position(|h| Some(&**h) == header);
        for name in self.order.clone().into_iter().skip(at.map_or(0, |at| at + 1)) {
            let size = self.model.instances.get(&*name).and_then(|i| i.size);
            let elements = match size {
                None => vec![Element::All],
                Some(size) => (0..size).map(Element::At).collect(),
            };
            for element in elements {
                let header =
                    Header { instance: name.clone(), element, kind: Kind::Header, is_stack: false, span };
                members.push(self.header_expr(&header));
            }
        }
    }

    /// Fields of one header in a header of their own, which is valid when that is.
    fn copied(&mut self, group: &[&FieldRef], span: Span, out: &mut Vec<Stmt>) -> Expr {
        let ty = self.names.fresh("calculated_fields");
        let mut fields = Vec::new();
        for (i, reference) in group.iter().enumerate() {
            let declared = if reference.field.varies {
                let width = self.tree.int(reference.field.width, span);
                let kind = millrace_syntax::ast::TypeKind::Varbit(Box::new(width));
                millrace_syntax::ast::Type { kind, span }
            } else {
                self.tree.ty(reference.field.width, reference.field.signed, span)
            };
            fields.push(translate::member(declared, &format!("f{i}"), Vec::new(), span));
        }
        if self.muted == 0 {
            self.top.push(translate::structure(StructKind::Header, &ty, fields, span));
        }
        let variable = self.names.fresh("fields");
        out.push(tree::variable(tree::named_type(&ty, span), &variable, None, span));
        let target = self.tree.var(variable.as_str(), span);
        let mut then = vec![self.tree.method(target, "setValid", Vec::new(), span)];
        for (i, reference) in group.iter().enumerate() {
            let target = self.tree.path(&[&variable, &format!("f{i}")], span);
            let value = self.read_expr(reference);
            then.push(tree::assign(target, value, span));
        }
        let header = self.header_expr(&group[0].header);
        let condition = self.tree.is_valid(header);
        out.push(tree::if_stmt(condition, then, Vec::new(), span));
        self.tree.var(variable.as_str(), span)
    }
}

/// The bits that an algorithm of v1model gives.
pub(crate) fn natural_width(algorithm: &str) -> u32 {
    ALGORITHMS.iter().find(|(_, name, _)| *name == algorithm).map_or(64, |(.., width)| *width)
}

/// Whether two references are to the same header.
pub(crate) fn same(a: &Header, b: &Header) -> bool {
    a.instance == b.instance && a.element == b.element
}
