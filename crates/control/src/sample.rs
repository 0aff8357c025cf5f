//! A switch for tests: one object of every kind, no packet ever passes.

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_pipeline::*;
use std::sync::Arc;

/// `ingress.route`: lpm; `ingress.acl`: ternary and range, two entries; `ingress.spread`: exact, with a selector;
/// `ingress.fixed`: const entries; a counter, a meter, accounts, a register, a value set.
pub(crate) fn switch() -> Switch {
    let mut b = ProgramBuilder::new("sample", "v1model");
    let address = b.metadata("address", Type::Bits(32));
    let port = b.metadata("port", Type::Bits(9));
    let mut action = |name: &str, params: &[(&str, u32)]| {
        let mut body = BodyBuilder::new(name, BodyKind::Action);
        body.end();
        let body = body.finish(&mut b).unwrap();
        let slots =
            params.iter().map(|(param, width)| b.local(&format!("{name}.{param}"), Type::Bits(*width)));
        let slots = slots.collect();
        b.action(name, slots, body)
    };
    let set_nhop = action("ingress.set_nhop", &[("dmac", 48), ("port", 9)]);
    let drop = action("ingress.drop", &[]);
    let only_default = action("ingress.only_default", &[]);
    let listed = |action, scope| TableAction { action, scope };
    let both = ActionScope::Both;
    let key = |name: &str, slot, kind| TableKey { name: name.into(), value: Expr::Read(slot), kind };
    let actions =
        vec![listed(set_nhop, both), listed(drop, both), listed(only_default, ActionScope::DefaultOnly)];
    let base = Table::new(String::new(), Vec::new(), actions, ActionCall { action: 1, args: Vec::new() }, 4);
    let p = b.program_mut();
    p.tables.push(Table {
        name: "ingress.route".into(),
        keys: vec![key("hdr.ipv4.dst", address, MatchKind::Lpm)],
        direct_counter: Some(DirectCounter {
            name: "ingress.hits".into(),
            unit: Unit::Packets,
            at_hit: true,
        }),
        idle_timeout: true,
        ..base.clone()
    });
    p.tables.push(Table {
        name: "ingress.acl".into(),
        keys: vec![key("hdr.ipv4.src", address, MatchKind::Ternary), key("port", port, MatchKind::Range)],
        size: 2,
        ..base.clone()
    });
    let selector = Selector { algorithm: HashAlgorithm::Crc16, width: 16, max_group_size: 0 };
    let profile =
        p.profiles.push(Profile { name: "ingress.paths".into(), size: 8, selector: Some(selector) });
    p.tables.push(Table {
        name: "ingress.spread".into(),
        keys: vec![key("port", port, MatchKind::Exact)],
        profile: Some(profile),
        selector_inputs: vec![Expr::Read(address)],
        ..base.clone()
    });
    p.tables.push(Table {
        name: "ingress.fixed".into(),
        keys: vec![key("port", port, MatchKind::Exact)],
        entries: vec![TableEntry {
            matches: vec![EntryMatch::Exact(Bits::new(9, 1))],
            priority: 0,
            call: ActionCall { action: 1, args: Vec::new() },
            is_const: true,
        }],
        const_entries: true,
        const_default: true,
        ..base
    });
    p.counters.push(Counter { name: "ingress.count".into(), size: 4, unit: Unit::PacketsAndBytes });
    p.meters.push(Meter { name: "ingress.meter".into(), size: 2, unit: Unit::Bytes });
    p.meters.push(Meter { name: "ingress.links".into(), size: 2, unit: Unit::Account });
    p.registers.push(Register { name: "ingress.last".into(), width: 48, size: 3, initial: None });
    p.value_sets.push(ValueSet {
        name: "parser.types".into(),
        fields: vec![("high".into(), 8, MatchKind::Exact), ("low".into(), 4, MatchKind::Exact)],
        size: 2,
    });
    Switch::new(Arc::new(b.finish()), SwitchConfig::default()).unwrap()
}
