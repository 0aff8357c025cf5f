//! The verifier: what makes a program well formed.
//!
//! A program that passes keeps every promise that the documentation of its data types makes: all indices are in range,
//! all operands have the types their operation asks for, all widths and sizes are within [`crate::limits`]. Consumers
//! take verified programs and need not check again. The verifier itself takes any program and never panics.
//!
//! The rules stand with what they check: `storage` (slots, headers, stacks, field lists, intrinsics), `expr` (types),
//! `body` (instructions, terminators, who may use a local slot), `objects` (actions, tables, stateful objects).

mod body;
mod expr;
mod objects;
mod storage;

use crate::*;
use foldhash::{HashSet, HashSetExt};
use std::fmt;

/// One rule broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierError {
    /// Where: `body ingress, block3, instruction 2`, `table ingress.acl`, `slot hdr.ipv4.ttl`, `program`.
    pub location: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

impl std::error::Error for VerifierError {}

/// The most errors that [`verify()`] returns.
pub const MAX_ERRORS: usize = 100;

/// Checks every rule.
///
/// # Errors
/// The rules broken, in the order of storage, bodies, objects; the first [`MAX_ERRORS`] of them.
pub fn verify(program: &Program) -> Result<(), Vec<VerifierError>> {
    let mut verifier = Verifier { program, errors: Vec::new() };
    verifier.program_wide();
    verifier.storage();
    if verifier.program.bodies.len() <= limits::MAX_BLOCKS {
        verifier.bodies();
    }
    verifier.objects();
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

struct Verifier<'a> {
    program: &'a Program,
    errors: Vec<VerifierError>,
}

/// Where in the program a rule is checked.
#[derive(Clone, Copy)]
enum Location<'a> {
    Program,
    /// A named thing of that kind.
    Object(&'a str, &'a str),
    Body(&'a Body),
    Inst(&'a Body, BlockId, usize),
    Terminator(&'a Body, BlockId),
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Program => write!(f, "program"),
            Location::Object(kind, name) => write!(f, "{kind} {name}"),
            Location::Body(body) => write!(f, "body {}", body.name),
            Location::Inst(body, block, index) => {
                write!(f, "body {}, {block}, instruction {index}", body.name)
            }
            Location::Terminator(body, block) => write!(f, "body {}, {block}, terminator", body.name),
        }
    }
}

/// How types read in messages and in the text form.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => write!(f, "bool"),
            Type::Bits(width) => write!(f, "bit<{width}>"),
            Type::Varbit(width) => write!(f, "varbit<{width}>"),
        }
    }
}

impl<'a> Verifier<'a> {
    fn report(&mut self, location: Location<'_>, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(VerifierError { location: location.to_string(), message: message.into() });
        }
    }

    fn require(&mut self, holds: bool, location: Location<'_>, message: impl FnOnce() -> String) {
        if !holds {
            self.report(location, message());
        }
    }

    /// The slot, or a report that there is none.
    fn slot(&mut self, location: Location<'_>, slot: SlotId) -> Option<&'a Slot> {
        let found = self.program.slots.get(slot);
        self.require(found.is_some(), location, || format!("{slot} does not exist"));
        found
    }

    fn header(&mut self, location: Location<'_>, header: HeaderId) -> Option<&'a Header> {
        let found = self.program.headers.get(header);
        self.require(found.is_some(), location, || format!("{header} does not exist"));
        found
    }

    /// A slot that is written: it exists and has that type.
    fn slot_of_type(&mut self, location: Location<'_>, slot: SlotId, ty: Type) {
        if let Some(found) = self.slot(location, slot) {
            self.require(found.ty == ty, location, || format!("{} is {}, not {ty}", found.name, found.ty));
        }
    }

    /// A slot that is written and holds a number of any width.
    fn bits_slot(&mut self, location: Location<'_>, slot: SlotId) -> Option<u32> {
        let found = self.slot(location, slot)?;
        let width = found.ty.bits();
        self.require(width.is_some(), location, || format!("{} is {}, not a number", found.name, found.ty));
        width
    }

    fn unique_names<'n>(&mut self, kind: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = HashSet::new();
        for name in names {
            self.require(!name.is_empty(), Location::Program, || format!("a {kind} has no name"));
            self.require(seen.insert(name), Location::Program, || format!("two {kind}s are called {name}"));
        }
    }

    fn width(&mut self, location: Location<'_>, width: u32) {
        self.require((1..=limits::MAX_WIDTH).contains(&width), location, || {
            format!("a width of {width} bits is not within 1 to {}", limits::MAX_WIDTH)
        });
    }

    fn ty(&mut self, location: Location<'_>, ty: Type) {
        match ty {
            Type::Bool => {}
            Type::Bits(width) => self.width(location, width),
            Type::Varbit(width) => self.require((1..=limits::MAX_VARBIT).contains(&width), location, || {
                format!("a varbit of {width} bits is not within 1 to {}", limits::MAX_VARBIT)
            }),
        }
    }

    fn at_most(&mut self, location: Location<'_>, what: &str, number: u64, limit: u64) {
        self.require(number <= limit, location, || format!("{number} {what} are more than {limit}"));
    }

    fn program_wide(&mut self) {
        let p = self.program;
        let no_error = p.errors.first().is_some_and(|e| e == "NoError");
        self.require(no_error, Location::Program, || "error 0 is not NoError".into());
        self.unique_names("error", p.errors.iter().map(String::as_str));
        self.at_most(Location::Program, "errors", p.errors.len() as u64, 1 << 16);
        for (list, bodies) in [("ingress", &p.ingress), ("egress", &p.egress)] {
            for id in bodies {
                match p.bodies.get(*id) {
                    None => self.report(Location::Program, format!("{id} in {list} does not exist")),
                    Some(body) => self.require(body.kind != BodyKind::Action, Location::Program, || {
                        format!("{} in {list} is the body of an action", body.name)
                    }),
                }
            }
        }
        self.at_most(
            Location::Program,
            "drop sites",
            p.drop_sites.len() as u64,
            limits::MAX_DROP_SITES as u64,
        );
        self.at_most(Location::Program, "chains", p.chains.len() as u64, limits::MAX_CHAINS as u64);
        for ChainText { text, .. } in &p.chains {
            self.require(!text.is_empty(), Location::Program, || "a chain has no text".into());
            let bytes = text.len() as u64;
            self.at_most(Location::Program, "bytes of a chain", bytes, limits::MAX_CHAIN_TEXT as u64);
        }
        let lines = p.source_lines.len() as u64;
        self.at_most(Location::Program, "source lines", lines, limits::MAX_SOURCE_LINES as u64);
        self.parser_errors();
    }

    /// The errors that parsers can fail with, and the slot where the error goes.
    fn parser_errors(&mut self) {
        let p = self.program;
        let mut needed: Vec<(&Body, &str)> = Vec::new();
        for body in p.bodies.values().filter(|b| b.kind == BodyKind::Parser && b.blocks.is_valid(b.entry)) {
            if body.has_loop() {
                needed.push((body, "ParserTimeout"));
            }
            for inst in body.blocks.values().flat_map(|b| &b.insts) {
                let errors: &[&str] = match inst {
                    Inst::Extract(_) | Inst::Lookahead { .. } => &["PacketTooShort"],
                    Inst::ExtractVar { .. } => &["PacketTooShort", "HeaderTooShort", "ParserInvalidArgument"],
                    Inst::Advance { .. } => &["PacketTooShort", "ParserInvalidArgument"],
                    _ => &[],
                };
                needed.extend(errors.iter().map(|e| (body, *e)));
            }
            let rejects = body.blocks.values().any(|b| b.term == Terminator::Reject);
            if rejects || needed.last().is_some_and(|(b, _)| std::ptr::eq(*b, body)) {
                self.require(p.intrinsics.parser_error.is_some(), Location::Body(body), || {
                    "the parser can fail, and no slot has the role parser_error".into()
                });
            }
        }
        let mut missing = HashSet::new();
        for (body, error) in needed {
            if p.error_code(error).is_none() && missing.insert(error) {
                self.report(
                    Location::Body(body),
                    format!("the parser can fail with {error}, which the program does not have"),
                );
            }
        }
    }
}

impl Program {
    /// The code of the error with that name.
    pub fn error_code(&self, name: &str) -> Option<u32> {
        self.errors.iter().position(|e| e == name).map(|code| code as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::PrimaryMap;

    /// Names that do not exist cannot be written in the text form, so they are tested here; all other rules have
    /// their file in `filetests/verifier`.
    #[test]
    fn names_that_do_not_exist() {
        let mut p = Program { errors: vec!["NoError".into(), "PacketTooShort".into()], ..Program::default() };
        let (slot, header, far) = (SlotId::from_u32(9), HeaderId::from_u32(8), u32::MAX - 1);
        p.intrinsics.drop = Some(SlotId::from_u32(far));
        p.ingress.push(BodyId::from_u32(far));
        p.reset_at_egress.push(SlotId::from_u32(far));
        p.field_lists.push(FieldList { id: 1, slots: vec![SlotId::from_u32(far)] });
        p.stacks.push(Stack { name: "s".into(), elements: vec![header], next: slot });
        p.headers.push(Header { name: "h".into(), type_name: "t".into(), fields: vec![slot], fixed_bits: 8 });
        let home = Home::Header { header: HeaderId::from_u32(far), offset: 0 };
        p.slots.push(Slot { name: "x".into(), ty: Type::Bool, home });
        let index = || Expr::Read(SlotId::from_u32(far));
        let (meter, far_table) = (MeterId::from_u32(far), TableId::from_u32(far));
        let insts = vec![
            Inst::Assign { dst: slot, value: index() },
            Inst::SetValid(HeaderId::from_u32(far)),
            Inst::Count { counter: CounterId::from_u32(far), index: index() },
            Inst::CountDirect(far_table),
            Inst::Meter { meter, index: index(), color: Some(index()), length: None, dst: slot },
            Inst::MeterDirect { table: far_table, color: None, length: Some(index()), dst: slot },
            Inst::RegisterRead { dst: slot, register: RegisterId::from_u32(far), index: index() },
            Inst::RegisterWrite { register: RegisterId::from_u32(far), index: index(), value: index() },
            Inst::Hash {
                dst: slot,
                algorithm: HashAlgorithm::Crc16,
                own: None,
                data: vec![DataItem::Header(header)],
            },
            Inst::Digest { digest: DigestId::from_u32(far), values: vec![] },
        ];
        let far_block = BlockId::from_u32(far);
        let mut blocks = PrimaryMap::new();
        blocks.push(Block { state: None, line: None, insts, term: Terminator::Goto(far_block) });
        blocks.push(Block {
            state: None,
            line: None,
            insts: Vec::new(),
            term: Terminator::Apply {
                table: far_table,
                hit: Some(slot),
                action: Some(slot),
                next: far_block,
                exit: far_block,
            },
        });
        let set = Matcher::ValueSet(ValueSetId::from_u32(far));
        let case = Case { matchers: vec![set], target: far_block };
        let keys = vec![Expr::bits(8, 1)];
        blocks.push(Block {
            state: None,
            line: None,
            insts: Vec::new(),
            term: Terminator::Select { keys, cases: vec![case], default: BlockId::from_u32(0) },
        });
        p.bodies.push(Body {
            name: "b".into(),
            kind: BodyKind::Control,
            blocks,
            entry: BlockId::from_u32(0),
        });
        p.actions.push(Action { name: "a".into(), params: vec![slot], body: BodyId::from_u32(far) });
        let errors = verify(&p).unwrap_err();
        let all: Vec<String> = errors.iter().map(VerifierError::to_string).collect();
        for wanted in [
            "program: body4294967294 in ingress does not exist",
            "slot x: header4294967294 does not exist",
            "header h: slot9 does not exist",
            "stack s: slot9 does not exist",
            "stack s: header8 does not exist",
            "intrinsic drop: slot4294967294 does not exist",
            "program: slot4294967294 does not exist",
            "field list 1: slot4294967294 does not exist",
            "body b, block0, instruction 0: slot9 does not exist",
            "body b, block0, instruction 1: header4294967294 does not exist",
            "body b, block0, instruction 2: counter4294967294 does not exist",
            "body b, block0, instruction 2: slot4294967294 does not exist",
            "body b, block0, instruction 3: table4294967294 does not exist",
            "body b, block0, instruction 4: meter4294967294 does not exist",
            "body b, block0, instruction 5: table4294967294 does not exist",
            "body b, block0, instruction 6: register4294967294 does not exist",
            "body b, block0, instruction 7: register4294967294 does not exist",
            "body b, block0, instruction 8: header8 does not exist",
            "body b, block0, instruction 9: digest4294967294 does not exist",
            "body b, block0, terminator: block4294967294 does not exist",
            "body b, block1, terminator: table4294967294 does not exist",
            "body b, block2, terminator: value_set4294967294 does not exist",
            "action a: its body4294967294 does not exist",
            "action a: slot9 does not exist",
        ] {
            assert!(all.iter().any(|e| e == wanted), "no {wanted:?} among {all:#?}");
        }
        // What does not exist prints all the same.
        assert!(p.to_string().contains("set_valid header4294967294?"));
    }

    #[test]
    fn errors_are_bounded() {
        let mut p = Program::default();
        for _ in 0..1000 {
            p.slots.push(Slot { name: String::new(), ty: Type::Bits(0), home: Home::Local });
        }
        assert_eq!(verify(&p).unwrap_err().len(), MAX_ERRORS);
    }
}
