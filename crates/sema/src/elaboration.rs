//! What parsers and controls become when they are instantiated. Each instance has instances, tables and actions of its own,
//! so declarations that contain two of the one before double with each line. What a declaration becomes is counted when it
//! is read, since all that it instantiates stands before it.

use crate::annotation::name_of;
use crate::check::Checker;
use crate::codes;
use crate::hir::{InstanceId, Local, Ty};
use crate::limits::{MAX_ELABORATED, MAX_ELABORATED_BYTES};
use millrace_syntax::Span;
use millrace_syntax::ast::Annotation;

/// What an instance of a declaration consists of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Elaborated {
    /// Instances, tables with their keys, actions and entries, and actions.
    things: usize,
    /// Bytes of their names within the declaration.
    bytes: usize,
}

impl Elaborated {
    fn add(&mut self, name: usize, part: Elaborated) {
        self.things = self.things.saturating_add(part.things).saturating_add(1);
        // The name of what is in an instance begins with the name of the instance.
        let prefixes = part.things.saturating_add(1).saturating_mul(name.saturating_add(1));
        self.bytes = self.bytes.saturating_add(part.bytes).saturating_add(prefixes);
    }
}

impl Checker<'_> {
    /// Counts an instance with all that is in it for the declaration at hand.
    pub(crate) fn count_instance(&mut self, id: InstanceId) {
        let instance = &self.hir.instances[id];
        let name = name_length(instance.name.as_deref().unwrap_or_default(), &instance.annotations);
        let (ty, span) = (instance.ty, instance.span);
        let part = self.elaborated.get(&ty).copied().unwrap_or_default();
        self.count_part(name, part, span);
    }

    fn count_part(&mut self, name: usize, part: Elaborated, span: Span) {
        let Some(open) = self.elaborating.last_mut() else { return };
        open.add(name, part);
        let message = if open.things > MAX_ELABORATED {
            format!(
                "with this there are more than {MAX_ELABORATED} instances, tables, keys, actions and entries"
            )
        } else if open.bytes > MAX_ELABORATED_BYTES {
            format!("with this the names of instances have more than {MAX_ELABORATED_BYTES} bytes")
        } else {
            return;
        };
        // Said once; what contains this is not counted again.
        *open = Elaborated::default();
        self.error(codes::TOO_LARGE, span, message);
    }

    /// Begins to count for a declaration.
    pub(crate) fn begin_elaboration(&mut self) {
        self.elaborating.push(Elaborated::default());
    }

    /// Ends to count for a declaration of this type, whose tables and actions are among its locals.
    pub(crate) fn end_elaboration(&mut self, ty: Ty, locals: &[Local]) {
        for local in locals {
            let (name, things, span) = match local {
                Local::Table(id) => {
                    let table = &self.hir.tables[*id];
                    let parts = table.keys.len() + table.actions.len() + table.entries.len();
                    (name_length(&table.name, &table.annotations), parts, table.span)
                }
                Local::Action(id) => {
                    let action = &self.hir.actions[*id];
                    (name_length(&action.name, &action.annotations), 0, action.span)
                }
                Local::Var(..) | Local::Instance(_) => continue,
            };
            self.count_part(name, Elaborated { things, bytes: 0 }, span);
        }
        if let Some(made) = self.elaborating.pop() {
            self.elaborated.insert(ty, made);
        }
    }
}

fn name_length(name: &str, annotations: &[Annotation]) -> usize {
    name_of(annotations).map_or(name.len(), |given| given.len())
}
