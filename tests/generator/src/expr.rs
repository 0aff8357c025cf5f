//! Expressions of a wanted type.

use crate::scope::Scope;
use crate::types::{Ty, Types};
use millrace_pipeline::arbitrary::Rng;

/// Writes expressions over a scope.
pub(crate) struct Exprs<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) types: &'a Types,
    pub(crate) scope: &'a Scope,
    /// Whether values must be known when the program is compiled.
    pub(crate) constant: bool,
}

impl Exprs<'_> {
    /// An expression of a type, at most so deep.
    pub(crate) fn of(&mut self, ty: Ty, depth: u32) -> String {
        if depth == 0 || self.rng.one_in(4) {
            return self.leaf(ty);
        }
        match ty {
            Ty::Bool => self.truth(depth - 1),
            Ty::Bit(width) => self.bits(width, depth - 1),
            Ty::Int(width) => self.int(width, depth - 1),
            Ty::Enum(_) => self.choice(ty, depth - 1),
            Ty::Header(_) | Ty::Struct(_) => self.leaf(ty),
        }
    }

    /// A variable or a literal.
    pub(crate) fn leaf(&mut self, ty: Ty) -> String {
        if !self.constant
            && self.rng.below(4) > 0
            && let Some(var) = self.scope.pick(self.rng, |var| var.ty == ty)
        {
            return var.path.clone();
        }
        self.literal(ty)
    }

    pub(crate) fn literal(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bool => ["true", "false"][self.rng.below(2)].into(),
            Ty::Bit(width) => {
                let value = self.rng.bits(width).to_biguint();
                if self.rng.one_in(3) { format!("{width}w0x{value:x}") } else { format!("{width}w{value}") }
            }
            Ty::Int(width) => {
                // The magnitude fits the positive half.
                let value = self.rng.bits(width - 1).to_biguint();
                if self.rng.one_in(3) { format!("(-{width}s{value})") } else { format!("{width}s{value}") }
            }
            Ty::Enum(at) => {
                let enumeration = &self.types.enums[at];
                format!("{}.M{}", enumeration.name, self.rng.below(enumeration.members.len()))
            }
            Ty::Header(_) | Ty::Struct(_) => {
                let record = match ty {
                    Ty::Header(at) => &self.types.headers[at],
                    Ty::Struct(at) => &self.types.structs[at],
                    _ => return String::new(),
                };
                let fields: Vec<String> = record
                    .fields
                    .iter()
                    .map(|field| format!("{} = {}", field.name, self.literal(field.ty)))
                    .collect();
                format!("{{ {} }}", fields.join(", "))
            }
        }
    }

    /// A number without a width, where the place gives one.
    fn plain(&mut self, width: u32, signed: bool) -> String {
        let most = if signed { width - 1 } else { width };
        self.rng.bits(most).to_biguint().to_string()
    }

    /// The right side of an operator whose left side has the type.
    fn operand(&mut self, ty: Ty, depth: u32) -> String {
        match ty {
            Ty::Bit(width) if self.rng.one_in(6) => self.plain(width, false),
            Ty::Int(width) if self.rng.one_in(6) => self.plain(width, true),
            _ => self.of(ty, depth),
        }
    }

    fn choice(&mut self, ty: Ty, depth: u32) -> String {
        let (cond, then, els) = (self.of(Ty::Bool, depth), self.of(ty, depth), self.of(ty, depth));
        format!("({cond} ? {then} : {els})")
    }

    /// Operators of one type need no brackets, whatever binds tighter.
    fn binary(&mut self, ty: Ty, operators: &[&str], depth: u32) -> String {
        let mut text = self.of(ty, depth);
        for _ in 0..1 + self.rng.below(2) {
            let operator = operators[self.rng.below(operators.len())];
            text = format!("{text} {operator} {}", self.operand(ty, depth));
        }
        format!("({text})")
    }

    fn call(&mut self, ty: Ty, depth: u32) -> Option<String> {
        if self.constant {
            return None;
        }
        let fitting: Vec<_> = self.scope.functions.iter().filter(|function| function.result == ty).collect();
        let function = self.rng.pick(&fitting).copied()?.clone();
        let mut arguments = Vec::new();
        for (ty, written) in function.params {
            arguments.push(match written {
                true => self.scope.pick(self.rng, |var| var.writable && var.ty == ty)?.path.clone(),
                false => self.of(ty, depth),
            });
        }
        Some(format!("{}({})", function.name, arguments.join(", ")))
    }

    fn bits(&mut self, width: u32, depth: u32) -> String {
        let ty = Ty::Bit(width);
        match self.rng.below(14) {
            0..=3 => self.binary(ty, &["+", "-", "*", "&", "|", "^"], depth),
            4 => self.binary(ty, &["|+|", "|-|"], depth),
            5 => {
                let operator = ["<<", ">>"][self.rng.below(2)];
                let amount = match self.rng.below(3) {
                    0 => self.rng.below(width as usize + 2).to_string(),
                    _ => {
                        let amount = Ty::Bit(self.types.width(self.rng).min(16));
                        self.of(amount, depth)
                    }
                };
                format!("({} {operator} {amount})", self.of(ty, depth))
            }
            6 => format!("{}{}", ["-", "~"][self.rng.below(2)], self.bracketed(ty, depth)),
            7 => self.choice(ty, depth),
            8 => {
                let from = self.types.width(self.rng);
                format!("(bit<{width}>){}", self.bracketed(Ty::Bit(from), depth))
            }
            9 if width > 1 => format!("(bit<{width}>){}", self.bracketed(Ty::Int(width), depth)),
            9 => format!("(bit<1>){}", self.bracketed(Ty::Bool, depth)),
            10 if width > 1 => {
                let high = 1 + self.rng.below(width as usize - 1) as u32;
                format!("({} ++ {})", self.of(Ty::Bit(high), depth), self.of(Ty::Bit(width - high), depth))
            }
            11 | 10 => {
                let Some(wider) =
                    self.scope.pick(self.rng, |var| matches!(var.ty, Ty::Bit(own) if own >= width))
                else {
                    return self.leaf(ty);
                };
                let Ty::Bit(own) = wider.ty else { return self.leaf(ty) };
                let path = wider.path.clone();
                if self.constant {
                    return self.leaf(ty);
                }
                let low = self.rng.below((own - width) as usize + 1) as u32;
                format!("{path}[{}:{low}]", low + width - 1)
            }
            12 => self.call(ty, depth).unwrap_or_else(|| self.leaf(ty)),
            _ => {
                let fitting: Vec<usize> = (self.types.enums.iter().enumerate())
                    .filter(|(_, enumeration)| enumeration.width == width)
                    .map(|(at, _)| at)
                    .collect();
                match self.rng.pick(&fitting) {
                    Some(at) => format!("(bit<{width}>){}", self.bracketed(Ty::Enum(*at), depth)),
                    None => self.leaf(ty),
                }
            }
        }
    }

    fn int(&mut self, width: u32, depth: u32) -> String {
        let ty = Ty::Int(width);
        match self.rng.below(9) {
            0..=2 => self.binary(ty, &["+", "-", "*", "&", "|", "^"], depth),
            3 => self.binary(ty, &["|+|", "|-|"], depth),
            4 => {
                let operator = ["<<", ">>"][self.rng.below(2)];
                format!("({} {operator} {})", self.of(ty, depth), self.of(Ty::Bit(8), depth))
            }
            5 => format!("{}{}", ["-", "~"][self.rng.below(2)], self.bracketed(ty, depth)),
            6 => self.choice(ty, depth),
            7 => format!("(int<{width}>){}", self.bracketed(Ty::Bit(width), depth)),
            _ => {
                let from = self.types.width(self.rng).max(2);
                format!("(int<{width}>){}", self.bracketed(Ty::Int(from), depth))
            }
        }
    }

    /// Casts and signs bind tighter than what may follow them.
    fn bracketed(&mut self, ty: Ty, depth: u32) -> String {
        format!("({})", self.of(ty, depth))
    }

    fn truth(&mut self, depth: u32) -> String {
        match self.rng.below(9) {
            0 => {
                let operator = ["&&", "||"][self.rng.below(2)];
                format!("({} {operator} {})", self.of(Ty::Bool, depth), self.of(Ty::Bool, depth))
            }
            1 => format!("!{}", self.bracketed(Ty::Bool, depth)),
            2 => self.choice(Ty::Bool, depth),
            3 if !self.constant => match self.scope.pick(self.rng, |var| matches!(var.ty, Ty::Header(_))) {
                Some(header) => format!("{}.isValid()", header.path),
                None => self.literal(Ty::Bool),
            },
            4 if !self.constant => self.same_records(),
            5 => format!("(bool){}", self.bracketed(Ty::Bit(1), depth)),
            6 => {
                let ty = self.types.scalar(self.rng);
                let operator = ["==", "!="][self.rng.below(2)];
                format!("({} {operator} {})", self.of(ty, depth), self.of(ty, depth))
            }
            _ => {
                let width = self.types.width(self.rng).max(2);
                let ty = if self.rng.one_in(3) { Ty::Int(width) } else { Ty::Bit(width) };
                let operator = ["==", "!=", "<", "<=", ">", ">="][self.rng.below(6)];
                format!("({} {operator} {})", self.of(ty, depth), self.operand(ty, depth))
            }
        }
    }

    /// Two headers or structs of one type, compared.
    fn same_records(&mut self) -> String {
        let is_record = |ty: Ty| match ty {
            Ty::Header(at) => self.types.headers[at].varbit.is_none(),
            Ty::Struct(_) => true,
            _ => false,
        };
        let Some(one) = self.scope.pick(self.rng, |var| is_record(var.ty)).cloned() else {
            return self.literal(Ty::Bool);
        };
        let other = self
            .scope
            .pick(self.rng, |var| var.ty == one.ty)
            .map_or(one.path.clone(), |var| var.path.clone());
        let operator = ["==", "!="][self.rng.below(2)];
        format!("({} {operator} {other})", one.path)
    }
}
