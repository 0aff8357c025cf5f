//! Building a program: storage and names with [`ProgramBuilder`], code with [`BodyBuilder`].
//!
//! Nothing here checks types; that is the verifier's work on the finished [`Program`].
//!
//! ```
//! use millrace_pipeline::{BodyBuilder, BodyKind, Expr, ProgramBuilder, Type};
//!
//! let mut program = ProgramBuilder::new("example", "v1model");
//! let ttl = program.metadata("ttl", Type::Bits(8));
//! let mut body = BodyBuilder::new("ingress", BodyKind::Control);
//! let (more, done) = (body.create_block(), body.create_block());
//! body.branch(Expr::read(ttl).eq(Expr::bits(8, 0)), done, more);
//! body.switch_to(more);
//! body.assign(ttl, Expr::read(ttl).sub(Expr::bits(8, 1)));
//! body.goto(done);
//! body.switch_to(done);
//! body.end();
//! let body = body.finish(&mut program).unwrap();
//! program.program_mut().ingress.push(body);
//! assert_eq!(program.finish().bodies.len(), 1);
//! ```

mod body;

pub use body::{BodyBuilder, BuildError};

use crate::*;
use foldhash::HashMap;

/// The error that every program has: there is none.
const NO_ERROR: &str = "NoError";

/// A program under construction: the program itself, and the names that are taken.
#[derive(Clone, Debug, Default)]
pub struct ProgramBuilder {
    program: Program,
    slot_names: Names,
    header_names: Names,
    body_names: Names,
    object_names: Names,
    /// The codes of errors that were asked for.
    errors: HashMap<String, u32>,
}

impl ProgramBuilder {
    /// A program with nothing but the error `NoError`.
    pub fn new(name: impl Into<String>, architecture: impl Into<String>) -> ProgramBuilder {
        let mut builder = ProgramBuilder::default();
        builder.program.name = name.into();
        builder.program.architecture = architecture.into();
        builder.program.errors.push(NO_ERROR.into());
        builder
    }

    /// The program as far as it is built.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program as far as it is built, for what has no method here. Names that are added this way are not known
    /// as taken.
    pub fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// The program.
    pub fn finish(self) -> Program {
        self.program
    }

    /// The code of an error; a new one when no error has that name.
    pub fn error(&mut self, name: &str) -> u32 {
        if let Some(code) = self.errors.get(name) {
            return *code;
        }
        let code = if name == NO_ERROR {
            0
        } else {
            self.program.errors.push(name.into());
            self.program.errors.len() as u32 - 1
        };
        self.errors.insert(name.into(), code);
        code
    }

    /// A new slot of metadata. As for all names here: when the name is taken, a number is added to it.
    pub fn metadata(&mut self, name: &str, ty: Type) -> SlotId {
        self.slot(name, ty, Home::Metadata)
    }

    /// A new slot that one body uses.
    pub fn local(&mut self, name: &str, ty: Type) -> SlotId {
        self.slot(name, ty, Home::Local)
    }

    /// The slot of a role; a new one, called `switch.` and the name of the role, when it has none.
    pub fn intrinsic(&mut self, role: Intrinsic) -> SlotId {
        if let Some(slot) = self.program.intrinsics.get(role) {
            return slot;
        }
        let slot = self.metadata(&format!("switch.{}", role.name()), role.ty());
        self.program.intrinsics.set(role, Some(slot));
        slot
    }

    /// A new header with fields of these names and types, which get slots called `NAME.FIELD`.
    pub fn header(&mut self, name: &str, type_name: &str, fields: &[(&str, Type)]) -> HeaderId {
        let name = self.header_names.take(name);
        let header = self.program.headers.next_key();
        let mut offset = 0;
        let mut slots = Vec::with_capacity(fields.len());
        for (field, ty) in fields {
            slots.push(self.slot(&format!("{name}.{field}"), *ty, Home::Header { header, offset }));
            offset = match ty {
                Type::Bool => offset + 1,
                Type::Bits(width) => u32::saturating_add(offset, *width),
                Type::Varbit(_) => offset,
            };
        }
        self.program.headers.push(Header {
            name,
            type_name: type_name.into(),
            fields: slots,
            fixed_bits: offset,
        })
    }

    /// A new stack of these headers, with a slot `NAME.nextIndex` of metadata.
    pub fn stack(&mut self, name: &str, elements: Vec<HeaderId>) -> StackId {
        let next = self.metadata(&format!("{name}.nextIndex"), Type::Bits(32));
        self.program.stacks.push(Stack { name: name.into(), elements, next })
    }

    /// A new action. Actions may share a name.
    pub fn action(&mut self, name: &str, params: Vec<SlotId>, body: BodyId) -> ActionId {
        self.program.actions.push(Action { name: name.into(), params, body })
    }

    /// A name for an object of the control plane (table, counter, meter, register, profile, ...) that no other has.
    pub fn object_name(&mut self, name: &str) -> String {
        self.object_names.take(name)
    }

    fn slot(&mut self, name: &str, ty: Type, home: Home) -> SlotId {
        let name = self.slot_names.take(name);
        self.program.slots.push(Slot { name, ty, home })
    }
}

/// The names that are taken, and how often each was asked for.
#[derive(Clone, Debug, Default)]
struct Names {
    taken: HashMap<String, u32>,
}

impl Names {
    fn take(&mut self, name: &str) -> String {
        let Some(count) = self.taken.get(name).copied() else {
            self.taken.insert(name.into(), 0);
            return name.into();
        };
        let mut number = count + 1;
        let mut unique = format!("{name}${number}");
        while self.taken.contains_key(&unique) {
            number += 1;
            unique = format!("{name}${number}");
        }
        self.taken.insert(name.into(), number);
        self.taken.insert(unique.clone(), 0);
        unique
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_unique() {
        let mut b = ProgramBuilder::new("p", "v1model");
        let slots: Vec<SlotId> = ["x", "x$1", "x", "x"].into_iter().map(|n| b.local(n, Type::Bool)).collect();
        let names: Vec<&str> = slots.iter().map(|s| b.program().slots[*s].name.as_str()).collect();
        assert_eq!(names, ["x", "x$1", "x$2", "x$3"]);
        assert_eq!(b.object_name("t"), "t");
        assert_eq!(b.object_name("t"), "t$1");
    }

    #[test]
    fn headers_have_offsets() {
        let mut b = ProgramBuilder::new("p", "v1model");
        let h = b.header(
            "hdr.x",
            "x_t",
            &[("a", Type::Bits(12)), ("b", Type::Bool), ("v", Type::Varbit(320)), ("c", Type::Bits(3))],
        );
        let p = b.program();
        let homes: Vec<Home> = p.headers[h].fields.iter().map(|f| p.slots[*f].home).collect();
        let at = |offset| Home::Header { header: h, offset };
        assert_eq!(homes, [at(0), at(12), at(13), at(13)]);
        assert_eq!(p.headers[h].fixed_bits, 16);
        assert_eq!(p.slots[p.headers[h].fields[3]].name, "hdr.x.c");
    }

    #[test]
    fn errors_and_roles_are_found_again() {
        let mut b = ProgramBuilder::new("p", "v1model");
        assert_eq!((b.error("NoError"), b.error("NoMatch"), b.error("NoMatch")), (0, 1, 1));
        let drop = b.intrinsic(Intrinsic::Drop);
        assert_eq!(b.intrinsic(Intrinsic::Drop), drop);
        assert_eq!(b.program().slots[drop].ty, Type::Bool);
    }
}
