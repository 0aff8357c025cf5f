//! Changes in words, a line for each.

use super::{Change, Changes, Kept};
use crate::model::{Engine, Link, Program, Source, VirtualPort};
use millrace_toml_sections::Measure;
use millrace_toml_sections::quantity::show;
use std::fmt;

/// A line for each change, then one for each thing that stays.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.iter().try_for_each(|change| writeln!(f, "{change}"))?;
        self.kept.iter().try_for_each(|kept| writeln!(f, "{kept}"))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Restart { keys, .. } => write!(f, "restart the device for {}", keys.join(", ")),
            Change::SetHops(hops) => write!(f, "set the most links of a packet to {hops}"),
            Change::RemoveLink([a, b]) => write!(f, "remove link {a} - {b}"),
            Change::Stop(switch) => write!(f, "stop switch {switch}"),
            Change::DetachPort { switch, number } => write!(f, "detach port {switch}:{number}"),
            Change::RemoveSwitch { name, made_again_for } => {
                write!(f, "remove switch {name}")?;
                again(f, "made", made_again_for)
            }
            Change::RemovePort { name, opened_again_for } => {
                write!(f, "remove physical port {name}")?;
                again(f, "opened", opened_again_for)
            }
            Change::SetPortRate { port, rate } => {
                write!(f, "set the rate of physical port {port} to {}", rate_or(*rate, "not known"))
            }
            Change::SetClassify(Some(program)) => write!(f, "classify frames with {}", program.path),
            Change::SetClassify(None) => f.write_str("classify frames without a program"),
            Change::AddTenant(tenant) => write!(f, "add tenant {}", tenant.name),
            Change::SetTenant(tenant) => write!(f, "set tenant {}", tenant.name),
            Change::RemoveTenant(name) => write!(f, "remove tenant {name}"),
            Change::AddPort(port) => write!(f, "add physical port {} ({})", port.name, port.device),
            Change::SwapProgram { switch, source, engine } => {
                let engine = match engine {
                    Engine::Auto => "auto",
                    Engine::Jit => "jit",
                    Engine::Interp => "interp",
                    Engine::Rtl => "rtl",
                };
                write!(f, "swap the program of switch {switch} to {} (engine {engine})", path(source))
            }
            Change::SetEntries { switch, entries } => {
                write!(f, "set the entries of switch {switch} to those of ")?;
                if entries.is_empty() { f.write_str("no file") } else { f.write_str(&entries.join(", ")) }
            }
            Change::SetOwner { switch, tenant } => {
                let tenant = tenant.as_deref().unwrap_or("the operator alone");
                write!(f, "give switch {switch} to {tenant}")
            }
            Change::SetWorker { switch, worker: Some(worker) } => {
                write!(f, "pin switch {switch} to worker {worker}")
            }
            Change::SetWorker { switch, worker: None } => write!(f, "pin switch {switch} to no worker"),
            Change::SetThrift { switch, address: Some(address), .. } => {
                write!(f, "serve Thrift of switch {switch} at {address}")
            }
            Change::SetThrift { switch, address: None, .. } => write!(f, "end Thrift of switch {switch}"),
            Change::AttachPort { switch, port } => {
                write!(f, "attach port {switch}:{}", port.number)?;
                connected(f, port)
            }
            Change::SetPort { switch, port } => write!(f, "set port {switch}:{}", port.number),
            Change::SetQuota { switch, .. } => write!(f, "set the quota of switch {switch}"),
            Change::AddSwitch(switch) => {
                write!(f, "add switch {} with {}", switch.name, path(&switch.source))?;
                write!(f, " and {} virtual ports", switch.ports.len())
            }
            Change::AddLink(link) => {
                write!(f, "add link ")?;
                described(f, link)
            }
            Change::SetLink(link) => {
                write!(f, "set link ")?;
                described(f, link)
            }
            Change::Start(switch) => write!(f, "start switch {switch}"),
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Tenant(name) => write!(f, "keep tenant {name}"),
            Kept::Port(name) => write!(f, "keep physical port {name}"),
            Kept::Switch { name, is_swapped: false } => write!(f, "keep switch {name} with its state"),
            Kept::Switch { name, is_swapped: true } => {
                write!(f, "keep switch {name} with what both programs have of its state")
            }
            Kept::Link([a, b]) => write!(f, "keep link {a} - {b}"),
        }
    }
}

fn again(f: &mut fmt::Formatter<'_>, what: &str, keys: &[&str]) -> fmt::Result {
    match keys {
        [] => Ok(()),
        keys => write!(f, ", to be {what} again for {}", keys.join(", ")),
    }
}

fn path(source: &Source) -> &str {
    match source {
        Source::Image(path) | Source::Program(Program { path, .. }) => path,
    }
}

fn rate_or(rate: Option<u64>, none: &str) -> String {
    rate.map_or(none.to_owned(), |rate| show(rate, Measure::Rate))
}

fn connected(f: &mut fmt::Formatter<'_>, port: &VirtualPort) -> fmt::Result {
    write!(f, " to {}, match {}", port.physical.join(", "), port.claim)
}

fn described(f: &mut fmt::Formatter<'_>, link: &Link) -> fmt::Result {
    let Link { between: [a, b], delay, rate, loss, waiting } = link;
    let (delay, loss) = (show(*delay, Measure::Time), show((*loss).into(), Measure::Share));
    let rate = rate_or(*rate, "none");
    write!(f, "{a} - {b} (delay {delay}, rate {rate}, loss {loss}, {waiting} packets wait)")
}
