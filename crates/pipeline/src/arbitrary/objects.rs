//! Random stateful objects, actions and tables.

use super::Generator;
use super::code::Scope;
use crate::*;

impl Generator {
    pub(super) fn objects(&mut self) {
        for c in 0..2 {
            let unit = [Unit::Packets, Unit::Bytes, Unit::PacketsAndBytes][self.rng.below(3)];
            let size = self.rng.below(20) as u64;
            self.b.program_mut().counters.push(Counter { name: format!("c.count{c}"), size, unit });
        }
        self.b.program_mut().meters.push(Meter { name: "c.meter".into(), size: 8, unit: Unit::Packets });
        self.b.program_mut().meters.push(Meter { name: "c.account".into(), size: 8, unit: Unit::Account });
        for r in 0..2 {
            let width = self.a_width();
            let initial = if self.rng.one_in(2) { Some(self.rng.bits(width)) } else { None };
            let size = 1 + self.rng.below(8) as u64;
            self.b.program_mut().registers.push(Register { name: format!("c.reg{r}"), width, size, initial });
        }
        for (name, algorithm) in
            [("own16", HashAlgorithm::Crc16Custom), ("own32", HashAlgorithm::Crc32Custom)]
        {
            self.b.program_mut().hashes.push(OwnHash { name: name.into(), algorithm });
        }
        let fields = vec![("x".into(), 8, MatchKind::Exact), ("y".into(), 16, MatchKind::Ternary)];
        let p = self.b.program_mut();
        p.value_sets.push(ValueSet { name: "p.set".into(), fields, size: 4 });
        let members = vec![("a".into(), Type::Bits(48)), ("b".into(), Type::Bool)];
        p.digests.push(Digest { name: "learn_t".into(), receiver: 1, members });
        p.plugins.push(Plugin { name: "arbitrary".into(), rewrites: true, passes: true });
        let selector = Selector { algorithm: HashAlgorithm::Crc16, width: 14, max_group_size: 4 };
        p.profiles.push(Profile { name: "c.selector".into(), size: 16, selector: Some(selector) });
        for a in 0..2 + self.rng.below(4) {
            let name = format!("c.act{a}");
            let params: Vec<SlotId> = (0..self.rng.below(3))
                .map(|i| {
                    let ty = self.ty();
                    self.b.local(&format!("{name}.p{i}"), ty)
                })
                .collect();
            let body = self.action_body(&name, &params);
            let action = self.b.action(&name, params, body);
            self.actions.push(action);
        }
    }

    /// A table that the body of that scope applies.
    pub(super) fn table(&mut self, scope: &Scope) -> TableId {
        let name = self.b.object_name("c.table");
        let mut keys = Vec::new();
        for k in 0..self.rng.below(4) {
            let width = self.a_width();
            let lpm = keys.iter().any(|key: &TableKey| key.kind == MatchKind::Lpm);
            let kind = match *self.rng.pick(MatchKind::ALL).unwrap_or(&MatchKind::Exact) {
                MatchKind::Lpm if lpm => MatchKind::Exact,
                kind => kind,
            };
            let value = self.expr(scope, Type::Bits(width), 2);
            keys.push(TableKey { name: format!("k{k}"), value, kind });
        }
        let from = self.rng.below(self.actions.len());
        let mut actions: Vec<TableAction> = self.actions[from..]
            .iter()
            .map(|action| TableAction { action: *action, scope: ActionScope::Both })
            .collect();
        let default = self.call(&actions, 0);
        if actions.len() > 1 {
            let last = actions.len() - 1;
            actions[last].scope = if self.rng.one_in(3) { ActionScope::TableOnly } else { ActionScope::Both };
        }
        let entries = if keys.is_empty() { Vec::new() } else { self.entries(&keys, &actions) };
        let selects = self.rng.one_in(4);
        let empty_group = (selects && self.rng.one_in(2)).then(|| self.call(&actions, 0));
        let (counts, meters) = (self.rng.one_in(2), self.rng.one_in(3));
        let table = Table {
            keys,
            actions,
            default,
            const_default: self.rng.one_in(2),
            size: 8 + self.rng.below(100) as u64,
            entries,
            const_entries: self.rng.one_in(2),
            profile: selects.then(|| ProfileId::from_u32(0)),
            selector_inputs: if selects { vec![self.expr(scope, Type::Bits(16), 1)] } else { Vec::new() },
            empty_group,
            direct_counter: counts.then(|| DirectCounter {
                name: format!("{name}.counter"),
                unit: Unit::Packets,
                at_hit: true,
            }),
            direct_meter: meters.then(|| DirectMeter {
                name: format!("{name}.meter"),
                unit: *self.rng.pick(&[Unit::Bytes, Unit::Account]).unwrap_or(&Unit::Bytes),
                at_hit: None,
            }),
            idle_timeout: self.rng.one_in(4),
            name,
        };
        self.b.program_mut().tables.push(table)
    }

    fn call(&mut self, actions: &[TableAction], index: usize) -> ActionCall {
        let p = self.b.program();
        let params = p.actions[actions[index].action].params.clone();
        let widths: Vec<u32> = params.iter().map(|s| p.slots[*s].ty.fixed_bits()).collect();
        ActionCall { action: index, args: widths.into_iter().map(|w| self.rng.bits(w)).collect() }
    }

    fn entries(&mut self, keys: &[TableKey], actions: &[TableAction]) -> Vec<TableEntry> {
        let ranked = keys
            .iter()
            .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        (0..self.rng.below(6))
            .map(|_| {
                let matches = keys.iter().map(|key| self.entry_match(key)).collect();
                let action = self.rng.below(actions.len());
                let call = self.call(actions, action);
                let priority = if ranked { self.rng.below(10) as u32 } else { 0 };
                TableEntry { matches, priority, call, is_const: self.rng.one_in(2) }
            })
            .collect()
    }

    fn entry_match(&mut self, key: &TableKey) -> EntryMatch {
        let width = key.value.ty(self.b.program()).fixed_bits();
        let (a, b) = (self.rng.bits(width), self.rng.bits(width));
        match key.kind {
            MatchKind::Exact => EntryMatch::Exact(a),
            MatchKind::Lpm => EntryMatch::Lpm(a, self.rng.below(width as usize + 1) as u32),
            MatchKind::Ternary => EntryMatch::Ternary(a, b),
            MatchKind::Range if a.cmp_unsigned(&b).is_le() => EntryMatch::Range(a, b),
            MatchKind::Range => EntryMatch::Range(b, a),
            MatchKind::Optional => EntryMatch::Optional(if self.rng.one_in(3) { None } else { Some(a) }),
        }
    }
}
