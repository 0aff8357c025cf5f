//! Members and groups of action selectors: what is in the words of entries, and which members are chosen.

use super::*;

/// The words of entries have what their members do, also after a change of a member.
#[test]
fn members_are_in_the_words() {
    let shape = Shape { members: true, ..Shape::new(&[(32, MatchKind::Lpm)], 200) };
    let mut bench = Bench::new(&shape, Some(100));
    let profile = bench.program.tables[table()].profile.unwrap();
    let actions: Vec<ActionId> = bench.program.tables[table()].actions.iter().map(|one| one.action).collect();
    let member = |number: u32| match number % 3 {
        0 => MemberWrite { action: actions[1], args: Vec::new() },
        _ => MemberWrite { action: actions[0], args: vec![Bits::new(24, number.into())] },
    };
    bench.write(|bench| {
        for id in 0..20 {
            bench.state.tables().insert_member(profile, Some(id), &member(id)).unwrap();
        }
        while bench.count() < 100 {
            let keys = bench.shape_keys();
            let (matches, id) = (matches(&mut bench.rng, &keys), bench.rng.below(20) as u32);
            let entry = EntryWrite { matches, priority: 0, target: Target::Member(id), idle_timeout_ns: 0 };
            let _ = bench.state.tables().insert(table(), &entry, 0);
        }
    });
    for id in 0..20 {
        bench.write(|bench| bench.state.tables().modify_member(profile, id, &member(id + 100)).unwrap());
    }
    bench.write(|bench| bench.state.tables().set_default_target(table(), &Target::Member(4)).unwrap());
    assert!(bench.wires.hits > 200);
}

/// Members of groups are chosen by the hash as software chooses, with weights, in empty groups and after changes of all of it.
#[test]
fn members_of_groups_are_chosen_by_the_hash() {
    use MatchKind::*;
    for (keys, hash, kind) in [
        (vec![(32, Lpm)], 14, "tree"),
        (vec![(48, Exact)], 64, "hash"),
        (vec![(16, Ternary)], 1, "tcam"),
        (vec![(8, Exact)], 16, "direct"),
    ] {
        choose_members(&keys, hash, kind);
    }
}

fn choose_members(keys: &[(u32, MatchKind)], hash: u32, kind: &str) {
    let counted = hash == 64;
    let shape = Shape { members: true, groups: Some(hash), counted, ..Shape::new(keys, 200) };
    let mut bench = Bench::new(&shape, Some(100));
    assert_eq!(bench.unit().kind.name(), kind);
    let profile = bench.program.tables[table()].profile.unwrap();
    let actions: Vec<ActionId> = bench.program.tables[table()].actions.iter().map(|one| one.action).collect();
    let member = |number: u32| match number % 3 {
        0 => MemberWrite { action: actions[1], args: Vec::new() },
        _ => MemberWrite { action: actions[0], args: vec![Bits::new(24, number.into())] },
    };
    let group = |rng: &mut Rng, most: usize| -> Vec<GroupMember> {
        let first = rng.below(20);
        let members = (first..20).take(rng.below(most + 1));
        members.map(|id| GroupMember { member: id as u32, weight: 1 + rng.below(4) as u32 }).collect()
    };
    bench.write(|bench| {
        let priority = u32::from(bench.priorities);
        let fields = bench.shape_keys();
        let mut tables = bench.state.tables();
        for id in 0..20 {
            tables.insert_member(profile, Some(id), &member(id)).unwrap();
        }
        for id in 0..10 {
            tables.insert_group(profile, Some(id), &group(&mut bench.rng, 4)).unwrap();
        }
        // Keys of few bits soon repeat.
        for _ in 0..400 {
            if tables.entry_count(table()) == 80 {
                break;
            }
            let matches = matches(&mut bench.rng, &fields);
            let id = bench.rng.below(10) as u32;
            let target = if bench.rng.one_in(4) { Target::Member(id) } else { Target::Group(id) };
            let entry = EntryWrite { matches, priority, target, idle_timeout_ns: 0 };
            let _ = tables.insert(table(), &entry, 0);
        }
    });
    for id in 0..10 {
        bench.write(|bench| {
            let mut tables = bench.state.tables();
            tables.modify_group(profile, id, &group(&mut bench.rng, 4)).unwrap();
            tables.modify_member(profile, id, &member(id + 100)).unwrap();
        });
    }
    bench.write(|bench| bench.state.tables().set_default_target(table(), &Target::Group(4)).unwrap());
    bench.write(|bench| bench.state.tables().set_default(table(), &call(5)).unwrap());
    assert!(bench.wires.hits > 200);
    assert_eq!(bench.wires.sim.collisions(), 0);
}

/// Each place of a group that chooses at random is chosen, whatever the hash, and no other.
#[test]
fn groups_that_choose_at_random_choose_all() {
    let shape = Shape { members: true, groups: Some(8), ..Shape::new(&[(8, MatchKind::Exact)], 200) };
    let program = shape.program();
    let unit = TableUnit::of(&program, table(), |_| None).unwrap();
    let mut design = Design::new();
    design.add(unit.module(&program, "t"));
    let mut sim = Simulator::new(&design).unwrap();
    let state = State::new(Arc::clone(&program)).unwrap();
    let profile = program.tables[table()].profile.unwrap();
    let action = program.tables[table()].actions[0].action;
    let weights = [1_u32, 2, 3];
    let mut tables = state.tables();
    let members: Vec<GroupMember> =
        (1..).zip(weights).map(|(member, weight)| GroupMember { member, weight }).collect();
    for GroupMember { member, .. } in &members {
        let write = MemberWrite { action, args: vec![Bits::new(24, u128::from(*member))] };
        tables.insert_member(profile, Some(*member), &write).unwrap();
    }
    tables.insert_group_with(profile, Some(1), &members, millrace_state::Selection::Random).unwrap();
    tables.set_default_target(table(), &Target::Group(1)).unwrap();
    drop(tables);
    let mut contents = Contents::new(unit.clone());
    contents.update_from(&state).unwrap();
    let port = |name| sim.input(name).unwrap();
    let [enable, address, data] = ["write_enable", "write_address", "write_data"].map(port);
    sim.set_u64(enable, 1);
    for (at, word) in contents.take_changes() {
        sim.set_u64(address, at);
        sim.set(data, &word);
        sim.step();
    }
    sim.set_u64(enable, 0);
    (0..unit.latency()).for_each(|_| sim.step());
    let answer = sim.output("answer").unwrap();
    let mut counts = [0; 4];
    let cycles = 6000;
    for _ in 0..cycles {
        let chosen = sim.get(answer).slice(unit.answer - 1, LookupAnswer::DATA).to_u64().unwrap();
        counts[chosen as usize] += 1;
        sim.step();
    }
    assert_eq!(counts[0], 0);
    for (member, weight) in (1..).zip(weights) {
        let wanted = cycles * weight / 6;
        assert!((wanted - 150..wanted + 150).contains(&counts[member]), "{counts:?}");
    }
}

#[test]
fn groups_beyond_their_places_are_said() {
    let shape = Shape { members: true, groups: Some(8), ..Shape::new(&[(8, MatchKind::Exact)], 200) };
    let program = shape.program();
    let unit = TableUnit::of(&program, table(), |name| (name == "p").then_some(5)).unwrap();
    let state = State::new(Arc::clone(&program)).unwrap();
    let profile = program.tables[table()].profile.unwrap();
    let member = MemberWrite { action: program.tables[table()].actions[2].action, args: Vec::new() };
    let mut tables = state.tables();
    tables.insert_member(profile, Some(1), &member).unwrap();
    tables.insert_group(profile, Some(1), &[GroupMember { member: 1, weight: 6 }]).unwrap();
    tables.set_default_target(table(), &Target::Group(1)).unwrap();
    drop(tables);
    let mut contents = Contents::new(unit);
    let full = contents.update_from(&state).unwrap_err();
    assert_eq!((full.entries, full.capacity), (6, 5));
    assert!(full.to_string().contains("--capacity p=N"), "{full}");
    state.tables().modify_group(profile, 1, &[GroupMember { member: 1, weight: 5 }]).unwrap();
    contents.update_from(&state).unwrap();
}
