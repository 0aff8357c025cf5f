//! Parsing: bodies, instructions, terminators, expressions.

use super::lexer::Token;
use super::parse::{Parser, Result};
use crate::*;
use cranelift_entity::PrimaryMap;

impl<'t> Parser<'t> {
    pub(super) fn body(&mut self) -> Result<()> {
        let kind = self.choice("the kind of body", BodyKind::from_name)?;
        let name = self.name()?;
        let entry = if self.eat_word("entry") { self.block()? } else { BlockId::from_u32(0) };
        self.sign("{")?;
        let mut blocks: PrimaryMap<BlockId, Block> = PrimaryMap::new();
        while !self.eat("}") {
            let wanted = blocks.next_key();
            if !self.is_word(&wanted.to_string()) {
                return self.expected(&format!("`{wanted}` or `}}`"));
            }
            self.block()?;
            let state = if self.eat_word("state") { Some(self.name()?) } else { None };
            let line = if self.eat_word("line") { Some(self.number()?) } else { None };
            self.sign(":")?;
            let mut insts = Vec::new();
            let term = loop {
                if let Some(term) = self.terminator()? {
                    break term;
                }
                insts.push(self.inst()?);
            };
            blocks.push(Block { state, line, insts, term });
        }
        self.program.bodies.push(Body { name, kind, blocks, entry });
        Ok(())
    }

    /// A terminator, if one comes next.
    fn terminator(&mut self) -> Result<Option<Terminator>> {
        let term = if self.is_assignment() {
            return Ok(None);
        } else if self.eat_word("goto") {
            Terminator::Goto(self.block()?)
        } else if self.eat_word("branch") {
            let cond = self.expr()?;
            let (then, els) = (self.comma(Parser::block)?, self.comma(Parser::block)?);
            Terminator::Branch { cond, then, els }
        } else if self.eat_word("select") {
            self.select()?
        } else if self.eat_word("apply") {
            self.apply()?
        } else if self.eat_word("end") {
            Terminator::End
        } else if self.eat_word("reject") {
            Terminator::Reject
        } else if self.eat_word("exit") {
            Terminator::Exit
        } else {
            return Ok(None);
        };
        Ok(Some(term))
    }

    fn comma<T>(&mut self, item: impl FnOnce(&mut Parser<'t>) -> Result<T>) -> Result<T> {
        self.sign(",")?;
        item(self)
    }

    fn select(&mut self) -> Result<Terminator> {
        let keys = self.list(Parser::expr)?;
        self.sign("{")?;
        let mut cases = Vec::new();
        while !self.eat_word("default") {
            let matchers =
                if self.is_sign("(") { self.list(Parser::matcher)? } else { vec![self.matcher()?] };
            self.sign("=>")?;
            cases.push(Case { matchers, target: self.block()? });
        }
        self.sign("=>")?;
        let default = self.block()?;
        self.sign("}")?;
        Ok(Terminator::Select { keys, cases, default })
    }

    fn matcher(&mut self) -> Result<Matcher> {
        if self.eat_word("_") {
            return Ok(Matcher::Any);
        }
        if self.eat_word("in") {
            return Ok(Matcher::ValueSet(self.find("value set", |n| &n.value_sets)?));
        }
        if self.eat_word("signed") {
            let low = self.bits()?;
            self.sign("..")?;
            return Ok(Matcher::RangeSigned(low, self.bits()?));
        }
        let value = self.bits()?;
        if self.eat("&&&") {
            return Ok(Matcher::Mask(value, self.bits()?));
        }
        if self.eat("..") {
            return Ok(Matcher::Range(value, self.bits()?));
        }
        Ok(Matcher::Value(value))
    }

    fn apply(&mut self) -> Result<Terminator> {
        let table = self.find("table", |n| &n.tables)?;
        let mut slot = |word: &str| -> Result<Option<SlotId>> {
            if !self.is_next_labelled(word) {
                return Ok(None);
            }
            self.sign(",")?;
            self.word(word)?;
            self.sign("=")?;
            self.slot().map(Some)
        };
        let (hit, action) = (slot("hit")?, slot("action")?);
        let mut block = |word: &str| {
            self.sign(",")?;
            self.word(word)?;
            self.sign("=")?;
            self.block()
        };
        let (next, exit) = (block("next")?, block("exit")?);
        Ok(Terminator::Apply { table, hit, action, next, exit })
    }

    fn inst(&mut self) -> Result<Inst> {
        if self.is_assignment() {
            let dst = self.slot()?;
            self.sign("=")?;
            return Ok(Inst::Assign { dst, value: self.expr()? });
        }
        let Token::Word(word) = *self.peek() else { return self.expected("an instruction") };
        if !is_mnemonic(word) {
            return self.expected("an instruction");
        }
        self.skip();
        let inst = match word {
            "set_valid" => Inst::SetValid(self.header()?),
            "set_invalid" => Inst::SetInvalid(self.header()?),
            "extract" => Inst::Extract(self.header()?),
            "extract_var" => Inst::ExtractVar { header: self.header()?, bits: self.comma(Parser::expr)? },
            "advance" => Inst::Advance { bits: self.expr()? },
            "lookahead" => {
                let dst = self.slot()?;
                let skip = if self.eat(",") {
                    self.word("skip")?;
                    self.number()?
                } else {
                    0
                };
                Inst::Lookahead { dst, skip }
            }
            "emit" => Inst::Emit(self.header()?),
            "count" => {
                let counter = self.find("counter", |n| &n.counters)?;
                Inst::Count { counter, index: self.comma(Parser::expr)? }
            }
            "count_direct" => Inst::CountDirect(self.find("table", |n| &n.tables)?),
            "meter" => {
                let dst = self.slot()?;
                let meter = self.comma(|p| p.find("meter", |n| &n.meters))?;
                let index = self.comma(Parser::expr)?;
                let [color, length] = self.metered()?;
                Inst::Meter { dst, meter, index, color, length }
            }
            "meter_direct" => {
                let dst = self.slot()?;
                let table = self.comma(|p| p.find("table", |n| &n.tables))?;
                let [color, length] = self.metered()?;
                Inst::MeterDirect { dst, table, color, length }
            }
            "register_read" => {
                let dst = self.slot()?;
                let register = self.comma(|p| p.find("register", |n| &n.registers))?;
                Inst::RegisterRead { dst, register, index: self.comma(Parser::expr)? }
            }
            "register_write" => {
                let register = self.find("register", |n| &n.registers)?;
                Inst::RegisterWrite {
                    register,
                    index: self.comma(Parser::expr)?,
                    value: self.comma(Parser::expr)?,
                }
            }
            "atomic_begin" => Inst::AtomicBegin { index: Some(self.expr()?) },
            "atomic_begin_all" => Inst::AtomicBegin { index: None },
            "atomic_end" => Inst::AtomicEnd,
            "hash" => {
                let dst = self.slot()?;
                let algorithm = self.comma(Parser::algorithm)?;
                let own = if self.is_sign(",") { None } else { Some(self.find("own_hash", |n| &n.hashes)?) };
                Inst::Hash { dst, algorithm, own, data: self.comma(|p| p.list(Parser::data_item))? }
            }
            "random" => {
                let dst = self.slot()?;
                Inst::Random { dst, low: self.comma(Parser::expr)?, high: self.comma(Parser::expr)? }
            }
            "digest" => {
                let digest = self.find("digest", |n| &n.digests)?;
                Inst::Digest { digest, values: self.comma(|p| p.list(Parser::expr))? }
            }
            "call" => {
                let dst = self.slot()?;
                let plugin = self.comma(|p| p.find("plugin", |n| &n.plugins))?;
                let args = self.comma(|p| p.list(Parser::expr))?;
                Inst::Call { dst, plugin, args, results: self.comma(Parser::number)? }
            }
            "call_result" => Inst::CallResult { dst: self.slot()?, index: self.comma(Parser::number)? },
            "stop" => Inst::Stop { cond: self.expr()? },
            "log" => Inst::Log { format: self.quoted()?, args: self.comma(|p| p.list(Parser::expr))? },
            _ => Inst::Assert { cond: self.expr()?, text: self.comma(Parser::quoted)? },
        };
        Ok(inst)
    }

    /// `, color EXPR` and `, length EXPR`, each if it is there.
    fn metered(&mut self) -> Result<[Option<Expr>; 2]> {
        let [mut color, mut length] = [None, None];
        while length.is_none() && self.eat(",") {
            if color.is_none() && self.eat_word("color") {
                color = Some(self.expr()?);
            } else {
                self.word("length")?;
                length = Some(self.expr()?);
            }
        }
        Ok([color, length])
    }

    fn data_item(&mut self) -> Result<DataItem> {
        if self.eat_word("payload") {
            Ok(DataItem::Payload)
        } else if self.eat_word("header") {
            self.header().map(DataItem::Header)
        } else {
            self.expr().map(DataItem::Value)
        }
    }

    /// An expression, without recursion: the operations that are open stand on a stack of their own.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.within_limit(open.len() + 1)?;
            let operation = match self.peek() {
                Token::Word(word) => Operation::from_name(word),
                _ => None,
            };
            if let Some(operation) = operation {
                self.skip();
                self.sign("(")?;
                open.push(Open { operation, operands: Vec::new(), height: 0 });
                continue;
            }
            let mut expr = self.leaf()?;
            let mut height = 1;
            loop {
                while self.eat("[") {
                    let high = self.number()?;
                    self.sign(":")?;
                    let low = self.number()?;
                    self.sign("]")?;
                    height += 1;
                    self.within_limit(open.len() + height)?;
                    expr = Expr::Slice(Box::new(expr), high, low);
                }
                let Some(mut operation) = open.pop() else { return Ok(expr) };
                operation.operands.push(expr);
                operation.height = operation.height.max(height);
                if operation.operands.len() < operation.operation.operands() {
                    self.sign(",")?;
                    open.push(operation);
                    break;
                }
                height = operation.height + 1;
                expr = self.close(operation)?;
            }
        }
    }

    fn within_limit(&self, depth: usize) -> Result<()> {
        if depth <= limits::MAX_EXPR_DEPTH {
            return Ok(());
        }
        self.error(format!("an expression is nested deeper than {}", limits::MAX_EXPR_DEPTH))
    }

    fn leaf(&mut self) -> Result<Expr> {
        let constant = match self.peek() {
            Token::Bits(_) => return self.bits().map(Expr::Const),
            Token::Quoted(_) => return self.slot().map(Expr::Read),
            Token::Word(word) => match *word {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "packet_length" => Expr::PacketLength,
                "cursor" => Expr::Cursor,
                "valid" => {
                    self.skip();
                    self.sign("(")?;
                    let header = self.header()?;
                    self.sign(")")?;
                    return Ok(Expr::IsValid(header));
                }
                _ => return self.slot().map(Expr::Read),
            },
            _ => return self.expected("an expression"),
        };
        self.skip();
        Ok(constant)
    }

    /// What comes after the last operand.
    fn close(&mut self, open: Open) -> Result<Expr> {
        let width = match open.operation {
            Operation::ZeroExtend | Operation::SignExtend => self.comma(Parser::number)?,
            _ => 0,
        };
        self.sign(")")?;
        let mut operands = open.operands.into_iter();
        let mut operand = || Box::new(operands.next().unwrap_or(Expr::Bool(false)));
        let first = operand();
        Ok(match open.operation {
            Operation::Unary(op) => Expr::Unary(op, first),
            Operation::Binary(op) => Expr::Binary(op, first, operand()),
            Operation::Mux => Expr::Mux(first, operand(), operand()),
            Operation::Concat => Expr::Concat(first, operand()),
            Operation::ZeroExtend => Expr::ZeroExtend(first, width),
            Operation::SignExtend => Expr::SignExtend(first, width),
            Operation::BoolToBits => Expr::BoolToBits(first),
        })
    }
}

/// An operation whose operands are being read.
struct Open {
    operation: Operation,
    operands: Vec<Expr>,
    /// Of the highest operand.
    height: usize,
}

#[derive(Clone, Copy)]
enum Operation {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Mux,
    Concat,
    ZeroExtend,
    SignExtend,
    BoolToBits,
}

impl Operation {
    fn from_name(word: &str) -> Option<Operation> {
        Some(match word {
            "mux" => Operation::Mux,
            "concat" => Operation::Concat,
            "zext" => Operation::ZeroExtend,
            "sext" => Operation::SignExtend,
            "bool_to_bits" => Operation::BoolToBits,
            _ => match UnaryOp::from_name(word) {
                Some(op) => Operation::Unary(op),
                None => Operation::Binary(BinaryOp::from_name(word)?),
            },
        })
    }

    fn operands(self) -> usize {
        match self {
            Operation::Mux => 3,
            Operation::Binary(_) | Operation::Concat => 2,
            _ => 1,
        }
    }
}

fn is_mnemonic(word: &str) -> bool {
    matches!(
        word,
        "set_valid"
            | "set_invalid"
            | "extract"
            | "extract_var"
            | "advance"
            | "lookahead"
            | "emit"
            | "count"
            | "count_direct"
            | "meter"
            | "meter_direct"
            | "register_read"
            | "register_write"
            | "atomic_begin"
            | "atomic_begin_all"
            | "atomic_end"
            | "hash"
            | "random"
            | "digest"
            | "call"
            | "call_result"
            | "stop"
            | "log"
            | "assert"
    )
}
