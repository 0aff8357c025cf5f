//! Expressions as text, for messages about conditions that did not hold.

use millrace_sema::hir::{self, BinaryOp, Expr, ExprKind, UnaryOp};

use crate::types;

/// The longest text.
const MAX_LENGTH: usize = 200;

/// An expression, nearly as it was written.
pub(crate) fn expr(hir: &hir::Program, expr: &Expr) -> String {
    let mut text = String::new();
    write(hir, expr, &mut text);
    if text.chars().count() > MAX_LENGTH {
        text = text.chars().take(MAX_LENGTH).collect::<String>() + "...";
    }
    text
}

fn write(hir: &hir::Program, expr: &Expr, text: &mut String) {
    if text.len() > MAX_LENGTH * 4 {
        return;
    }
    match &expr.kind {
        ExprKind::Int(n) => text.push_str(&n.to_string()),
        ExprKind::Bool(b) => text.push_str(&b.to_string()),
        ExprKind::String(s) => text.push_str(&format!("{s:?}")),
        ExprKind::ErrorMember(i) => {
            text.push_str("error.");
            text.push_str(hir.errors.get(*i).map_or("?", String::as_str));
        }
        ExprKind::EnumMember(i) => {
            if let hir::TyKind::Enum(id) = hir.types.kind(expr.ty) {
                let declared = &hir.types.enums[*id];
                let member = declared.members.get(*i).map_or("?", |m| m.name.as_str());
                text.push_str(&format!("{}.{member}", declared.name));
            }
        }
        ExprKind::Var(var) => text.push_str(&hir.vars[*var].name),
        ExprKind::Field(base, i) => {
            write(hir, base, text);
            let members = types::members(&hir.types, base.ty);
            text.push('.');
            text.push_str(members.get(*i).map_or("?", |(name, _)| name.as_str()));
        }
        ExprKind::Index(base, index) => {
            write(hir, base, text);
            text.push('[');
            write(hir, index, text);
            text.push(']');
        }
        ExprKind::Slice(base, high, low) => {
            write(hir, base, text);
            text.push_str(&format!("[{high}:{low}]"));
        }
        ExprKind::StackNext(base) => method(hir, base, "next", text),
        ExprKind::StackLast(base) => method(hir, base, "last", text),
        ExprKind::StackLastIndex(base) => method(hir, base, "lastIndex", text),
        ExprKind::IsValid(base) => method(hir, base, "isValid()", text),
        ExprKind::Unary(op, operand) => {
            text.push(match op {
                UnaryOp::Not => '!',
                UnaryOp::BitNot => '~',
                UnaryOp::Neg => '-',
            });
            write(hir, operand, text);
        }
        ExprKind::Binary(op, a, b) => {
            text.push('(');
            write(hir, a, text);
            text.push_str(&format!(" {} ", symbol(*op)));
            write(hir, b, text);
            text.push(')');
        }
        ExprKind::Mux(cond, a, b) => {
            write(hir, cond, text);
            text.push_str(" ? ");
            write(hir, a, text);
            text.push_str(" : ");
            write(hir, b, text);
        }
        ExprKind::Cast(inner) => write(hir, inner, text),
        _ => text.push_str("..."),
    }
}

fn method(hir: &hir::Program, base: &Expr, name: &str, text: &mut String) {
    write(hir, base, text);
    text.push('.');
    text.push_str(name);
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "%",
        BinaryOp::AddSat => "|+|",
        BinaryOp::SubSat => "|-|",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::BoolAnd => "&&",
        BinaryOp::BoolOr => "||",
        BinaryOp::Concat => "++",
    }
}
