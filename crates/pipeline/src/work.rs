//! How much work a packet makes: the steps of blocks, and the bound of bodies.
//!
//! A step is about what a few dozen machine words cost: entering a block is one step, and one more for each
//! [`WORDS_IN_STEP`] words that its code works on. So a loop of wide multiplications is over as soon as a loop of as much
//! narrow work. All weights are known before a packet comes, from types alone: a varbit weighs what it may hold, the
//! payload what the longest frame has. So both engines count alike, and code without loops counts nothing: its bound is
//! checked here, once.

use crate::entity::SecondaryMap;
use crate::limits::{MAX_PAYLOAD, MAX_STEPS};
use crate::*;

/// Words (of 64 bits) that one step works on.
const WORDS_IN_STEP: u64 = 64;
/// What it costs to reach a cell of an array, in words.
const CELL: u64 = 8;
/// What a message or a line of the log costs besides its values, in words.
const MESSAGE: u64 = 64;
/// What a lookup costs besides its keys, in words: by a hash or by prefixes.
const LOOKUP: u64 = 16;
/// The same where entries have priorities.
const LOOKUP_BY_PRIORITY: u64 = 256;

/// The weights of a program's code.
#[derive(Clone, Debug)]
pub struct Work {
    bodies: SecondaryMap<BodyId, BodyWork>,
}

#[derive(Clone, Debug, Default)]
struct BodyWork {
    /// The steps that each block takes.
    steps: SecondaryMap<BlockId, u32>,
    /// The most steps that a run takes, with the actions of tables; none when that is more than [`MAX_STEPS`].
    bound: Option<u32>,
}

impl Work {
    /// Weighs the code of a verified program.
    pub fn of(program: &Program) -> Work {
        let mut bodies: SecondaryMap<BodyId, BodyWork> = SecondaryMap::new();
        let (actions, others): (Vec<_>, Vec<_>) =
            program.bodies.iter().partition(|(_, body)| body.kind == BodyKind::Action);
        // The last body that named each slot.
        let mut named: SecondaryMap<SlotId, Option<BodyId>> =
            SecondaryMap::with_capacity(program.slots.len());
        // An action applies no table.
        for (id, body) in actions.into_iter().chain(others) {
            let mut steps = SecondaryMap::with_capacity(body.blocks.len());
            for (block, code) in &body.blocks {
                let mut words = block_words(program, code);
                if block == body.entry {
                    // Locals are cleared.
                    body.for_each_slot(program, &mut |slot| {
                        if program.slots[slot].home == Home::Local && named[slot].replace(id) != Some(id) {
                            add(&mut words, slot_words(program, slot));
                        }
                    });
                }
                steps[block] =
                    u32::try_from(1 + words / WORDS_IN_STEP).unwrap_or(u32::MAX).min(MAX_STEPS + 1);
            }
            let bound = bound(program, body, &steps, &bodies);
            bodies[id] = BodyWork { steps, bound };
        }
        Work { bodies }
    }

    /// The steps that entering a block takes.
    pub fn steps(&self, body: BodyId, block: BlockId) -> u32 {
        self.bodies[body].steps[block]
    }

    /// The most steps that a run of a body takes, with the actions of the tables that it applies; none when it may take
    /// more than [`MAX_STEPS`], so that its steps are to be counted.
    pub fn bound(&self, body: BodyId) -> Option<u32> {
        self.bodies[body].bound
    }

    /// The most steps that runs of bodies take together, of those whose steps are not counted.
    pub fn uncounted(&self, bodies: &[BodyId]) -> u32 {
        bodies.iter().filter_map(|body| self.bound(*body)).fold(0, u32::saturating_add)
    }

    /// Whether a body may take more than [`MAX_STEPS`], so that its steps are counted as they are taken.
    pub fn counts(&self, body: BodyId) -> bool {
        self.bound(body).is_none()
    }
}

/// The most steps of a run: the heaviest path to an end. None with a loop, or above the limit.
fn bound(
    program: &Program,
    body: &Body,
    steps: &SecondaryMap<BlockId, u32>,
    known: &SecondaryMap<BodyId, BodyWork>,
) -> Option<u32> {
    if body.has_loop() {
        return None;
    }
    let mut most: SecondaryMap<BlockId, u64> = SecondaryMap::with_capacity(body.blocks.len());
    // Without loops the successors of a block come before it.
    for block in body.postorder() {
        let term = &body.blocks[block].term;
        let mut after = 0;
        term.for_each_successor(&mut |next| after = after.max(most[next]));
        let mut own = u64::from(steps[block]);
        if let Terminator::Apply { table, .. } = term {
            let mut action = 0;
            for listed in &program.tables[*table].actions {
                action = action.max(known[program.actions[listed.action].body].bound?);
            }
            own += u64::from(action);
        }
        most[block] = own.saturating_add(after);
    }
    u32::try_from(most[body.entry]).ok().filter(|most| *most <= MAX_STEPS)
}

fn block_words(program: &Program, block: &Block) -> u64 {
    let code = block.insts.iter().map(|inst| inst_words(program, inst));
    code.fold(term_words(program, &block.term), u64::saturating_add)
}

fn inst_words(program: &Program, inst: &Inst) -> u64 {
    let mut words = 1;
    inst.for_each_expr(&mut |expr| add(&mut words, expr_words(program, expr).1));
    let own = match inst {
        Inst::Assign { .. } | Inst::SetInvalid(_) | Inst::Assert { .. } | Inst::Stop { .. } => 0,
        Inst::SetValid(header)
        | Inst::Extract(header)
        | Inst::ExtractVar { header, .. }
        | Inst::Emit(header) => header_words(program, *header),
        Inst::Advance { .. } => 1,
        Inst::Lookahead { dst, .. } => slot_words(program, *dst),
        Inst::Count { .. } | Inst::CountDirect(_) | Inst::Meter { .. } | Inst::MeterDirect { .. } => CELL,
        Inst::AtomicBegin { .. } | Inst::AtomicEnd => CELL,
        Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. } => {
            CELL + words_of(program.registers[*register].width)
        }
        Inst::Hash { data, .. } => data.iter().map(|item| hashed_words(program, item)).sum(),
        Inst::Random { dst, .. } => 4 * slot_words(program, *dst),
        Inst::CallResult { dst, .. } => slot_words(program, *dst),
        // What the plugin does is bounded by its own budget.
        Inst::Digest { .. } | Inst::Call { .. } => MESSAGE,
        Inst::Log { args, .. } => {
            // A number becomes decimal digits, each by a division of all of it.
            let squares = args.iter().map(|arg| words_of(expr_words(program, arg).0).pow(2));
            squares.fold(MESSAGE, u64::saturating_add)
        }
    };
    words.saturating_add(own)
}

fn term_words(program: &Program, term: &Terminator) -> u64 {
    let mut words = 0;
    term.for_each_expr(&mut |expr| add(&mut words, expr_words(program, expr).1));
    match term {
        Terminator::Select { cases, .. } => {
            let matchers = cases.iter().flat_map(|case| &case.matchers);
            matchers.for_each(|matcher| add(&mut words, matcher_words(program, matcher)));
        }
        Terminator::Apply { table, .. } => {
            let table = &program.tables[*table];
            table.exprs().for_each(|expr| add(&mut words, expr_words(program, expr).1));
            let by_priority =
                table.keys.iter().any(|key| !matches!(key.kind, MatchKind::Exact | MatchKind::Lpm));
            add(&mut words, if by_priority { LOOKUP_BY_PRIORITY } else { LOOKUP });
        }
        Terminator::Goto(_)
        | Terminator::Branch { .. }
        | Terminator::End
        | Terminator::Reject
        | Terminator::Exit => {}
    }
    words
}

fn matcher_words(program: &Program, matcher: &Matcher) -> u64 {
    match matcher {
        Matcher::Any => 0,
        Matcher::Value(value) => words_of(value.width()),
        Matcher::Mask(value, _) | Matcher::Range(value, _) | Matcher::RangeSigned(value, _) => {
            2 * words_of(value.width())
        }
        Matcher::ValueSet(set) => {
            let set = &program.value_sets[*set];
            let member: u64 = set.fields.iter().map(|(_, width, _)| 2 * words_of(*width)).sum();
            set.size.saturating_mul(member)
        }
    }
}

/// What is hashed is seen byte by byte.
fn hashed_words(program: &Program, item: &DataItem) -> u64 {
    const PER_WORD: u64 = 4;
    PER_WORD
        * match item {
            DataItem::Value(expr) => words_of(expr_words(program, expr).0),
            DataItem::Header(header) => header_words(program, *header),
            DataItem::Payload => (MAX_PAYLOAD / 8) as u64,
        }
}

fn header_words(program: &Program, header: HeaderId) -> u64 {
    let header = &program.headers[header];
    header.fields.iter().map(|field| slot_words(program, *field)).sum()
}

fn slot_words(program: &Program, slot: SlotId) -> u64 {
    words_of(program.slots.get(slot).map_or(1, |slot| type_width(slot.ty)))
}

fn type_width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) => width,
        // No frame fills a longer one.
        Type::Varbit(width) => width.min(8 * MAX_PAYLOAD as u32),
    }
}

fn words_of(width: u32) -> u64 {
    u64::from(width.div_ceil(64).max(1))
}

fn add(words: &mut u64, more: u64) {
    *words = words.saturating_add(more);
}

/// The width of an expression, and the words that its evaluation works on: for each node those of its result, for a
/// product or quotient each word of one operand with each of the other.
fn expr_words(program: &Program, expr: &Expr) -> (u32, u64) {
    let of = |expr: &Expr| expr_words(program, expr);
    let (width, own, operands) = match expr {
        Expr::Const(bits) => (bits.width(), words_of(bits.width()), 0),
        Expr::Bool(_) | Expr::IsValid(_) => (1, 1, 0),
        Expr::PacketLength | Expr::Cursor => (32, 1, 0),
        Expr::Read(slot) => {
            let width = program.slots.get(*slot).map_or(1, |slot| type_width(slot.ty));
            (width, words_of(width), 0)
        }
        Expr::Unary(_, operand) => {
            let (width, words) = of(operand);
            (width, words_of(width), words)
        }
        Expr::Binary(op, left, right) => {
            let ((left, words), (right, more)) = (of(left), of(right));
            let own = match op {
                BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => words_of(left) * words_of(right),
                _ => words_of(left.max(right)),
            };
            let gives_truth = matches!(
                op,
                BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::LtSigned
                    | BinaryOp::LeSigned
                    | BinaryOp::BoolAnd
                    | BinaryOp::BoolOr
            );
            (if gives_truth { 1 } else { left }, own, words.saturating_add(more))
        }
        Expr::Mux(cond, then, els) => {
            let ((_, words), (width, then), (_, els)) = (of(cond), of(then), of(els));
            (width, words_of(width), words.saturating_add(then).saturating_add(els))
        }
        Expr::Slice(operand, high, low) => {
            let width = high.saturating_sub(*low).saturating_add(1);
            (width, words_of(width), of(operand).1)
        }
        Expr::Concat(high, low) => {
            let ((high, words), (low, more)) = (of(high), of(low));
            let width = high.saturating_add(low);
            (width, words_of(width), words.saturating_add(more))
        }
        Expr::ZeroExtend(operand, width) | Expr::SignExtend(operand, width) => {
            (*width, words_of(*width), of(operand).1)
        }
        Expr::BoolToBits(operand) => (1, 1, of(operand).1),
    };
    (width, own.saturating_add(operands))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program of a control with these metadata, tables and blocks.
    fn program(metadata: &str, blocks: &str) -> Program {
        let program = text::parse(&format!(
            "program t architecture test errors (NoError)
             ingress (ingress) egress ()
             intrinsic egress_spec = port
             metadata port: bit<32> metadata go: bit<1> {metadata}
             body control ingress {{ {blocks} }}"
        ));
        program.unwrap_or_else(|error| panic!("{error}"))
    }

    fn steps(metadata: &str, blocks: &str) -> (u32, Option<u32>) {
        let program = program(metadata, blocks);
        let work = Work::of(&program);
        let body = program.ingress[0];
        (work.steps(body, program.bodies[body].entry), work.bound(body))
    }

    #[test]
    fn wide_work_takes_more_steps() {
        // A narrow block is one step. An assignment of n words: 1 for itself, n to read each operand, n for the sum.
        assert_eq!(steps("metadata a: bit<8>", "block0: a = add(a, a) end"), (1, Some(1)));
        let wide = "metadata a: bit<65536>";
        assert_eq!(steps(wide, "block0: a = add(a, a) end"), (1 + 3073 / 64, Some(49)));
        // 1024 words by 1024 words.
        let product = 1 + (1 + 2 * 1024 + 1024 * 1024) / 64;
        assert_eq!(steps(wide, "block0: a = mul(a, a) end"), (product, Some(product)));
        // Four of them are more than any body may take.
        let four = "a = mul(a, a) a = mul(a, a) a = mul(a, a) a = mul(a, a)";
        assert_eq!(steps(wide, &format!("block0: {four} end")), (MAX_STEPS + 1, None));
    }

    #[test]
    fn locals_weigh_where_they_start() {
        let program = text::parse(
            "program t architecture test errors (NoError) ingress (ingress) egress ()
             local l: bit<65536>
             body control ingress { block0: l = 65536w1 goto block1 block1: end }",
        );
        let program = program.unwrap_or_else(|error| panic!("{error}"));
        let work = Work::of(&program);
        // 1024 words are cleared, and written from a constant of as many.
        assert_eq!(work.bound(program.ingress[0]), Some(1 + (1024 + 1025) / 64 + 1));
    }

    #[test]
    fn the_bound_is_the_heaviest_path_and_a_loop_has_none() {
        let metadata = "metadata a: bit<8> metadata b: bit<4096>";
        let paths = "block0: branch eq(go, 1w1), block1, block2
                     block1: b = add(b, b) goto block3
                     block2: a = add(a, a) goto block3
                     block3: end";
        // 64 words: 193 of them in the branch with the wide sum.
        assert_eq!(steps(metadata, paths), (1, Some(1 + 4 + 1)));
        assert_eq!(steps(metadata, "block0: branch eq(go, 1w1), block0, block1 block1: end"), (1, None));
    }
}
