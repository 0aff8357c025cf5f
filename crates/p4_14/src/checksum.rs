//! Calculated fields (specification section 3.1), as v1model's two controls for checksums.
//!
//! Of the rules of a field the first whose condition holds counts, and only while the field's header is valid.

use millrace_syntax::Span;
use millrace_syntax::ast::{BinaryOp, Declaration, Expr, Stmt, UnaryOp};
use millrace_syntax::p4_14::ast::{self as p14, CalculationRule, ExprKind};

use crate::codes;
use crate::expr::Scope;
use crate::field_ref::{FieldRef, Header};
use crate::model::Kind;
use crate::translate::Translator;

impl<'a> Translator<'a> {
    /// Whether any checksum is verified.
    pub(crate) fn verifies(&self) -> bool {
        self.model.calculated.iter().any(|c| c.rules.iter().any(|r| !r.update))
    }

    /// The controls that verify and that update.
    pub(crate) fn checksums(&mut self) -> (Declaration, Declaration) {
        let (mut verify, mut update) = (Vec::new(), Vec::new());
        for calculated in self.model.calculated.clone() {
            let Some(reference) = self.field_ref(&calculated.field, &Scope::Outside) else { continue };
            if reference.field.varies {
                self.error(
                    codes::TYPE,
                    calculated.field.span,
                    "a field of varying length cannot be calculated",
                );
                continue;
            }
            for (wanted, body) in [(false, &mut verify), (true, &mut update)] {
                let rules: Vec<_> = calculated.rules.iter().filter(|r| r.update == wanted).collect();
                self.rules(&reference, &rules, body);
            }
        }
        let span = self.model.calculated.first().map_or(Span::default(), |c| c.span);
        let verify = self.control_block("verifyChecksum", Vec::new(), verify, span);
        (verify, self.control_block("computeChecksum", Vec::new(), update, span))
    }

    fn rules(&mut self, reference: &FieldRef, rules: &[&'a CalculationRule], out: &mut Vec<Stmt>) {
        for (i, rule) in rules.iter().enumerate() {
            let Some(calculation) = self.calculation(&rule.calculation) else { continue };
            let span = rule.span;
            let mut condition = (reference.header.kind == Kind::Header).then(|| {
                let header = self.header_expr(&reference.header);
                self.tree.is_valid(header)
            });
            for earlier in &rules[..i] {
                let holds = match &earlier.condition {
                    Some(e) => self.condition(e, &Scope::Outside),
                    None => self.tree.expr(millrace_syntax::ast::ExprKind::Bool(true), span),
                };
                let holds = self.tree.unary(UnaryOp::Not, holds);
                condition = Some(self.both(condition, holds, span));
            }
            let mut valid = vec![reference.header.clone()];
            if let Some(e) = &rule.condition {
                self.known_valid(e, &mut valid);
                let holds = self.condition(e, &Scope::Outside);
                condition = Some(self.both(condition, holds, span));
            }
            let condition = match condition {
                Some(condition) => condition,
                None => self.tree.expr(millrace_syntax::ast::ExprKind::Bool(true), span),
            };
            let data = self.data(calculation, &valid, span, out);
            let algorithm = self.algorithm(calculation);
            let algorithm = self.tree.constant("HashAlgorithm", algorithm, span);
            self.output_width(calculation);
            let name = match (rule.update, data.payload) {
                (false, false) => "verify_checksum",
                (false, true) => "verify_checksum_with_payload",
                (true, false) => "update_checksum",
                (true, true) => "update_checksum_with_payload",
            };
            let Some(field) = self.direct(reference) else {
                self.error(
                    codes::FIELD_LIST,
                    reference.span,
                    "this field of the architecture cannot be calculated",
                );
                return;
            };
            let args = vec![condition, data.expr, field, algorithm];
            out.push(self.tree.function(name, args, span));
        }
    }

    fn both(&mut self, a: Option<Expr>, b: Expr, span: Span) -> Expr {
        match a {
            Some(a) => self.tree.binary(BinaryOp::And, a, b, span),
            None => b,
        }
    }

    /// The headers that are valid where a condition holds.
    fn known_valid(&mut self, e: &'a p14::Expr, valid: &mut Vec<Header>) {
        match &e.kind {
            ExprKind::Valid(reference) => {
                self.muted += 1;
                valid.extend(self.header(reference, &Scope::Outside));
                self.muted -= 1;
            }
            ExprKind::Binary(BinaryOp::And, a, b) => {
                self.known_valid(a, valid);
                self.known_valid(b, valid);
            }
            _ => {}
        }
    }
}
