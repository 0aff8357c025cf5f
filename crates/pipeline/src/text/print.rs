//! Printing: the program as a whole and its storage.

use super::names::{quoted, written};
use crate::*;
use foldhash::{HashMap, HashMapExt};
use std::fmt::Write;

/// The text form of a program. Of one that is not well formed, what does not exist reads `slot17?`.
pub fn print(program: &Program) -> String {
    let mut times: HashMap<&str, usize> = HashMap::new();
    program.actions.values().for_each(|action| *times.entry(&action.name).or_default() += 1);
    let mut printer = Printer { program, out: String::new(), times };
    printer.heading();
    printer.storage();
    printer.objects();
    for body in program.bodies.values() {
        printer.body(body);
    }
    printer.out
}

pub(super) struct Printer<'a> {
    pub(super) program: &'a Program,
    pub(super) out: String,
    /// How many actions have each name.
    pub(super) times: HashMap<&'a str, usize>,
}

/// Adds formatted text. Writing to a string cannot fail.
macro_rules! put {
    ($printer:expr, $($arg:tt)*) => {{ let _ = write!($printer.out, $($arg)*); }};
}
pub(super) use put;

impl Printer<'_> {
    pub(super) fn slot(&self, id: SlotId) -> String {
        self.program.slots.get(id).map_or_else(|| format!("{id}?"), |s| written(&s.name))
    }

    pub(super) fn header(&self, id: HeaderId) -> String {
        self.program.headers.get(id).map_or_else(|| format!("{id}?"), |h| written(&h.name))
    }

    pub(super) fn slots(&self, ids: &[SlotId]) -> String {
        ids.iter().map(|id| self.slot(*id)).collect::<Vec<_>>().join(", ")
    }

    fn body_name(&self, id: BodyId) -> String {
        self.program.bodies.get(id).map_or_else(|| format!("{id}?"), |b| written(&b.name))
    }

    fn heading(&mut self) {
        let p = self.program;
        put!(self, "program {}\n", written(&p.name));
        put!(self, "architecture {}\n", written(&p.architecture));
        let errors: Vec<String> = p.errors.iter().map(|e| written(e)).collect();
        put!(self, "errors ({})\n", errors.join(", "));
        if p.on_reject != OnReject::default() {
            put!(self, "on_reject {}\n", p.on_reject.name());
        }
        if p.deparse_at_ingress {
            put!(self, "deparse_at_ingress\n");
        }
        for (word, bodies) in [("ingress", &p.ingress), ("egress", &p.egress)] {
            if !bodies.is_empty() {
                let names: Vec<String> = bodies.iter().map(|b| self.body_name(*b)).collect();
                put!(self, "{word} ({})\n", names.join(", "));
            }
        }
        if !p.reset_at_egress.is_empty() {
            let slots = self.slots(&p.reset_at_egress);
            put!(self, "reset_at_egress ({slots})\n");
        }
        for list in &p.field_lists {
            let slots = self.slots(&list.slots);
            put!(self, "field_list {} ({slots})\n", list.id);
        }
        for chain in &p.chains {
            put!(self, "{} {}\n", chain.direction(), quoted(&chain.text));
        }
        for DropSite { file, line, block, request, called_at, tables } in &p.drop_sites {
            let tables: Vec<String> = tables.iter().map(|table| quoted(table)).collect();
            let (file, block, request) = (quoted(file), quoted(block), quoted(request));
            put!(self, "drop_site {file} {line} {block} {request} {called_at} ({})\n", tables.join(", "));
        }
        for SourceLine { kind, name, file, line } in &p.source_lines {
            put!(self, "source \"{}\" {} {} {line}\n", kind.name(), quoted(name), quoted(file));
        }
        for role in Intrinsic::ALL {
            if let Some(slot) = p.intrinsics.get(*role) {
                let slot = self.slot(slot);
                put!(self, "intrinsic {} = {slot}\n", role.name());
            }
        }
    }

    /// Slots and headers, so that their order in the text is the order of their numbers. A header whose fields stand
    /// together is printed with them; of any other the fields are printed as slots and the header by itself.
    fn storage(&mut self) {
        let p = self.program;
        if !p.slots.is_empty() || !p.headers.is_empty() {
            self.out.push('\n');
        }
        let mut together = Vec::new();
        let mut free = 0;
        for (id, header) in &p.headers {
            let first = header.fields.first().map(|f| f.as_u32());
            let whole = first.is_some_and(|first| first >= free && self.stands_together(id, header, first));
            if whole {
                free = first.unwrap_or(0) + header.fields.len() as u32;
            }
            together.push(whole);
        }
        let mut header = 0;
        let mut slot = 0;
        while slot < p.slots.len() || header < p.headers.len() {
            let (slot_id, header_id) = (SlotId::from_u32(slot as u32), HeaderId::from_u32(header as u32));
            match p.headers.get(header_id) {
                Some(h) if !together[header] => {
                    let fields = self.slots(&h.fields);
                    let (name, ty) = (written(&h.name), written(&h.type_name));
                    put!(self, "header {name}: {ty} ({fields}) bits {}\n", h.fixed_bits);
                    header += 1;
                }
                Some(h) if h.fields.first() == Some(&slot_id) => {
                    put!(self, "header {}: {} {{\n", written(&h.name), written(&h.type_name));
                    for field in &h.fields {
                        let s = &p.slots[*field];
                        let short = s.name.get(h.name.len() + 1..).unwrap_or_default();
                        put!(self, "    {}: {}\n", written(short), s.ty);
                    }
                    put!(self, "}}\n");
                    slot += h.fields.len();
                    header += 1;
                }
                _ => {
                    let s = &p.slots[slot_id];
                    let name = written(&s.name);
                    match s.home {
                        Home::Metadata => put!(self, "metadata {name}: {}\n", s.ty),
                        Home::Local => put!(self, "local {name}: {}\n", s.ty),
                        Home::Header { header, offset } => {
                            let header = self.header(header);
                            put!(self, "slot {name}: {} in {header} at {offset}\n", s.ty);
                        }
                    }
                    slot += 1;
                }
            }
        }
        for stack in p.stacks.values() {
            let elements: Vec<String> = stack.elements.iter().map(|h| self.header(*h)).collect();
            let next = self.slot(stack.next);
            put!(self, "stack {} ({}) next {next}\n", written(&stack.name), elements.join(", "));
        }
    }

    /// Whether the fields are the slots from `first` on, laid out and named as usual.
    fn stands_together(&self, id: HeaderId, header: &Header, first: u32) -> bool {
        let mut offset = 0u32;
        for (index, field) in header.fields.iter().enumerate() {
            let Some(slot) = self.program.slots.get(*field) else { return false };
            let short = slot.name.strip_prefix(&header.name).and_then(|n| n.strip_prefix('.'));
            if u64::from(field.as_u32()) != u64::from(first) + index as u64
                || slot.home != (Home::Header { header: id, offset })
                || short.is_none()
            {
                return false;
            }
            offset = offset.saturating_add(slot.ty.fixed_bits());
        }
        offset == header.fixed_bits
    }
}

impl Type {
    /// The bits that a field of this type always has: 1 of a `Bool`, 0 of a varbit.
    pub fn fixed_bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::Bits(width) => width,
            Type::Varbit(_) => 0,
        }
    }
}
