//! The chains of ports: `--input` and `--output`.

use crate::captures::{self, OpenPort};
use crate::cli::RunArgs;
use crate::findings::Failure;
use crate::privileges::Opener;
use clap::Args;
use millrace_drivers::{Captures, PortSpec};
use millrace_inputs::{Chain, InputError, Inputs, PortChain, StepStatus};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// What packets pass before and after the program.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plugins")]
pub(crate) struct InputArgs {
    /// What PORT receives passes that chain before the program: 0:filter "udp port 53" else account rest.json | sample 1/100
    #[arg(long, value_name = "PORT:CHAIN")]
    pub(crate) input: Vec<String>,
    /// What PORT sends passes that chain after the program
    #[arg(long, value_name = "PORT:CHAIN")]
    pub(crate) output: Vec<String>,
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

/// Opens the ports of a run, such that they can be captured, with their chains around them.
pub(crate) fn open_ports(
    args: &RunArgs,
    opener: &Opener,
) -> Result<(Inputs, Arc<Captures>, Vec<OpenPort>), Failure> {
    let mut inputs = open(&args.inputs, &args.ports, opener)?;
    let (captures, ports) = captures::open(&args.captures, &args.workers, &args.ports, opener)?;
    let mut wrapped = Vec::with_capacity(ports.len());
    for (port, pairs) in ports {
        let pairs = pairs.into_iter().map(|pair| inputs.wrap(port, pair));
        wrapped.push((port, pairs.collect::<Result<Vec<_>, InputError>>()?));
    }
    Ok((inputs, captures, wrapped))
}

/// The chains of a switch with these ports.
fn open(args: &InputArgs, ports: &[PortSpec], opener: &Opener) -> Result<Inputs, Failure> {
    let mut chains = Vec::new();
    for (texts, is_output) in [(&args.input, false), (&args.output, true)] {
        for text in texts {
            let chain = PortChain::parse(text, is_output);
            chains.push(chain.map_err(|error| Failure::Usage(error.to_string()))?);
        }
    }
    if let Some(chain) =
        chains.iter().find(|chain| !ports.iter().any(|spec| u32::from(spec.port) == chain.port))
    {
        return Err(Failure::Usage(format!("a chain is of port {}, which is not given by `-i`", chain.port)));
    }
    let mut inputs = opener.open(move || Inputs::open(chains))??;
    inputs.start()?;
    Ok(inputs)
}

/// What the steps counted, as text.
pub(crate) fn text(steps: &[StepStatus]) -> String {
    let mut text = String::new();
    for StepStatus { place, packets, passed, accounted, dropped, flows } in steps {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "port {} {} {} {}: {packets} packets, {passed} passed, {accounted} accounted, {dropped} dropped",
            place.port,
            place.direction(),
            place.step,
            place.plugin
        );
        if let Some(flows) = flows {
            let _ = write!(text, "; {} records in {}", flows.records, flows.file);
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
