//! `millrace tc`: how ports of a running switch serve what leaves by them, and share its workers; and `--tc` of `millrace run`.

use crate::entries::read_config;
use crate::findings::Failure;
use crate::grpc::address;
use crate::output::{say, say_line};
use clap::{Args, Subcommand};
use millrace_dataplane::{DEFAULT_QUANTUM, Worker};
use millrace_listen::{Address, METRICS};
use millrace_observe_api::{Client, IntakeStatus, PlanQueueStatus, PlanStatus};
use millrace_printable::counted;
use millrace_traffic::words::{self, PortPlan, WordsError};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct TcCommand {
    #[command(subcommand)]
    what: What,
    /// Where the switch serves metrics
    #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9560", global = true)]
    metrics: Address,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says the plans of ports, and what their queues hold and have dropped
    Show {
        /// Of that port alone
        #[arg(value_name = "PORT")]
        port: Option<u32>,
    },
    /// Changes or adds lines of plans: a line takes the place of the line with its name
    Set {
        /// The lines, each as one argument: "class add parent 1: classid 1:1 drr quantum 3000"
        #[arg(value_name = "LINE", required = true)]
        lines: Vec<String>,
        /// The port, if the lines do not say it
        #[arg(long, value_name = "PORT")]
        port: Option<u32>,
    },
    /// Has all ports go on with the plans of a file; ports that it does not name send as it comes
    Replace {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Takes the plan of a port away: it sends as it comes
    Del {
        /// The port
        #[arg(value_name = "PORT")]
        port: u32,
    },
    /// Says whether the plans of a file can be, without a switch
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Says or sets the shares that ports have of their workers
    Ingress(IngressArgs),
}

#[derive(Debug, Args)]
struct IngressArgs {
    /// The port; without it, what was set is said
    #[arg(value_name = "PORT")]
    port: Option<u32>,
    /// Its class: ports of a higher one go first, as long as they have frames
    #[arg(long, value_name = "N", default_value_t = 0, requires = "port")]
    class: u8,
    /// Its share among the ports of its class, in bytes a round
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_QUANTUM, requires = "port")]
    quantum: u32,
    /// The port is as others again
    #[arg(long, requires = "port", conflicts_with_all = ["class", "quantum"])]
    off: bool,
}

/// `millrace tc`.
pub(crate) fn tc(args: &TcCommand) -> Result<(), Failure> {
    if let What::Check { file } = &args.what {
        let plans = read(file)?;
        match args.json {
            true => say_line(
                json!({ "ok": true, "ports": plans.iter().map(|plan| plan.port).collect::<Vec<_>>() }),
            ),
            false => plans.iter().for_each(|PortPlan { port, plan }| {
                say_line(format_args!(
                    "port {port}: {}, at most {}",
                    counted(plan.queues(), "queue"),
                    counted(plan.max_packets(), "packet")
                ));
            }),
        }
        return Ok(());
    }
    let client = Client::new(address(&args.metrics, &METRICS)?);
    let refused = |error: millrace_observe_api::ClientError| Failure::Failed(error.to_string());
    let plans = match &args.what {
        What::Ingress(ingress) => return share(&client, ingress, args.json),
        What::Show { port } => {
            let mut plans = client.plans().map_err(refused)?;
            plans.retain(|plan| port.is_none_or(|port| port == plan.port));
            plans
        }
        What::Set { lines, port } => {
            let present: String =
                client.plans().map_err(refused)?.iter().map(|plan| plan.plan.as_str()).collect();
            let mut change = port.map(|port| format!("port {port}\n")).unwrap_or_default();
            lines.iter().for_each(|line| _ = writeln!(change, "{line}"));
            let words =
                words::edited(&present, &change).map_err(|error| Failure::Failed(error.to_string()))?;
            client.set_plans(&words, false).map_err(refused)?
        }
        What::Replace { file } => {
            let text = read_config(file)?;
            // What is wrong is told with the name of the file.
            parse(file, &text)?;
            client.set_plans(&text, true).map_err(refused)?
        }
        What::Del { port } => client.remove_plan(*port).map_err(refused)?,
        What::Check { .. } => Vec::new(),
    };
    match args.json {
        true => say_line(json!({ "ok": true, "plans": plans })),
        false => plans.iter().for_each(|plan| say(text_of(plan))),
    }
    Ok(())
}

/// `millrace tc ingress`.
fn share(client: &Client, args: &IngressArgs, json: bool) -> Result<(), Failure> {
    let done = match args.port {
        None => client.intakes(),
        Some(port) if args.off => client.remove_intake(port),
        Some(port) => client.set_intake(IntakeStatus { port, class: args.class, quantum: args.quantum }),
    };
    let intakes = done.map_err(|error| Failure::Failed(error.to_string()))?;
    match json {
        true => say_line(json!({ "ok": true, "ingress": intakes })),
        false if intakes.is_empty() => say_line("all ports are alike"),
        false => intakes.iter().for_each(|IntakeStatus { port, class, quantum }| {
            say_line(format_args!("port {port}: class {class}, quantum {quantum} bytes"));
        }),
    }
    Ok(())
}

/// The plans of a file.
fn read(file: &Path) -> Result<Vec<PortPlan>, Failure> {
    let text = read_config(file)?;
    parse(file, &text)
}

fn parse(file: &Path, text: &str) -> Result<Vec<PortPlan>, Failure> {
    words::parse(text).map_err(|error| {
        let WordsError { line, column, reason } = error;
        Failure::Failed(format!("{}:{line}:{column}: {reason}", file.display()))
    })
}

/// Has ports of a worker that does not run yet serve what leaves by them as a file says.
pub(crate) fn load(worker: &mut Worker, file: &Path, text: &str) -> Result<(), Failure> {
    for PortPlan { port, plan } in parse(file, text)? {
        let done = worker.schedule(port, Some(Arc::new(plan)));
        done.map_err(|error| Failure::failed(file.display(), error))?;
    }
    Ok(())
}

/// A plan and its queues, for people.
fn text_of(plan: &PlanStatus) -> String {
    let mut text = plan.plan.clone();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let columns = ["queue", "packets", "bytes", "sent", "marked", "dropped", "delay us", "most us"];
    let rows: Vec<[String; 8]> = plan.queues.iter().map(row).collect();
    let width =
        |at: usize| rows.iter().map(|row| row[at].len()).chain([columns[at].len()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  "));
    };
    line(&columns.map(str::to_owned));
    rows.iter().for_each(|row| line(row));
    let reasons = plan.queues.iter().filter(|queue| !queue.drops.is_empty());
    for queue in reasons {
        let drops: Vec<String> = queue.drops.iter().map(|(why, count)| format!("{why} {count}")).collect();
        let _ = writeln!(text, "  {} dropped: {}", queue.handle, drops.join(", "));
    }
    text
}

fn row(queue: &PlanQueueStatus) -> [String; 8] {
    let microseconds = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    [
        queue.handle.clone(),
        queue.packets.to_string(),
        queue.bytes.to_string(),
        queue.sent.to_string(),
        queue.marked.to_string(),
        queue.drops.values().sum::<u64>().to_string(),
        microseconds(queue.delay_ns.checked_div(queue.sent).unwrap_or(0)),
        microseconds(queue.largest_delay_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_with_its_queues() {
        let queue = |handle: &str, sent, delay_ns| PlanQueueStatus {
            handle: handle.to_owned(),
            packets: 3,
            bytes: 180,
            sent,
            delay_ns,
            largest_delay_ns: 12_345,
            ..PlanQueueStatus::default()
        };
        let mut second = queue("20:", 0, 0);
        second.drops = [("early_drop".to_owned(), 4), ("queue_full".to_owned(), 5)].into();
        let plan = PlanStatus {
            port: 1,
            plan: "port 1\nqdisc add root handle 1: prio bands 2\n".to_owned(),
            queues: vec![queue("10:", 2, 3000), second],
        };
        let wanted = "\
port 1
qdisc add root handle 1: prio bands 2
  queue  packets  bytes  sent  marked  dropped  delay us  most us
  10:          3    180     2       0        0     1.500   12.345
  20:          3    180     0       0        9     0.000   12.345
  20: dropped: early_drop 4, queue_full 5
";
        assert_eq!(text_of(&plan), wanted);
    }
}
