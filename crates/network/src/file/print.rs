//! A model as the text of a file, which is read as the same model.

use crate::model::*;
use millrace_toml_sections::{Measure, Out, toml_string};
use std::fmt;

/// The text, every default written.
pub(super) fn text(network: &Network, crc: Option<u32>) -> String {
    Out::text_of(|out| write(network, crc, out))
}

fn write(network: &Network, crc: Option<u32>, out: &mut Out<'_>) -> fmt::Result {
    out.header("[network]")?;
    out.text("name", &network.name)?;
    out.some("part-number", &network.part_number)?;
    if let Some(crc) = crc {
        out.text("crc", &format!("{crc:#010x}"))?;
    }
    out.plain("overhead", network.overhead)?;
    out.text("bags", word_of(&Bags::ALL, &network.bags))?;
    for end_system in &network.end_systems {
        out.header("[[end-system]]")?;
        out.text("name", &end_system.name)?;
        out.plain("id", end_system.id)?;
        time("latency", end_system.latency, out)?;
        time("least-latency", end_system.least_latency, out)?;
        time("receive-latency", end_system.receive_latency, out)?;
        time("technological-jitter", end_system.technological_jitter, out)?;
        time("max-jitter", end_system.max_jitter, out)?;
    }
    for switch in &network.switches {
        out.header("[[switch]]")?;
        out.text("name", &switch.name)?;
        out.text("network", switch.network.name())?;
        time("latency", switch.latency, out)?;
        time("least-latency", switch.least_latency, out)?;
        out.text("scheduler", word_of(&Scheduler::ALL, &switch.scheduler))?;
        out.plain("priorities", switch.priorities)?;
        out.quantity("buffer", switch.buffer, Measure::Size)?;
        out.quantity("max-delay", switch.max_delay, Measure::Time)?;
        out.some("end-system", &switch.end_system)?;
    }
    for link in &network.links {
        out.header("[[link]]")?;
        let ends = link.between.each_ref().map(End::to_string);
        out.texts("between", ends.iter().map(String::as_str))?;
        out.text("network", link.network.name())?;
        out.quantity("rate", Some(link.rate), Measure::Rate)?;
        out.quantity("service-rate", Some(link.service_rate), Measure::Rate)?;
        out.quantity("latency", link.latency, Measure::Time)?;
        time("propagation", link.propagation, out)?;
        out.plain("one-way", link.one_way)?;
    }
    for account in &network.accounts {
        out.header("[[account]]")?;
        out.text("name", &account.name)?;
        time("bag", account.bag, out)?;
        out.plain("lmax", account.lmax)?;
        time("jitter", account.jitter, out)?;
        out.text("policing", word_of(&Policing::ALL, &account.policing))?;
    }
    network.vls.iter().try_for_each(|vl| write_vl(vl, out))
}

fn write_vl(vl: &Vl, out: &mut Out<'_>) -> fmt::Result {
    out.header("[[vl]]")?;
    out.plain("id", vl.id)?;
    out.text("name", &vl.name)?;
    out.text("source", &vl.source)?;
    for route in &vl.routes {
        let key = if route.network == Side::A { "route-a" } else { "route-b" };
        let path = |path: &Vec<String>| {
            let nodes: Vec<String> = path.iter().map(|node| toml_string(node)).collect();
            format!("[{}]", nodes.join(", "))
        };
        let paths: Vec<String> = route.paths.iter().map(path).collect();
        out.plain(key, format_args!("[{}]", paths.join(", ")))?;
    }
    time("bag", vl.bag, out)?;
    out.plain("lmin", vl.lmin)?;
    out.plain("lmax", vl.lmax)?;
    out.quantity("jitter", vl.jitter, Measure::Time)?;
    time("source-jitter", vl.source_jitter, out)?;
    out.plain("priority", vl.priority)?;
    out.text("policing", word_of(&Policing::ALL, &vl.policing))?;
    out.some("shared-account", &vl.shared_account)?;
    time("skew-max", vl.skew_max, out)?;
    out.quantity("deadline", vl.deadline, Measure::Time)?;
    for sub_vl in &vl.sub_vls {
        out.header("[[vl.sub-vl]]")?;
        out.text("name", &sub_vl.name)?;
        out.plain("queue", sub_vl.queue)?;
    }
    Ok(())
}

fn time(key: &str, time: u64, out: &mut Out<'_>) -> fmt::Result {
    out.quantity(key, Some(time), Measure::Time)
}
