//! A model as the text of a file, which is read as the same model.

use crate::model::*;
use millrace_toml_sections::{Measure, Out};
use std::fmt;

impl DeviceFile {
    /// The text of a file that says the same, with every default written.
    pub fn to_toml(&self) -> String {
        Out::text_of(|out| self.write(out))
    }

    fn write(&self, out: &mut Out<'_>) -> fmt::Result {
        device(&self.device, out)?;
        for tenant in &self.tenants {
            out.header("[[tenant]]")?;
            out.text("name", &tenant.name)?;
            out.some("certificate", &tenant.certificate)?;
            out.some("token-file", &tenant.token_file)?;
            let name = |role: &Role| Role::ALL.iter().find(|(known, _)| known == role).map(|(_, name)| *name);
            out.texts("roles", tenant.roles.iter().filter_map(name))?;
            out.some("folder", &tenant.folder)?;
        }
        for port in &self.ports {
            out.header("[[port]]")?;
            out.text("name", &port.name)?;
            out.text("device", &port.device)?;
            out.plain("queues", port.queues)?;
            out.quantity("rate", port.rate, Measure::Rate)?;
        }
        for switch in &self.switches {
            write_switch(switch, out)?;
        }
        for link in &self.links {
            out.header("[[link]]")?;
            let ends = link.between.each_ref().map(End::to_string);
            out.texts("between", ends.iter().map(String::as_str))?;
            out.quantity("delay", Some(link.delay), Measure::Time)?;
            out.quantity("rate", link.rate, Measure::Rate)?;
            out.quantity("loss", Some(link.loss.into()), Measure::Share)?;
            out.plain("waiting", link.waiting)?;
        }
        if let Some(program) = &self.classify {
            out.header("[classify]")?;
            write_program(program, out)?;
        }
        Ok(())
    }
}

fn device(device: &Device, out: &mut Out<'_>) -> fmt::Result {
    out.header("[device]")?;
    out.text("name", &device.name)?;
    match device.processors.is_empty() {
        true => out.plain("workers", device.workers)?,
        false => out.plain("processors", format_args!("{:?}", device.processors))?,
    }
    out.text("socket", &device.socket)?;
    out.text("socket-mode", &format!("{:04o}", device.socket_mode))?;
    out.some("socket-group", &device.socket_group)?;
    out.some("grpc", &device.grpc)?;
    out.some("grpc-cert", &device.grpc_cert)?;
    out.some("grpc-key", &device.grpc_key)?;
    out.some("grpc-client-ca", &device.grpc_client_ca)?;
    out.plain("grpc-allow-plaintext", device.grpc_allow_plaintext)?;
    out.plain("grpc-ctl", device.grpc_ctl)?;
    out.some("uploads", &device.uploads)?;
    out.some("operator-certificate", &device.operator_certificate)?;
    out.some("operator-token-file", &device.operator_token_file)?;
    out.some("http", &device.http)?;
    out.plain("http-allow-remote", device.http_allow_remote)?;
    out.list("http-hosts", &device.http_hosts)?;
    out.some("captures", &device.captures)?;
    out.some("audit", &device.audit)?;
    out.plain("hops", device.hops)?;
    out.plain("packets", device.packets)
}

fn write_switch(switch: &Switch, out: &mut Out<'_>) -> fmt::Result {
    out.header("[[switch]]")?;
    out.text("name", &switch.name)?;
    match &switch.source {
        Source::Image(path) => out.text("image", path)?,
        Source::Program(program) => write_program(program, out)?,
    }
    out.list("entries", &switch.entries)?;
    out.some("tenant", &switch.tenant)?;
    out.plain("device-id", switch.device_id)?;
    out.some("thrift", &switch.thrift)?;
    out.some("thrift-as", &switch.thrift_as)?;
    out.plain("thrift-allow-remote", switch.thrift_allow_remote)?;
    let engine = match switch.engine {
        Engine::Auto => "auto",
        Engine::Jit => "jit",
        Engine::Interp => "interp",
        Engine::Rtl => "rtl",
    };
    out.text("engine", engine)?;
    out.optional("worker", switch.worker)?;
    out.text("state", if switch.state == State::Running { "running" } else { "stopped" })?;
    out.optional("cpu-port", switch.cpu_port)?;
    for port in &switch.ports {
        write_port(port, out)?;
    }
    out.header("[switch.quota]")?;
    let quota = &switch.quota;
    out.quantity("time", Some(quota.time.into()), Measure::Share)?;
    out.quantity("largest-time", Some(quota.largest_time.into()), Measure::Share)?;
    out.optional("packets-per-second", quota.packets_per_second)?;
    out.quantity("bits-per-second", quota.bits_per_second, Measure::Rate)?;
    out.optional("entries", quota.entries)?;
    out.quantity("memory", quota.memory, Measure::Size)?;
    out.optional("packet-buffers", quota.packet_buffers)?;
    out.optional("queue-places", quota.queue_places)?;
    out.optional("clones-per-second", quota.clones_per_second)?;
    out.optional("recirculations-per-second", quota.recirculations_per_second)?;
    out.optional("copies-per-second", quota.copies_per_second)?;
    out.optional("digests-per-second", quota.digests_per_second)?;
    out.optional("log-lines-per-second", quota.log_lines_per_second)?;
    out.optional("requests-per-second", quota.requests_per_second)
}

fn write_program(program: &Program, out: &mut Out<'_>) -> fmt::Result {
    out.text("program", &program.path)?;
    out.text("std", if program.std == Std::P4_16 { "p4-16" } else { "p4-14" })?;
    out.list("include", &program.include)?;
    out.list("define", &program.define)
}

fn write_port(port: &VirtualPort, out: &mut Out<'_>) -> fmt::Result {
    out.header("[[switch.port]]")?;
    out.plain("number", port.number)?;
    out.texts("physical", port.physical.iter().map(String::as_str))?;
    out.plain("match", &port.claim)?;
    match port.tag {
        Tag::Keep => out.text("tag", "keep")?,
        Tag::Strip => out.text("tag", "strip")?,
        Tag::Rewrite(vlan) => out.plain("tag", format_args!("{{ rewrite = {vlan} }}"))?,
    }
    out.plain("broadcast", port.broadcast)?;
    out.quantity("guaranteed", Some(port.guaranteed), Measure::Rate)?;
    out.quantity("largest", port.largest, Measure::Rate)
}

/// As the value of `match`.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match &self.frames {
            Frames::All => {}
            Frames::Header { vlan, inner, mac } => {
                parts.extend(vlan.map(|vlan| format!("vlan = {vlan}")));
                parts.extend(inner.map(|inner| format!("inner = {inner}")));
                parts.extend(mac.map(|mac| format!("mac = \"{mac}\"")));
            }
            Frames::Bytes(pieces) => {
                let digits =
                    |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let piece = |Bytes { at, value, mask }: &Bytes| {
                    format!("{{ at = {at}, value = \"0x{}\", mask = \"0x{}\" }}", digits(value), digits(mask))
                };
                let pieces: Vec<String> = pieces.iter().map(piece).collect();
                parts.push(format!("bytes = [{}]", pieces.join(", ")));
            }
            Frames::Id(id) => parts.push(format!("id = {id}")),
        }
        if self.priority != 0 {
            parts.push(format!("priority = {}", self.priority));
        }
        match parts.is_empty() {
            true => f.write_str("{}"),
            false => write!(f, "{{ {} }}", parts.join(", ")),
        }
    }
}
