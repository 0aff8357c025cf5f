//! The P4Info of a controller compared with that of the program.

use crate::refusal::Refusal;
use millrace_p4runtime_api::config;
use std::collections::BTreeMap;

/// Whether a controller that goes by `given` understands a program that is described by `own`: everything that it can
/// name is there under the same id and looks the same. Annotations, documentation and what it leaves out do not matter.
pub(crate) fn check_compatible(given: &config::P4Info, own: &config::P4Info) -> Result<(), Refusal> {
    let (given, own) = (essence(given), essence(own));
    for (id, (name, what)) in &given {
        match own.get(id) {
            None => {
                return Err(Refusal::invalid(format!(
                    "p4info: the program has no `{name}` with id {id:#010x}"
                )));
            }
            Some((other, _)) if other != name => {
                return Err(Refusal::invalid(format!(
                    "p4info: id {id:#010x} is `{other}` in the program, not `{name}`"
                )));
            }
            Some((_, own)) if own != what => {
                return Err(Refusal::invalid(format!(
                    "p4info: `{name}` is not as in the program: {what}, not {own}"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Per id: the name, and what a controller relies on.
fn essence(info: &config::P4Info) -> BTreeMap<u32, (String, String)> {
    let mut all = BTreeMap::new();
    let mut add = |preamble: &Option<config::Preamble>, what: String| {
        if let Some(preamble) = preamble {
            all.insert(preamble.id, (preamble.name.clone(), what));
        }
    };
    let field = |field: &config::MatchField| {
        let kind = match &field.r#match {
            Some(config::match_field::Match::MatchType(kind)) => *kind,
            _ => 0,
        };
        format!("{}:{}:{}", field.id, field.bitwidth, kind)
    };
    for table in &info.tables {
        let fields: Vec<String> = table.match_fields.iter().map(field).collect();
        let mut actions: Vec<u32> = table.action_refs.iter().map(|action| action.id).collect();
        actions.sort_unstable();
        add(
            &table.preamble,
            format!(
                "a table with fields {fields:?}, actions {actions:x?}, profile {:#x}",
                table.implementation_id
            ),
        );
    }
    for action in &info.actions {
        let params: Vec<String> =
            action.params.iter().map(|param| format!("{}:{}", param.id, param.bitwidth)).collect();
        add(&action.preamble, format!("an action with parameters {params:?}"));
    }
    for profile in &info.action_profiles {
        let kind = if profile.with_selector { "a selector" } else { "an action profile" };
        add(&profile.preamble, kind.into());
    }
    info.counters.iter().for_each(|counter| add(&counter.preamble, "a counter".into()));
    info.direct_counters.iter().for_each(|counter| add(&counter.preamble, "a direct counter".into()));
    info.meters.iter().for_each(|meter| add(&meter.preamble, "a meter".into()));
    info.direct_meters.iter().for_each(|meter| add(&meter.preamble, "a direct meter".into()));
    info.registers.iter().for_each(|register| add(&register.preamble, "a register".into()));
    info.digests.iter().for_each(|digest| add(&digest.preamble, "a digest".into()));
    for set in &info.value_sets {
        let fields: Vec<String> = set.r#match.iter().map(field).collect();
        add(&set.preamble, format!("a value set with fields {fields:?}"));
    }
    for header in &info.controller_packet_metadata {
        let fields: Vec<String> =
            header.metadata.iter().map(|field| format!("{}:{}", field.id, field.bitwidth)).collect();
        add(&header.preamble, format!("a controller header with fields {fields:?}"));
    }
    all
}
