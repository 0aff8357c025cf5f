//! Code of one body: what statements and expressions become.
//!
//! A [`Code`] writes one body of the IR. Calls are inlined: each has a [`Frame`] with what its variables mean and where
//! it returns to. Expressions become [`Value`]s, trees of pure IR expressions that are read when they are used; so
//! whoever evaluates something with effects first puts the values at hand into temporaries ([`Code::settle`]).

mod bind;
mod call;
mod cast;
mod expr;
mod header;
mod lvalue;
mod operator;
mod repeat;
mod stmt;
mod store;
mod switch;

pub(crate) use bind::{Alias, Bound};

use foldhash::{HashMap, HashMapExt};
use indexmap::IndexMap;
use millrace_pipeline::{
    BlockId, BodyBuilder, BodyId, BodyKind, Expr, Home, Inst, SlotId, SourceKind, Terminator, Type,
};
use millrace_sema::hir::{self, InstanceId, Ty, VarId};
use millrace_syntax::Span;

use crate::context::Lowering;
use crate::fail::{Lower, code, fail, internal};
use crate::limits;
use crate::objects::{Binding, ObjectId};
use crate::storage::{LValue, Storage};
use crate::value::{Value, is_trivial};

/// A body under construction.
pub(crate) struct Code<'c, 'a> {
    /// What the lowering shares.
    pub(crate) cx: &'c mut Lowering<'a>,
    /// The IR.
    pub(crate) body: BodyBuilder,
    /// The inlined calls, outermost first; never empty.
    pub(crate) frames: Vec<Frame>,
    /// The statement or declaration at hand.
    pub(crate) span: Span,
    pub(crate) name: String,
    /// The file that it is in.
    pub(crate) file: String,
    nesting: usize,
    rejects: HashMap<u32, BlockId>,
    emitted: usize,
    /// Whether what is written is only handed on: nobody asks for a drop there.
    is_copying: bool,
    /// Arguments of the extern call at hand that are evaluated already.
    early: HashMap<*const hir::Expr, Value>,
}

/// One inlined call, or the outermost block of the body.
pub(crate) struct Frame {
    /// The parser or control whose declarations are in scope.
    pub(crate) block: Option<ObjectId>,
    /// Whether this is the code of that block itself, not of a function or action in it.
    is_block: bool,
    /// What `this` is.
    this: Option<ObjectId>,
    /// Parameters and variables of a function or action; those of a block live with the block.
    vars: HashMap<VarId, Binding>,
    /// Where `return` goes (a parser: `accept`).
    pub(crate) ret: BlockId,
    /// Where the returned value goes.
    result: Option<Storage>,
    /// Where `exit` goes, once somebody asked.
    exit: Option<BlockId>,
    /// The call.
    pub(crate) call: Span,
    /// What is copied to the caller's arguments at the end, in order.
    copy_outs: Vec<(LValue, Storage)>,
    /// The loops around the statement at hand.
    loops: Vec<Loop>,
    /// For names of storage.
    path: String,
    /// Blocks of parser states by number, in the order in which something went to them first.
    pub(crate) states: IndexMap<usize, BlockId>,
}

/// A loop of the source.
#[derive(Clone, Copy)]
struct Loop {
    breaks: BlockId,
    continues: BlockId,
}

impl<'c, 'a> Code<'c, 'a> {
    /// A body whose code belongs to a block. `return` and the end of the code go to the block returned.
    pub(crate) fn new(
        cx: &'c mut Lowering<'a>,
        name: &str,
        kind: BodyKind,
        block: Option<ObjectId>,
        span: Span,
    ) -> (Code<'c, 'a>, BlockId) {
        cx.sites.stands(SourceKind::Body, name, span);
        let file = cx.sites.file(span);
        let mut body = BodyBuilder::new(name, kind);
        let end = body.create_block();
        let frame = Frame {
            block,
            is_block: kind != BodyKind::Action,
            this: None,
            vars: HashMap::new(),
            ret: end,
            result: None,
            exit: None,
            call: span,
            copy_outs: Vec::new(),
            loops: Vec::new(),
            path: name.to_owned(),
            states: IndexMap::new(),
        };
        let code = Code {
            cx,
            body,
            frames: vec![frame],
            span,
            name: name.to_owned(),
            file,
            nesting: 0,
            rejects: HashMap::new(),
            emitted: 0,
            is_copying: false,
            early: HashMap::new(),
        };
        (code, end)
    }

    /// Adds the body to the program.
    pub(crate) fn finish(self) -> Lower<BodyId> {
        let span = self.span;
        let mut body = self.body;
        // Blocks that were made and not used go nowhere and are not reached.
        if body.current().is_some() {
            body.end();
        }
        match body.finish(&mut self.cx.ir) {
            Ok(id) => Ok(id),
            Err(e) => internal(span, e.to_string()),
        }
    }

    // ---- Emission ----

    /// A new block.
    pub(crate) fn block(&mut self) -> BlockId {
        self.cx.budget.blocks += 1;
        self.emitted += 1;
        self.body.create_block()
    }

    /// Adds an instruction.
    pub(crate) fn push(&mut self, inst: Inst) {
        self.cx.budget.insts += 1;
        self.emitted += 1;
        self.note_use(&inst);
        self.body.push(inst);
    }

    /// Writes a slot.
    pub(crate) fn assign(&mut self, dst: SlotId, value: Expr) {
        if value != Expr::Read(dst) {
            if !self.is_copying {
                self.note_write(dst, &value);
            }
            self.push(Inst::Assign { dst, value });
        }
    }

    /// Writes what is only handed on.
    pub(crate) fn copying<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_copying, true);
        let written = write(self);
        self.is_copying = before;
        written
    }

    /// The name of the body.
    pub(crate) fn body_name(&self) -> &str {
        &self.name
    }

    /// The statement at hand, or the call of a library's code that it belongs to; the call of what it is in, if that is
    /// inlined, and its name; and the name of the library's code.
    pub(crate) fn users_place(&self) -> (Span, Option<Span>, String, Option<String>) {
        let (mut span, mut called) = (self.span, None);
        for (at, frame) in self.frames.iter().enumerate().rev() {
            if at == 0 || !self.cx.sites.is_library(span) {
                return (span, (at > 0).then_some(frame.call), frame.path.clone(), called);
            }
            (span, called) = (frame.call, frame.path.rsplit('.').next().map(str::to_owned));
        }
        (span, None, self.name.clone(), called)
    }

    /// How much was emitted so far; the same number later means that nothing was since.
    pub(crate) fn mark(&self) -> usize {
        self.emitted
    }

    /// Whether code at this point can be reached.
    pub(crate) fn reachable(&self) -> bool {
        self.body.current().is_some()
    }

    /// Goes to a block and continues there.
    pub(crate) fn continue_at(&mut self, block: BlockId) {
        self.body.goto(block);
        self.body.switch_to(block);
    }

    /// Branches; `then` is current afterwards. Gives `then` and `els`.
    pub(crate) fn branch(&mut self, cond: Expr) -> (BlockId, BlockId) {
        let (then, els) = (self.block(), self.block());
        self.body.branch(cond, then, els);
        self.body.switch_to(then);
        (then, els)
    }

    /// Checks the limits on growth and depth; called for each statement and expression on the way down.
    fn descend(&mut self, span: Span) -> Lower<()> {
        self.nesting += 1;
        if self.nesting > limits::MAX_NESTING {
            return fail(
                code::LIMIT,
                span,
                "calls, statements and expressions nest too deeply here when inlined",
            );
        }
        self.cx.budget.visits += 1;
        self.cx.budget.check(span)
    }

    fn ascend(&mut self) {
        self.nesting -= 1;
    }

    // ---- Frames ----

    /// Binds parameters of the outermost code.
    pub(crate) fn open(&mut self, bound: Bound) {
        let frame = &mut self.frames[0];
        frame.vars.extend(bound.vars);
        frame.copy_outs = bound.copy_outs;
    }

    /// Ends the body at the block where the outermost code returns to, after its copy-outs.
    pub(crate) fn close(&mut self, end: BlockId) -> Lower<()> {
        self.body.switch_to(end);
        self.body.stands_at(None);
        for (lvalue, storage) in self.frames[0].copy_outs.clone() {
            self.copying(|code| code.store(&lvalue, Value::read(&storage)))?;
        }
        self.body.end();
        Ok(())
    }

    /// The name of a parser state: those of nested parsers begin with the instance.
    pub(crate) fn state_name(&self, state: &str) -> String {
        if self.frames.len() == 1 {
            return state.to_owned();
        }
        let path = &self.frame().path;
        let short = path.strip_prefix(&self.name).and_then(|p| p.strip_prefix('.')).unwrap_or(path);
        format!("{short}.{state}")
    }

    /// The innermost call.
    pub(crate) fn frame(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    /// The innermost call, to change it.
    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The block whose declarations are in scope.
    pub(crate) fn scope(&self) -> Option<ObjectId> {
        self.frame().block
    }

    /// What a variable means here.
    pub(crate) fn binding(&self, var: VarId) -> Option<&Binding> {
        let frame = self.frame();
        frame.vars.get(&var).or_else(|| self.cx.objects.block(frame.block?)?.vars.get(&var))
    }

    /// Says what a variable means from now on.
    pub(crate) fn bind_var(&mut self, var: VarId, binding: Binding) {
        match self.owner().and_then(|o| self.cx.objects.block_mut(o)) {
            Some(block) => block.vars.insert(var, binding),
            None => self.frame_mut().vars.insert(var, binding),
        };
    }

    /// The block that the variables declared here belong to; none in functions and actions.
    pub(crate) fn owner(&self) -> Option<ObjectId> {
        let frame = self.frame();
        frame.block.filter(|_| frame.is_block)
    }

    /// Where `exit` goes from the innermost call: through the copy-outs of all calls to the end of the body.
    pub(crate) fn exit_target(&mut self) -> Lower<BlockId> {
        self.exit_of(self.frames.len() - 1)
    }

    fn exit_of(&mut self, index: usize) -> Lower<BlockId> {
        if let Some(block) = self.frames[index].exit {
            return Ok(block);
        }
        let block = match (index, self.frames[index].copy_outs.is_empty()) {
            (0, true) if self.body.kind() != BodyKind::Action => self.frames[0].ret,
            (1.., true) => self.exit_of(index - 1)?,
            _ => {
                let outer = if index > 0 { Some(self.exit_of(index - 1)?) } else { None };
                let block = self.block();
                let here = self.body.current();
                self.body.switch_to(block);
                for (lvalue, storage) in self.frames[index].copy_outs.clone() {
                    self.copying(|code| code.store(&lvalue, Value::read(&storage)))?;
                }
                match outer {
                    Some(outer) => self.body.goto(outer),
                    None if self.body.kind() == BodyKind::Action => self.body.exit(),
                    None => {
                        let end = self.frames[0].ret;
                        self.body.goto(end);
                    }
                }
                if let Some(here) = here {
                    self.body.switch_to(here);
                }
                block
            }
        };
        self.frames[index].exit = Some(block);
        Ok(block)
    }

    /// The object that an instance stands for here.
    pub(crate) fn object(&mut self, instance: InstanceId) -> Lower<ObjectId> {
        let scope = self.scope();
        self.cx.instance(instance, scope)
    }

    // ---- Temporaries ----

    /// A new slot that only this body uses.
    pub(crate) fn temp(&mut self, ty: Type) -> SlotId {
        let name = format!("{}.tmp", self.name);
        self.cx.ir.local(&name, ty)
    }

    /// Storage for a value that only this body uses.
    pub(crate) fn temp_storage(&mut self, ty: Ty) -> Lower<Storage> {
        let name = format!("{}.tmp", self.name);
        self.cx.allocate(ty, &name, Home::Local, self.span)
    }

    /// The type of an expression.
    pub(crate) fn type_of(&self, expr: &Expr) -> Type {
        expr.ty(self.cx.ir.program())
    }

    /// The expression in a temporary of its own.
    pub(crate) fn in_temp(&mut self, expr: Expr) -> Expr {
        let temp = self.temp(self.type_of(&expr));
        self.push(Inst::Assign { dst: temp, value: expr });
        Expr::Read(temp)
    }

    /// The same value, cheap to use more than once.
    pub(crate) fn simple(&mut self, expr: Expr) -> Expr {
        if is_trivial(&expr) { expr } else { self.in_temp(expr) }
    }

    /// The same value, which nothing that follows can change.
    pub(crate) fn settle(&mut self, value: Value) -> Value {
        value.map(&mut |e| self.settle_expr(e))
    }

    /// As [`Code::settle`] for one scalar.
    pub(crate) fn settle_expr(&mut self, expr: Expr) -> Expr {
        match expr {
            Expr::Const(_) | Expr::Bool(_) | Expr::PacketLength => expr,
            expr => self.in_temp(expr),
        }
    }

    // ---- Errors of parsers ----

    /// The block that ends the parser with an error code of the IR.
    pub(crate) fn reject_block(&mut self, error: u32) -> BlockId {
        if let Some(block) = self.rejects.get(&error) {
            return *block;
        }
        let block = self.block();
        let here = self.body.current();
        self.body.switch_to(block);
        if error != 0 {
            let slot = self.cx.ir.intrinsic(millrace_pipeline::Intrinsic::ParserError);
            self.push(Inst::Assign { dst: slot, value: Expr::bits(16, u128::from(error)) });
        }
        self.body.terminate(Terminator::Reject);
        if let Some(here) = here {
            self.body.switch_to(here);
        }
        self.rejects.insert(error, block);
        block
    }

    /// Ends the parser with an error that the core library declares, unless the condition holds.
    pub(crate) fn require(&mut self, cond: Expr, error: &str) -> Lower<()> {
        if self.body.kind() != BodyKind::Parser {
            return fail(code::PLACE, self.span, "this can fail, which only parsers may");
        }
        let error = self.cx.ir.error(error);
        let bad = self.reject_block(error);
        let good = self.block();
        self.body.branch(cond, good, bad);
        self.body.switch_to(good);
        Ok(())
    }
}
