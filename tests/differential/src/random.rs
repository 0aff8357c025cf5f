//! Random programs that also ask the switch for something, packets for them, and where results stop being comparable.

use millrace_dataplane::{DropReason, Outcome, Replica, Session, Switch};
use millrace_pipeline::arbitrary::{self, Rng};
use millrace_pipeline::{
    ActionId, Bits, BodyKind, DropSite, EntryMatch, Expr, Home, Inst, Intrinsic, MatchKind, ProfileId,
    Program, Slot, TableId, TableKey, Type,
};
use millrace_state::{EntryWrite, GroupMember, MemberWrite, Tables, Target};
use std::sync::Arc;

/// A random verified program that also asks for clones, resubmission, recirculation and so on.
pub fn program(seed: u64, size: usize) -> Program {
    let mut program = arbitrary::program(seed, size);
    // Fewer than the numbers that the program may write.
    let site = |number| DropSite { request: format!("request {number}"), ..DropSite::default() };
    program.drop_sites = (0..4).map(site).collect();
    let mut rng = Rng::new(!seed);
    for role in [
        Intrinsic::Clone,
        Intrinsic::CloneSession,
        Intrinsic::CloneList,
        Intrinsic::Resubmit,
        Intrinsic::ResubmitList,
        Intrinsic::Recirculate,
        Intrinsic::RecirculateList,
        Intrinsic::Truncate,
        Intrinsic::Priority,
        Intrinsic::PacketPath,
        Intrinsic::DropSite,
    ] {
        // Some programs ask for nothing: they are those that a burst takes in one go.
        if program.intrinsics.get(role).is_some() || rng.one_in(3) {
            continue;
        }
        let name = format!("asked.{}", role.name());
        let slot = program.slots.push(Slot { name, ty: role.ty(), home: Home::Metadata });
        program.intrinsics.set(role, Some(slot));
        let bodies: Vec<_> = program.ingress.iter().chain(&program.egress).copied().collect();
        let controls: Vec<_> =
            bodies.into_iter().filter(|body| program.bodies[*body].kind == BodyKind::Control).collect();
        let Some(body) = rng.pick(&controls) else { continue };
        let value = match role.ty() {
            Type::Bool => Expr::Bool(rng.one_in(2)),
            ty => Expr::bits(ty.bits().unwrap_or(1), rng.below(6) as u128),
        };
        if rng.one_in(2) {
            let body = &mut program.bodies[*body];
            let at = rng.below(body.blocks.len());
            let block = body.blocks.keys().nth(at).unwrap_or(body.entry);
            body.blocks[block].insts.push(Inst::Assign { dst: slot, value });
        }
    }
    program
}

/// Gives a switch groups and sessions of the numbers that such programs use.
///
/// # Panics
/// The switch has them already.
pub fn set_up(switch: &mut Switch) {
    let replication = switch.replication_mut();
    for id in 1..4 {
        replication.create_group(id).expect("a new group");
        let copies = (0..id).map(|rid| Replica { port: rid * 7, rid: rid as u16 }).collect();
        replication.set_copies(id, copies).expect("few copies");
        let truncate = (id == 2).then_some(9);
        let session = Session { truncate, group: (id > 1).then_some(id), ..Session::to_port(id) };
        replication.set_session(id, session).expect("few copies");
    }
    let program = Arc::clone(switch.program());
    let mut tables = switch.state().tables();
    for profile in program.profiles.keys() {
        set_up_groups(&program, profile, &mut tables);
    }
}

/// Members for actions of all tables of a profile, groups of them with weights, one of which is empty, and entries and defaults with these
/// where tables let control write them.
fn set_up_groups(program: &Program, profile: ProfileId, tables: &mut Tables) {
    let users: Vec<TableId> =
        program.tables.iter().filter(|(_, table)| table.profile == Some(profile)).map(|(id, _)| id).collect();
    let mut rng = Rng::new(users.len() as u64);
    let actions: Vec<ActionId> =
        users.iter().flat_map(|id| program.tables[*id].actions.iter().map(|listed| listed.action)).collect();
    for (id, action) in (1..).zip(actions.into_iter().take(8)) {
        let params = program.actions[action].params.iter();
        let args = params.map(|slot| rng.bits(program.slots[*slot].ty.fixed_bits())).collect();
        // An action of some tables of the profile alone is none of a member.
        let _ = tables.insert_member(profile, Some(id), &MemberWrite { action, args });
    }
    let members: Vec<u32> = tables.members(profile).map(|(id, _)| id).collect();
    if program.profiles[profile].selector.is_none() || members.is_empty() {
        return;
    }
    for (id, length) in [(1, 0), (2, 1), (3, 2), (4, members.len())] {
        let members = members.iter().rev().take(length);
        let members: Vec<GroupMember> =
            members.map(|member| GroupMember { member: *member, weight: 1 + member % 2 }).collect();
        // Four members at most.
        let _ = tables.insert_group(profile, Some(id), &members);
    }
    for table in users {
        let group = |rng: &mut Rng| Target::Group(1 + rng.below(4) as u32);
        // What the table does not let control write stays: const entries and defaults, a member whose action is none of its own.
        let _ = tables.set_default_target(table, &group(&mut rng));
        for priority in 1..20 {
            let described = &program.tables[table];
            let key = |rng: &mut Rng, key: &TableKey| {
                let width = key.value.ty(program).bits().unwrap_or(1);
                let value = Bits::new(width, rng.below(4) as u128);
                match key.kind {
                    MatchKind::Exact => EntryMatch::Exact(value),
                    MatchKind::Lpm => EntryMatch::Lpm(value, width),
                    MatchKind::Ternary => EntryMatch::Ternary(value, Bits::ones(width)),
                    MatchKind::Range => EntryMatch::Range(value, Bits::ones(width)),
                    MatchKind::Optional => EntryMatch::Optional(Some(value)),
                }
            };
            let matches: Vec<EntryMatch> = described.keys.iter().map(|of| key(&mut rng, of)).collect();
            let has_priority =
                described.keys.iter().any(|key| !matches!(key.kind, MatchKind::Exact | MatchKind::Lpm));
            let priority = if has_priority { priority } else { 0 };
            let entry = EntryWrite { matches, priority, target: group(&mut rng), idle_timeout_ns: 0 };
            let _ = tables.insert(table, &entry, 0);
        }
    }
}

/// Packets of all lengths; half of their bytes are small.
pub fn packets(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed ^ 0x5555);
    let one = |rng: &mut Rng| {
        let length = rng.below(90);
        (0..length).map(|_| if rng.one_in(2) { rng.below(4) as u8 } else { rng.next_u64() as u8 }).collect()
    };
    (0..count).map(|_| one(&mut rng)).collect()
}

/// Whether a packet had too many steps. How many steps a way has is what passes may change, so from there on engines and
/// passes need not agree.
pub fn out_of_steps(outcome: &Outcome, program: &Program) -> bool {
    outcome.drops.iter().any(|drop| {
        drop.reason == DropReason::StepLimit || drop.reason.label(program) == "parser_error:ParserTimeout"
    })
}
