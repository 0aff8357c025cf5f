//! Building one body.

use super::ProgramBuilder;
use crate::*;
use cranelift_entity::PrimaryMap;
use std::fmt;

/// A body under construction: a graph of blocks, one of which is current and takes what comes.
///
/// A terminator closes the current block. What comes until the next [`BodyBuilder::switch_to`] cannot be reached and
/// is left out, so code after a `return` or an `exit` needs no care.
#[derive(Clone, Debug)]
pub struct BodyBuilder {
    name: String,
    kind: BodyKind,
    blocks: PrimaryMap<BlockId, OpenBlock>,
    current: Option<BlockId>,
    /// Where the statement at hand stands.
    line: Option<u32>,
}

#[derive(Clone, Debug, Default)]
struct OpenBlock {
    state: Option<String>,
    line: Option<u32>,
    insts: Vec<Inst>,
    term: Option<Terminator>,
}

/// Why a body cannot be finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A block that can be reached does not say where it goes.
    NoTerminator {
        /// The body.
        body: String,
        /// The block, by its number before unreachable ones are removed.
        block: BlockId,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoTerminator { body, block } => write!(f, "{block} of body {body} has no terminator"),
        }
    }
}

impl std::error::Error for BuildError {}

impl BodyBuilder {
    /// A body with an entry block, which is current.
    pub fn new(name: impl Into<String>, kind: BodyKind) -> BodyBuilder {
        let mut blocks = PrimaryMap::new();
        let entry = blocks.push(OpenBlock::default());
        BodyBuilder { name: name.into(), kind, blocks, current: Some(entry), line: None }
    }

    /// What kind of body it is.
    pub fn kind(&self) -> BodyKind {
        self.kind
    }

    /// The entry block.
    pub fn entry(&self) -> BlockId {
        BlockId::from_u32(0)
    }

    /// A new block. It does not become current.
    pub fn create_block(&mut self) -> BlockId {
        self.blocks.push(OpenBlock::default())
    }

    /// A new block where a parser state starts. It does not become current.
    pub fn create_state(&mut self, name: impl Into<String>) -> BlockId {
        self.blocks.push(OpenBlock { state: Some(name.into()), ..OpenBlock::default() })
    }

    /// Says which parser state starts in a block.
    pub fn set_state(&mut self, block: BlockId, name: impl Into<String>) {
        self.blocks[block].state = Some(name.into());
    }

    /// Makes a block current; what comes is added to its end.
    pub fn switch_to(&mut self, block: BlockId) {
        self.current = self.blocks[block].term.is_none().then_some(block);
    }

    /// The current block; none after a terminator.
    pub fn current(&self) -> Option<BlockId> {
        self.current
    }

    /// Says in which line of the source what comes next stands: a block has the line of what is first in it.
    pub fn stands_at(&mut self, line: Option<u32>) {
        self.line = line;
    }

    /// Adds an instruction.
    pub fn push(&mut self, inst: Inst) {
        if let Some(block) = self.current {
            let block = &mut self.blocks[block];
            block.line = block.line.or(self.line);
            block.insts.push(inst);
        }
    }

    /// Adds [`Inst::Assign`].
    pub fn assign(&mut self, dst: SlotId, value: Expr) {
        self.push(Inst::Assign { dst, value });
    }

    /// Adds [`Inst::SetValid`].
    pub fn set_valid(&mut self, header: HeaderId) {
        self.push(Inst::SetValid(header));
    }

    /// Adds [`Inst::SetInvalid`].
    pub fn set_invalid(&mut self, header: HeaderId) {
        self.push(Inst::SetInvalid(header));
    }

    /// Adds [`Inst::Extract`].
    pub fn extract(&mut self, header: HeaderId) {
        self.push(Inst::Extract(header));
    }

    /// Adds [`Inst::Emit`].
    pub fn emit(&mut self, header: HeaderId) {
        self.push(Inst::Emit(header));
    }

    /// Closes the current block.
    pub fn terminate(&mut self, term: Terminator) {
        if let Some(block) = self.current.take() {
            let block = &mut self.blocks[block];
            block.line = block.line.or(self.line);
            block.term = Some(term);
        }
    }

    /// Closes the current block with [`Terminator::Goto`].
    pub fn goto(&mut self, to: BlockId) {
        self.terminate(Terminator::Goto(to));
    }

    /// Closes the current block with [`Terminator::Branch`], or with `Goto` when the condition is constant.
    pub fn branch(&mut self, cond: Expr, then: BlockId, els: BlockId) {
        match cond {
            Expr::Bool(true) => self.goto(then),
            Expr::Bool(false) => self.goto(els),
            cond => self.terminate(Terminator::Branch { cond, then, els }),
        }
    }

    /// Closes the current block with [`Terminator::Select`].
    pub fn select(&mut self, keys: Vec<Expr>, cases: Vec<Case>, default: BlockId) {
        self.terminate(Terminator::Select { keys, cases, default });
    }

    /// Closes the current block with [`Terminator::Apply`].
    pub fn apply(
        &mut self,
        table: TableId,
        hit: Option<SlotId>,
        action: Option<SlotId>,
        next: BlockId,
        exit: BlockId,
    ) {
        self.terminate(Terminator::Apply { table, hit, action, next, exit });
    }

    /// Closes the current block with [`Terminator::End`].
    pub fn end(&mut self) {
        self.terminate(Terminator::End);
    }

    /// Closes the current block with [`Terminator::Reject`].
    pub fn reject(&mut self) {
        self.terminate(Terminator::Reject);
    }

    /// Closes the current block with [`Terminator::Exit`].
    pub fn exit(&mut self) {
        self.terminate(Terminator::Exit);
    }

    /// Adds the body to the program, under a name that no other body has, without the blocks that nothing reaches.
    ///
    /// # Errors
    /// [`BuildError::NoTerminator`] when a block that can be reached has none.
    pub fn finish(self, program: &mut ProgramBuilder) -> Result<BodyId, BuildError> {
        let name = program.body_names.take(&self.name);
        let mut body = Body {
            name,
            kind: self.kind,
            blocks: PrimaryMap::with_capacity(self.blocks.len()),
            entry: BlockId::from_u32(0),
        };
        let mut open = Vec::new();
        for (id, block) in self.blocks {
            if block.term.is_none() {
                open.push(id);
            }
            let term = block.term.unwrap_or(Terminator::End);
            body.blocks.push(Block { state: block.state, line: block.line, insts: block.insts, term });
        }
        if !open.is_empty() {
            let reached: foldhash::HashSet<BlockId> = body.postorder().into_iter().collect();
            if let Some(block) = open.into_iter().find(|b| reached.contains(b)) {
                return Err(BuildError::NoTerminator { body: body.name, block });
            }
        }
        passes::remove_unreachable_blocks(&mut body);
        Ok(program.program.bodies.push(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_code_goes() {
        let mut p = ProgramBuilder::new("p", "v1model");
        let x = p.metadata("x", Type::Bits(8));
        let mut b = BodyBuilder::new("c", BodyKind::Control);
        let (dead, live) = (b.create_block(), b.create_block());
        b.goto(live);
        b.assign(x, Expr::bits(8, 1));
        b.goto(dead);
        assert_eq!(b.current(), None);
        b.switch_to(dead);
        b.assign(x, Expr::bits(8, 2));
        b.switch_to(live);
        b.assign(x, Expr::bits(8, 3));
        b.end();
        b.switch_to(live);
        assert_eq!(b.current(), None);
        let id = b.finish(&mut p).unwrap();
        let body = &p.program().bodies[id];
        assert_eq!(body.blocks.len(), 2);
        assert_eq!(body.blocks[body.entry].term, Terminator::Goto(BlockId::from_u32(1)));
        assert_eq!(body.blocks[BlockId::from_u32(1)].insts.len(), 1);
    }

    #[test]
    fn open_blocks_are_found() {
        let mut p = ProgramBuilder::new("p", "v1model");
        let mut b = BodyBuilder::new("c", BodyKind::Control);
        let open = b.create_block();
        b.branch(Expr::Bool(true), open, open);
        let error = b.finish(&mut p).unwrap_err();
        assert_eq!(error, BuildError::NoTerminator { body: "c".into(), block: open });
        assert_eq!(error.to_string(), "block1 of body c has no terminator");
    }

    #[test]
    fn equal_names_are_told_apart() {
        let mut p = ProgramBuilder::new("p", "v1model");
        let names: Vec<String> = (0..2)
            .map(|_| {
                let mut b = BodyBuilder::new("a", BodyKind::Action);
                b.end();
                let id = b.finish(&mut p).unwrap();
                p.program().bodies[id].name.clone()
            })
            .collect();
        assert_eq!(names, ["a", "a$1"]);
    }
}
