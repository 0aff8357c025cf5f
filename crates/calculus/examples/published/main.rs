//! Networks of others next to their published bounds, and the time that bounds take.
//!
//! ```text
//! cargo run --release -p millrace-calculus --example published -- wopanets AFDX.xml [AFDX_res.xml]
//! cargo run --release -p millrace-calculus --example published -- saihu demo.json [demo_data.json]
//! cargo run --release -p millrace-calculus --example published -- dnc DNC_func_tests/java/org/networkcalculus/dnc/func_tests
//! cargo run --release -p millrace-calculus --example published -- speed
//! ```
//!
//! The files are those of checkouts of their projects; docs/dev/network-bounds.md says which, and has the figures. What is read is as
//! much of the formats as these files use: `millrace network import` reads them for users.

mod dnc;
mod saihu;
mod speed;
mod wopanets;

use std::process::ExitCode;
use std::time::Instant;

use millrace_calculus::{Network, Outcome, RouteId};

fn main() -> ExitCode {
    let words = std::env::args().skip(1).collect::<Vec<_>>();
    let words = words.iter().map(String::as_str).collect::<Vec<_>>();
    let done = match words[..] {
        ["wopanets", network] => wopanets::compare(network, None),
        ["wopanets", network, results] => wopanets::compare(network, Some(results)),
        ["saihu", network] => saihu::compare(network, None),
        ["saihu", network, results] => saihu::compare(network, Some(results)),
        ["dnc", folder] => dnc::compare(folder),
        ["speed"] => {
            speed::measure();
            Ok(())
        }
        _ => Err(
            "usage: published wopanets NETWORK.xml [RESULTS.xml] | saihu NETWORK.json [RESULTS.json] | dnc FOLDER | speed"
                .to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One line about an analysis: how many routes have a bound, mean and largest in microseconds, and the time it took.
fn row(network: &Network, analyse: impl FnOnce() -> Outcome) -> Outcome {
    let begin = Instant::now();
    let outcome = analyse();
    let took = begin.elapsed();
    let delays = outcome.paths.iter().flatten().map(|bound| bound.delay.us()).collect::<Vec<_>>();
    let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
    let largest = delays.iter().copied().fold(0.0, f64::max);
    let name = outcome.method.to_string();
    println!(
        "{name:24} {:5} routes  mean {mean:9.3} us  largest {largest:9.3} us  in {took:?}",
        delays.len()
    );
    let refusal = network.routes().zip(&outcome.paths).find_map(|(_, path)| path.as_ref().err());
    if let Some(refusal) = refusal {
        println!("{:24} no bound for others: {}", "", refusal.describe(network));
    }
    outcome
}

/// The name of a route for a table.
fn name(network: &Network, route: RouteId) -> (String, String) {
    let flow = &network.flows()[route.flow.0];
    (flow.name.clone(), flow.routes[route.route].destination.clone())
}
