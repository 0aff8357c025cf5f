//! From a tree to a program.

use super::program::{Field, Instruction, MAX_INSTRUCTIONS, MEMORY, Operator, Program, Targets, Test, Width};
use super::tree::{Node, Number};

/// Where a test leads to: a label, which becomes the number of an instruction that comes later.
#[derive(Clone, Copy)]
struct Exits {
    yes: usize,
    no: usize,
}

struct Code {
    instructions: Vec<Instruction>,
    /// The labels in the places of numbers of instructions, until those are known.
    labels: Vec<u16>,
    /// What each test leads to.
    exits: Vec<(usize, Exits)>,
}

/// The program of an expression.
pub(super) fn program(tree: &Node) -> Result<Program, String> {
    let mut code = Code { instructions: Vec::new(), labels: vec![0; 2], exits: Vec::new() };
    let exits = Exits { yes: 0, no: 1 };
    code.node(tree, exits)?;
    code.place(exits.yes);
    code.add(Instruction::End(true))?;
    code.place(exits.no);
    code.add(Instruction::End(false))?;
    let Code { mut instructions, labels, exits } = code;
    for (at, Exits { yes, no }) in exits {
        let targets = Targets { yes: labels[yes], no: labels[no] };
        match &mut instructions[at] {
            Instruction::IfField { to, .. }
            | Instruction::IfLength { to, .. }
            | Instruction::If { to, .. } => {
                *to = targets;
            }
            _ => {}
        }
    }
    Program::new(instructions).map_err(str::to_owned)
}

impl Code {
    fn add(&mut self, instruction: Instruction) -> Result<(), String> {
        if self.instructions.len() == MAX_INSTRUCTIONS {
            return Err(format!("the expression takes more than {MAX_INSTRUCTIONS} instructions"));
        }
        self.instructions.push(instruction);
        Ok(())
    }

    fn label(&mut self) -> usize {
        self.labels.push(0);
        self.labels.len() - 1
    }

    /// The label is the next instruction.
    fn place(&mut self, label: usize) {
        // At most `MAX_INSTRUCTIONS`.
        self.labels[label] = self.instructions.len() as u16;
    }

    fn test(&mut self, instruction: Instruction, exits: Exits) -> Result<(), String> {
        self.exits.push((self.instructions.len(), exits));
        self.add(instruction)
    }

    /// Tests a node. Both exits are placed after all that this adds.
    fn node(&mut self, node: &Node, exits: Exits) -> Result<(), String> {
        let to = Targets::default();
        match node {
            Node::Always(holds) => {
                let (test, value) = (Test::AtLeast, 0);
                let exits = if *holds { exits } else { Exits { yes: exits.no, no: exits.no } };
                self.test(Instruction::IfLength { test, value, to }, exits)
            }
            Node::Field(field, test, value) => {
                self.test(Instruction::IfField { field: *field, test: *test, value: *value, to }, exits)
            }
            Node::Length(test, value) => {
                self.test(Instruction::IfLength { test: *test, value: *value, to }, exits)
            }
            Node::Relation(left, test, right) => {
                self.pair(left, right, 0)?;
                self.test(Instruction::If { test: *test, to }, exits)
            }
            Node::All(nodes) | Node::Any(nodes) => {
                let is_all = matches!(node, Node::All(_));
                let last = nodes.len().saturating_sub(1);
                for (at, inner) in nodes.iter().enumerate() {
                    if at == last {
                        return self.node(inner, exits);
                    }
                    let next = self.label();
                    let exits =
                        if is_all { Exits { yes: next, ..exits } } else { Exits { no: next, ..exits } };
                    self.node(inner, exits)?;
                    self.place(next);
                }
                Ok(())
            }
            Node::Not(inner) => self.node(inner, Exits { yes: exits.no, no: exits.yes }),
        }
    }

    /// The first number in `a`, the second in `x`. Memory below `used` stays.
    fn pair(&mut self, left: &Number, right: &Number, used: usize) -> Result<(), String> {
        if used == MEMORY {
            return Err(format!("the expression keeps more than {MEMORY} numbers"));
        }
        let place = used as u8;
        self.number(left, used)?;
        self.add(Instruction::Keep(place))?;
        self.number(right, used + 1)?;
        self.add(Instruction::ToX)?;
        self.add(Instruction::Fetch(place))
    }

    /// A number in `a`.
    fn number(&mut self, number: &Number, used: usize) -> Result<(), String> {
        match number {
            Number::Given(number) => self.add(Instruction::Number(*number)),
            Number::Length => self.add(Instruction::Length),
            Number::Field(field) => self.add(Instruction::Load(*field)),
            Number::At { index, base, header, width } => {
                self.number(index, used)?;
                if let Some(header) = header {
                    self.add(Instruction::AddHeaderLength(*header))?;
                }
                self.add(Instruction::ToX)?;
                self.add(Instruction::LoadAtX { at: *base, width: *width })
            }
            Number::Both(left, operator, right) => {
                self.pair(left, right, used)?;
                self.add(Instruction::Combine(*operator))
            }
        }
    }
}

/// A comparison of two numbers as the quickest test.
pub(super) fn relation(left: Number, test: Test, right: Number) -> Node {
    match (left, right) {
        (Number::Field(field), Number::Given(value)) => Node::Field(field, test, value),
        (Number::Length, Number::Given(value)) => Node::Length(test, value),
        (Number::Given(left), Number::Given(right)) => Node::Always(test.holds(left, right)),
        (left, right) => Node::Relation(left, test, right),
    }
}

/// A number of the frame at an index.
pub(super) fn at(index: Number, base: u32, header: Option<u16>, width: Width) -> Number {
    match index {
        Number::Given(index) if index.checked_add(base).is_some() => {
            Number::Field(Field { at: base + index, header, width, mask: !0 })
        }
        index => Number::At { index: Box::new(index), base, header, width },
    }
}

/// The negative of a number.
pub(super) fn negative(number: Number) -> Number {
    Number::Given(0).combined(Operator::Subtract, number)
}
