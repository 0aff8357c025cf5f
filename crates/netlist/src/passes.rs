//! Optimisations that keep the meaning: after them, outputs are what they were in every cycle.
//!
//! All work by building a module again with [`crate::ModuleBuilder`], whose rules fold and share, from those of its parts that an
//! output depends on. `rebuild` does that; `registers` finds state that never changes or exists twice, `steady` bits of registers
//! and ports that do; `narrow` drops bits that nothing reads. `delay` is for fabrics without shift registers, and `borrows` for those on
//! which synthesis makes more of a comparison than of a difference, when a design is ready: they are no part of [`optimize`].

mod borrows;
mod delay;
mod narrow;
mod rebuild;
mod registers;
mod steady;
#[cfg(test)]
mod tests;

pub use borrows::borrows;
pub use delay::delay_lines;
pub(crate) use rebuild::Live;
pub(crate) use registers::Known;

use crate::*;
use cranelift_entity::packed_option::PackedOption;
use std::borrow::Cow;

/// How often a module is built again at most; each time finds what the one before has made possible.
const ROUNDS: usize = 8;

/// Optimises a verified design: each module by itself, but for bits of its ports that never change, and drops modules that the top has no
/// instance of. Ports of modules stay.
pub fn optimize(design: &mut Design) {
    optimize_within(design, steady::Effort::new(steady::MOST_BITS_OF_DESIGN));
}

/// As [`optimize`], with so much effort for bits that never change.
fn optimize_within(design: &mut Design, mut effort: steady::Effort) {
    drop_modules(design);
    let mut ports = steady::Ports::default();
    let ids: Vec<ModuleId> = design.modules.keys().collect();
    for id in &ids {
        design.modules[*id] = optimized(&design.modules[*id], (&ports, *id), &mut effort);
        ports.note_outputs(*id, &design.modules[*id], &mut effort);
    }
    for id in ids.into_iter().rev() {
        if ports.knows_inputs(id) {
            design.modules[id] = optimized(&design.modules[id], (&ports, id), &mut effort);
        }
        ports.note_inputs(id, &design.modules[id], &mut effort);
    }
    drop_modules(design);
}

fn optimized(module: &Module, ports: (&steady::Ports, ModuleId), effort: &mut steady::Effort) -> Module {
    let mut looks = Looks { ports, effort, any_more: true };
    let mut module = Cow::Borrowed(module);
    for _ in 0..ROUNDS {
        let next = round(&module, &mut looks);
        let done = next == *module;
        module = Cow::Owned(next);
        if done {
            break;
        }
    }
    clean(&module)
}

/// Looks for bits that never change. They take longer than all else, so that there is no other look after one that has found nothing, and so
/// many in a design.
struct Looks<'a> {
    ports: (&'a steady::Ports, ModuleId),
    effort: &'a mut steady::Effort,
    any_more: bool,
}

fn round(module: &Module, looks: &mut Looks<'_>) -> Module {
    let mut known = registers::known(module);
    looks.any_more = looks.any_more && steady::add(module, &mut known, looks.ports, looks.effort);
    let module = rebuild::rebuild(module, &known);
    narrow::narrow(&module).unwrap_or(module)
}

/// A module by the rules of the builder, without what no output depends on.
pub fn clean(module: &Module) -> Module {
    let mut module = rebuild::rebuild(module, &Known::default());
    // What a rule has replaced is of no use any more, which is seen the next time.
    for _ in 0..ROUNDS {
        let next = rebuild::rebuild(&module, &Known::default());
        let done = next == module;
        module = next;
        if done {
            break;
        }
    }
    module
}

/// Drops modules that the top has no instance of, directly or inside others.
fn drop_modules(design: &mut Design) {
    let Some(top) = design.top() else { return };
    let mut used = cranelift_entity::SecondaryMap::<ModuleId, bool>::new();
    used[top] = true;
    for (id, module) in design.modules.iter().rev() {
        if used[id] {
            module.instances.values().for_each(|instance| used[instance.module] = true);
        }
    }
    let old = std::mem::take(&mut design.modules);
    let mut ids: cranelift_entity::SecondaryMap<ModuleId, PackedOption<ModuleId>> = Default::default();
    for (id, mut module) in old {
        if used[id] {
            for instance in module.instances.values_mut() {
                instance.module = ids[instance.module].expand().unwrap_or(instance.module);
            }
            ids[id] = design.modules.push(module).into();
        }
    }
    // Without a top of its own, a design still ends with the module that was its top.
    design.top = design.top.expand().and_then(|top| ids[top].expand()).into();
}
