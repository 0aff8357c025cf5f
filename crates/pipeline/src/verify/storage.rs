//! Slots, headers, stacks, and the lists of slots.

use super::{Location, Verifier};
use crate::*;
use cranelift_entity::EntitySet;
use foldhash::{HashSet, HashSetExt};

impl Verifier<'_> {
    pub(super) fn storage(&mut self) {
        let p = self.program;
        self.at_most(Location::Program, "slots", p.slots.len() as u64, limits::MAX_SLOTS as u64);
        self.unique_names("slot", p.slots.values().map(|s| s.name.as_str()));
        self.unique_names("header", p.headers.values().map(|h| h.name.as_str()));
        self.unique_names("stack", p.stacks.values().map(|s| s.name.as_str()));
        let mut listed = EntitySet::<SlotId>::with_capacity(p.slots.len());
        for (id, header) in &p.headers {
            for field in &header.fields {
                let home = p.slots.get(*field).map(|s| s.home);
                if matches!(home, Some(Home::Header { header, .. }) if header == id) {
                    listed.insert(*field);
                }
            }
        }
        for (id, slot) in &p.slots {
            let location = Location::Object("slot", &slot.name);
            self.ty(location, slot.ty);
            if let Home::Header { header, .. } = slot.home
                && let Some(header) = self.header(location, header)
            {
                self.require(listed.contains(id), location, || {
                    format!("it is no field of its header {}", header.name)
                });
            }
        }
        for (id, header) in &p.headers {
            self.header_layout(id, header);
        }
        self.stacks();
        self.intrinsic_slots();
        self.slot_lists();
    }

    fn header_layout(&mut self, id: HeaderId, header: &Header) {
        let location = Location::Object("header", &header.name);
        let mut offset = 0u32;
        let mut varbits = 0;
        for field in &header.fields {
            let Some(slot) = self.slot(location, *field) else { return };
            let wanted = Home::Header { header: id, offset };
            self.require(slot.home == wanted, location, || {
                format!("the home of its field {} is not offset {offset} of this header", slot.name)
            });
            match slot.ty {
                Type::Bool => offset = offset.saturating_add(1),
                Type::Bits(width) => offset = offset.saturating_add(width),
                Type::Varbit(_) => varbits += 1,
            }
        }
        self.require(varbits <= 1, location, || "it has more than one varbit".into());
        self.require(offset == header.fixed_bits, location, || {
            format!("its fields have {offset} bits, not {}", header.fixed_bits)
        });
        self.at_most(location, "bits", u64::from(offset), u64::from(limits::MAX_VARBIT));
    }

    fn stacks(&mut self) {
        let p = self.program;
        let mut in_stack = EntitySet::<HeaderId>::new();
        for stack in p.stacks.values() {
            let location = Location::Object("stack", &stack.name);
            self.slot_of_type(location, stack.next, Type::Bits(32));
            self.require(!stack.elements.is_empty(), location, || "it has no elements".into());
            let headers: Vec<_> = stack.elements.iter().filter_map(|e| self.header(location, *e)).collect();
            for header in &headers {
                self.require(header.type_name == headers[0].type_name, location, || {
                    format!("{} is not of the type of {}", header.name, headers[0].name)
                });
            }
            for element in stack.elements.iter().filter(|e| p.headers.is_valid(**e)) {
                self.require(in_stack.insert(*element), location, || {
                    format!("{} is in a stack already", p.headers[*element].name)
                });
            }
        }
    }

    fn intrinsic_slots(&mut self) {
        let p = self.program;
        let mut taken = EntitySet::<SlotId>::new();
        for role in Intrinsic::ALL {
            let Some(id) = p.intrinsics.get(*role) else { continue };
            let location = Location::Object("intrinsic", role.name());
            self.slot_of_type(location, id, role.ty());
            if let Some(slot) = p.slots.get(id) {
                self.require(slot.home == Home::Metadata, location, || {
                    format!("{} is not metadata", slot.name)
                });
                self.require(taken.insert(id), location, || format!("{} has another role", slot.name));
            }
        }
    }

    fn slot_lists(&mut self) {
        let p = self.program;
        for id in &p.reset_at_egress {
            if let Some(slot) = self.slot(Location::Program, *id) {
                self.require(slot.home == Home::Metadata, Location::Program, || {
                    format!("{} in reset_at_egress is not metadata", slot.name)
                });
            }
        }
        let mut numbers = HashSet::new();
        for list in &p.field_lists {
            let name = list.id.to_string();
            let location = Location::Object("field list", &name);
            self.require(numbers.insert(list.id), location, || "two field lists have this number".into());
            for id in &list.slots {
                if let Some(slot) = self.slot(location, *id) {
                    self.require(slot.home != Home::Local, location, || {
                        format!("{} is local and cannot be kept", slot.name)
                    });
                }
            }
        }
    }
}
