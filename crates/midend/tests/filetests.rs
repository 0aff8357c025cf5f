//! The programs in `filetests/`, each a text of the IR with directives as `millrace_filetests` has them.
//!
//! - `; test plan STAGE`: gives the plan of a stage.
//! - `; test graph STAGE`: gives its control-flow graph.
//! - `; test nodes STAGE`: gives its specialised graph.
//! - `; test live STAGE`: gives what is live at each node.
//! - `; test footprint STAGE`: gives the bytes that may change, and whether packets move.
//!
//! STAGE is `through`, `through_by_class`, `ingress` (from an arrival up to the traffic manager), `again` (ingress from a context),
//! `parser`, `egress` or `tail N`. After it may follow `staged TABLE ...` with the tables that are staged, in order.

use millrace_filetests::{Folder, Harness, Kind, Outcome, Test};
use millrace_midend::cfg::{Cfg, flatten};
use millrace_midend::facts::Facts;
use millrace_midend::footprint::{Footprint, footprint};
use millrace_midend::liveness::live;
use millrace_midend::specialise::{Growth, Specialised, specialise};
use millrace_midend::{Cancel, Meter, Plan, Start};
use millrace_pipeline::{Home, Program, SlotId, TableId, text, verify};
use std::path::Path;
use std::process::ExitCode;

const KINDS: &[Kind] = &[
    Kind { name: "plan", words: &[], run: plan },
    Kind { name: "graph", words: &[], run: graph },
    Kind { name: "nodes", words: &[], run: nodes },
    Kind { name: "live", words: &[], run: live_slots },
    Kind { name: "footprint", words: &[], run: changes },
];

fn main() -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    Harness::default().folder(&Folder { path, extension: "mir", sign: ";", kinds: KINDS }).run()
}

/// A program, a stage of it, and the graphs of that.
struct Stage {
    program: Program,
    plan: Plan,
    cfg: Cfg,
    nodes: Specialised,
}

impl Stage {
    fn of(test: &Test<'_>) -> Result<Stage, String> {
        let program = text::parse(test.source).map_err(|error| error.to_string())?;
        verify(&program).map_err(|errors| errors[0].to_string())?;
        let (stage, staged) = match test.args.split_once(" staged ") {
            Some((stage, tables)) => (stage, tables.split_whitespace().collect()),
            None => (test.args, Vec::new()),
        };
        let plan = plan_of(&program, stage)?;
        let table =
            |name: &str| program.tables.iter().find(|(_, table)| table.name == name).map(|(id, _)| id);
        let staged: Option<Vec<TableId>> = staged.into_iter().map(table).collect();
        let staged = staged.ok_or("a staged table is not there")?;
        let cancel = Cancel::default();
        let meter = Meter::new(&cancel);
        let cfg = flatten(&program, &plan, &meter).map_err(|refusal| refusal.to_string())?;
        let entry = match plan.start {
            Start::Arrival => Facts::arrival(&program, program.slots.keys()),
            Start::Unparsed => Facts::unparsed(&program),
            Start::Context => Facts::context(&program),
        };
        let loop_of = |table: TableId| staged.iter().position(|its| *its == table).map(|at| at as u32 + 1);
        let nodes = specialise(&program, &cfg, entry, Growth::of(&cfg), &loop_of, &meter)
            .map_err(|refusal| refusal.to_string())?;
        Ok(Stage { program, plan, cfg, nodes })
    }
}

fn plan_of(program: &Program, stage: &str) -> Result<Plan, String> {
    match stage {
        "through" => Ok(Plan::through(program, true)),
        "through_by_class" => Ok(Plan::through_by_class(program)),
        "ingress" => Ok(Plan::through(program, false)),
        "again" => Ok(Plan::ingress(program)),
        "parser" => Ok(Plan::parser(program)),
        "egress" => Ok(Plan::egress(program)),
        other => match other.strip_prefix("tail ").and_then(|nth| nth.parse().ok()) {
            Some(nth) => Ok(Plan::tail(program, nth)),
            None => Err(format!("there is no stage `{other}`")),
        },
    }
}

fn plan(test: &Test<'_>) -> Result<Outcome, String> {
    let stage = Stage::of(test)?;
    Ok(Outcome::Text(stage.plan.to_text(&stage.program)))
}

fn graph(test: &Test<'_>) -> Result<Outcome, String> {
    let stage = Stage::of(test)?;
    Ok(Outcome::Text(stage.cfg.to_text(&stage.program)))
}

fn nodes(test: &Test<'_>) -> Result<Outcome, String> {
    let Stage { program, cfg, nodes, .. } = Stage::of(test)?;
    Ok(Outcome::Text(nodes.to_text(&program, &cfg)))
}

/// Where storage goes to a context, all that outlives a body goes.
fn live_slots(test: &Test<'_>) -> Result<Outcome, String> {
    let Stage { program, cfg, nodes, .. } = Stage::of(test)?;
    let outlives = |slot: &SlotId| !matches!(program.slots[*slot].home, Home::Local);
    let spilled: Vec<SlotId> = program.slots.keys().filter(outlives).collect();
    let cancel = Cancel::default();
    let live = live(&program, &cfg, &nodes, &spilled, &Meter::new(&cancel));
    let live = live.map_err(|refusal| refusal.to_string())?;
    Ok(Outcome::Text(nodes.live_to_text(&program, &cfg, &live)))
}

fn changes(test: &Test<'_>) -> Result<Outcome, String> {
    let Stage { program, cfg, nodes, .. } = Stage::of(test)?;
    let (Footprint { before, within }, stays) = footprint(&program, &cfg, &nodes);
    let within = if within >= u32::MAX as usize { "all".to_owned() } else { within.to_string() };
    let moves = if stays { "stay" } else { "move" };
    Ok(Outcome::Text(format!("within {within}\nbefore {before}\npackets {moves}\n")))
}
