//! Makes nodes of a P4_16 tree, each with the place in the P4_14 program that it comes from.

use millrace_syntax::Span;
use millrace_syntax::ast::*;
use num_bigint::BigInt;
use num_traits::{One, Signed};

/// Hands out the numbers of expressions.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) next: u32,
}

impl Tree {
    pub(crate) fn expr(&mut self, kind: ExprKind, span: Span) -> Expr {
        let id = ExprId(self.next);
        self.next += 1;
        Expr { kind, span, id }
    }

    pub(crate) fn var(&mut self, text: impl Into<Text>, span: Span) -> Expr {
        let path = Path { absolute: false, name: name(text, span) };
        self.expr(ExprKind::Name(path), span)
    }

    /// A name of the top level, whatever it means in between.
    pub(crate) fn global(&mut self, text: &str, span: Span) -> Expr {
        let path = Path { absolute: true, name: name(text, span) };
        self.expr(ExprKind::Name(path), span)
    }

    pub(crate) fn member(&mut self, base: Expr, member: impl Into<Text>, span: Span) -> Expr {
        self.expr(ExprKind::Member(Box::new(base), name(member, span)), span)
    }

    /// `a.b.c`
    pub(crate) fn path(&mut self, parts: &[&str], span: Span) -> Expr {
        let mut e = self.var(parts[0], span);
        for part in &parts[1..] {
            e = self.member(e, *part, span);
        }
        e
    }

    /// `error.x`
    pub(crate) fn error(&mut self, member: &str, span: Span) -> Expr {
        let ty = Type { kind: TypeKind::Error, span };
        let base = self.expr(ExprKind::Type(Box::new(ty)), span);
        self.member(base, member, span)
    }

    /// A number without width.
    pub(crate) fn int(&mut self, value: u32, span: Span) -> Expr {
        let literal = IntLiteral { value: value.into(), width: None, radix: 10 };
        self.expr(ExprKind::Int(literal), span)
    }

    /// A number cut to a width, as `bit<width>` or `int<width>`.
    pub(crate) fn number(&mut self, value: &BigInt, width: u32, signed: bool, span: Span) -> Expr {
        let modulus = BigInt::one() << width;
        let mut rest = value % &modulus;
        if rest.is_negative() {
            rest += modulus;
        }
        let literal =
            IntLiteral { value: rest, width: Some(IntWidth { bits: width, signed: false }), radix: 10 };
        let bits = self.expr(ExprKind::Int(literal), span);
        if signed { self.cast(bits, width, true) } else { bits }
    }

    /// `bit<width>` or `int<width>`
    pub(crate) fn ty(&mut self, width: u32, signed: bool, span: Span) -> Type {
        let width = Box::new(self.int(width, span));
        let kind = if signed { TypeKind::SignedBits(width) } else { TypeKind::Bits(Some(width)) };
        Type { kind, span }
    }

    pub(crate) fn cast(&mut self, e: Expr, width: u32, signed: bool) -> Expr {
        let span = e.span;
        let ty = self.ty(width, signed, span);
        self.expr(ExprKind::Cast(Box::new(ty), Box::new(e)), span)
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, e: Expr) -> Expr {
        let span = e.span;
        self.expr(ExprKind::Unary(op, Box::new(e)), span)
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr, span: Span) -> Expr {
        self.expr(ExprKind::Binary(op, Box::new(a), Box::new(b)), span)
    }

    pub(crate) fn conditional(&mut self, condition: Expr, then: Expr, otherwise: Expr, span: Span) -> Expr {
        let kind = ExprKind::Conditional {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        self.expr(kind, span)
    }

    pub(crate) fn call(&mut self, callee: Expr, type_args: Vec<Type>, args: Vec<Expr>, span: Span) -> Expr {
        let args = args.into_iter().map(argument).collect();
        self.expr(ExprKind::Call { callee: Box::new(callee), type_args, args }, span)
    }

    /// `f(args);`
    pub(crate) fn call_stmt(&mut self, callee: Expr, args: Vec<Expr>, span: Span) -> Stmt {
        let call = self.call(callee, Vec::new(), args, span);
        Stmt { kind: StmtKind::Call(call), span }
    }

    /// `f(args);` of a function by name.
    pub(crate) fn function(&mut self, f: &str, args: Vec<Expr>, span: Span) -> Stmt {
        let callee = self.global(f, span);
        self.call_stmt(callee, args, span)
    }

    /// `E.member` of an enumeration.
    pub(crate) fn constant(&mut self, enumeration: &str, member: &str, span: Span) -> Expr {
        let base = self.global(enumeration, span);
        self.member(base, member, span)
    }

    /// `e.f(args);`
    pub(crate) fn method(&mut self, object: Expr, method: &str, args: Vec<Expr>, span: Span) -> Stmt {
        let callee = self.member(object, method, span);
        self.call_stmt(callee, args, span)
    }

    /// `e.isValid()`
    pub(crate) fn is_valid(&mut self, header: Expr) -> Expr {
        let span = header.span;
        let callee = self.member(header, "isValid", span);
        self.call(callee, Vec::new(), Vec::new(), span)
    }
}

pub(crate) fn name(text: impl Into<Text>, span: Span) -> Name {
    Name { text: text.into(), span }
}

pub(crate) fn named_type(text: &str, span: Span) -> Type {
    Type { kind: TypeKind::Name(Path { absolute: true, name: name(text, span) }), span }
}

pub(crate) fn argument(value: Expr) -> Argument {
    Argument { name: None, span: value.span, value: Some(value) }
}

pub(crate) fn assign(target: Expr, value: Expr, span: Span) -> Stmt {
    Stmt { kind: StmtKind::Assign { op: None, target, value }, span }
}

pub(crate) fn block(statements: Vec<Stmt>, span: Span) -> Block {
    Block { annotations: Vec::new(), statements, span }
}

pub(crate) fn block_stmt(statements: Vec<Stmt>, span: Span) -> Stmt {
    Stmt { kind: StmtKind::Block(block(statements, span)), span }
}

pub(crate) fn if_stmt(condition: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>, span: Span) -> Stmt {
    let then = Box::new(block_stmt(then, span));
    let otherwise = (!otherwise.is_empty()).then(|| Box::new(block_stmt(otherwise, span)));
    Stmt { kind: StmtKind::If { condition, then, otherwise }, span }
}

pub(crate) fn variable(ty: Type, variable: &str, init: Option<Expr>, span: Span) -> Stmt {
    let variable = Variable { annotations: Vec::new(), ty, name: name(variable, span), init, span };
    Stmt { kind: StmtKind::Variable(variable), span }
}

/// `@name(".x")`: the name for the control plane, from the top.
pub(crate) fn control_plane(text: &str, span: Span) -> Annotation {
    string_annotation("name", &format!(".{text}"), span)
}

pub(crate) fn string_annotation(annotation: &str, text: &str, span: Span) -> Annotation {
    let text: Text = text.into();
    let token = AnnotationToken {
        kind: AnnotationTokenKind::String(text.clone()),
        text: format!("\"{text}\"").into(),
        span,
    };
    Annotation { name: name(annotation, span), body: AnnotationBody::Tokens(vec![token]), span }
}

/// `@x(1, 2)`
pub(crate) fn numbers_annotation(annotation: &str, numbers: &[u32], span: Span) -> Annotation {
    let mut tokens = Vec::new();
    for number in numbers {
        if !tokens.is_empty() {
            tokens.push(AnnotationToken { kind: AnnotationTokenKind::Symbol, text: ",".into(), span });
        }
        let literal = IntLiteral { value: (*number).into(), width: None, radix: 10 };
        let text = number.to_string().into();
        tokens.push(AnnotationToken { kind: AnnotationTokenKind::Int(literal), text, span });
    }
    Annotation { name: name(annotation, span), body: AnnotationBody::Tokens(tokens), span }
}
