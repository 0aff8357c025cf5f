//! The chains of ports: `--input` and `--output`, and what programs ask for.

use crate::captures::{self, OpenPort, Opened};
use crate::cli::RunArgs;
use crate::findings::Failure;
use crate::privileges::Opener;
use clap::Args;
use millrace_drivers::{Captures, PortSpec};
use millrace_end_system::Requests;
use millrace_inputs::{Chain, InputError, Inputs, Plan, PortChain, ProgramChains, StepStatus};
use millrace_pipeline::{ChainText, Program};
use millrace_printable::counted;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tracing::{info, warn};

/// What packets pass before and after the program.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plugins")]
pub(crate) struct InputArgs {
    /// What PORTS receive passes that chain before the program: 0,2-3:filter "udp port 53" | sample 1/100; `*` are all others
    #[arg(long, value_name = "PORTS:CHAIN")]
    pub(crate) input: Vec<String>,
    /// What PORTS send passes that chain after the program
    #[arg(long, value_name = "PORTS:CHAIN")]
    pub(crate) output: Vec<String>,
    /// Programs get no chains that they ask for by `@input` and `@output`
    #[arg(long)]
    pub(crate) no_program_inputs: bool,
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::Failed(error.to_string())
    }
}

/// Says whether chains are right; their lists are read too, and no file is made.
pub(crate) fn check(chains: &[String]) -> Result<(), Failure> {
    for text in chains {
        let chain: Chain = text.parse().map_err(InputError::Text)?;
        chain.check()?;
    }
    Ok(())
}

/// The ports of a run, and what is around them.
pub(crate) struct OpenPorts {
    pub(crate) inputs: Inputs,
    pub(crate) captures: Arc<Captures>,
    pub(crate) ports: Vec<OpenPort>,
    /// What has chains ready for programs that take over, where some may.
    pub(crate) chains: Option<ProgramChains>,
    /// What the switch's own end system is asked, if it has one.
    pub(crate) requests: Option<Requests>,
}

/// Opens the ports of a run, such that they can be captured, with the chains around them that the command line gives and the
/// program asks for.
pub(crate) fn open_ports(args: &RunArgs, program: &Program, opener: &Opener) -> Result<OpenPorts, Failure> {
    let plan = plan(&args.inputs, &args.ports, program)?;
    let mut inputs = opener.open(move || Inputs::open(plan))??;
    inputs.start()?;
    let may_change = args.has_server() && !args.inputs.no_program_inputs;
    let chains = may_change.then(|| inputs.expect_programs()).transpose()?;
    let Opened { captures, ports, requests } =
        captures::open(&args.captures, &args.workers, &args.ports, opener)?;
    let mut wrapped = Vec::with_capacity(ports.len());
    for (port, pairs) in ports {
        let pairs = pairs.into_iter().map(|pair| inputs.wrap(port, pair));
        wrapped.push((port, pairs.collect::<Result<Vec<_>, InputError>>()?));
    }
    Ok(OpenPorts { inputs, captures, ports: wrapped, chains, requests })
}

/// Which chain is where.
fn plan(args: &InputArgs, specs: &[PortSpec], program: &Program) -> Result<Plan, Failure> {
    let ports: Vec<u32> = specs.iter().map(|spec| spec.port.into()).collect();
    let mut given = Vec::new();
    for (texts, is_output) in [(&args.input, false), (&args.output, true)] {
        for text in texts {
            let chain = PortChain::parse(text, is_output);
            let chain = chain.map_err(|error| Failure::Usage(error.to_string()))?;
            if let Some(missing) = chain.names_in_vain(&ports) {
                return Err(Failure::Usage(format!(
                    "a chain is of port {}, which is not given by `-i`",
                    shown(&missing)
                )));
            }
            given.push(chain);
        }
    }
    let mut asked = Vec::new();
    let texts = program.chains.iter().filter(|_| !args.no_program_inputs);
    for ChainText { is_output, text } in texts {
        let chain = PortChain::parse(text, *is_output).map_err(|error| {
            Failure::Failed(format!("a chain of plugins that {} asks for: {error}", program.name))
        })?;
        if let Some(missing) = chain.names_in_vain(&ports) {
            warn!(
                chain = text,
                port = shown(&missing),
                "the program asks for a chain of a port that is not there"
            );
        }
        asked.push(chain);
    }
    let plan = Plan::new(&ports, &given, &asked)?;
    for (port, direction) in plan.of_program() {
        info!(port, direction, "chain of the program");
    }
    Ok(plan)
}

/// `3`, or `3-5`.
fn shown(ports: &RangeInclusive<u32>) -> String {
    match (ports.start(), ports.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    }
}

/// What the steps counted, as text.
pub(crate) fn text(steps: &[StepStatus]) -> String {
    let mut text = String::new();
    for StepStatus { place, packets, passed, accounted, dropped, flows } in steps {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "port {} {} {} {}: {}, {passed} passed, {accounted} accounted, {dropped} dropped",
            place.port,
            place.direction(),
            place.step,
            place.plugin,
            counted(packets, "packet")
        );
        if let Some(flows) = flows {
            let _ = write!(text, "; {} in {}", counted(flows.records, "record"), flows.file);
            if flows.lost > 0 {
                let _ = write!(text, ", {} lost", flows.lost);
            }
            if let Some(error) = &flows.error {
                let _ = write!(text, ": {error}");
            }
        }
        text.push('\n');
    }
    text
}

/// The same as JSON, as `/status` has it.
pub(crate) fn json(steps: &[StepStatus]) -> Value {
    let of_step = |step: &StepStatus| {
        let mut object = json!({
            "port": step.place.port, "direction": step.place.direction(), "step": step.place.step,
            "plugin": step.place.plugin, "packets": step.packets, "passed": step.passed,
            "accounted": step.accounted, "dropped": step.dropped,
        });
        if let (Some(object), Some(flows)) = (object.as_object_mut(), &step.flows) {
            let flows = json!({
                "file": flows.file, "flows": flows.flows, "records": flows.records, "lost": flows.lost,
                "error": flows.error,
            });
            object.insert("flows".into(), flows);
        }
        object
    };
    steps.iter().map(of_step).collect()
}
