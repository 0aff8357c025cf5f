//! Commands about multicast groups and clone sessions.

use crate::execute::Shell;
use crate::trouble::Trouble;
use crate::words::{handle, number};
use millrace_commands::value;
use millrace_commands::{Command, Word};
use millrace_thrift_api::MirroringSession;
use serde_json::Value;
use std::io::Write;

/// Above it a map of ports would be too long.
const MAX_PORT: u64 = 65535;

impl Shell {
    pub(crate) fn replication_command(
        &mut self,
        command: &Command<'_, '_>,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        match command {
            Command::GroupCreate { group } => {
                writeln!(out, "Creating multicast group {}", group.0)?;
                self.client.bm_mc_mgrp_create(handle(*group))?;
            }
            Command::GroupDestroy { group } => {
                writeln!(out, "Destroying multicast group {}", group.0)?;
                self.client.bm_mc_mgrp_destroy(handle(*group))?;
            }
            Command::NodeCreate { rid, ports, lags } => {
                let (ports, lags) = (port_map(ports)?, port_map(lags)?);
                writeln!(out, "Creating node with rid {rid} , port map {ports} and lag map {lags}")?;
                let made = self.client.bm_mc_node_create((*rid).into(), ports, lags)?;
                writeln!(out, "node was created with handle {made}")?;
            }
            Command::NodeUpdate { node, ports, lags } => {
                let (ports, lags) = (port_map(ports)?, port_map(lags)?);
                writeln!(out, "Updating node {} with port map {ports} and lag map {lags}", node.0)?;
                self.client.bm_mc_node_update(handle(*node), ports, lags)?;
            }
            Command::NodeDestroy { node } => {
                writeln!(out, "Destroying node {}", node.0)?;
                self.client.bm_mc_node_destroy(handle(*node))?;
            }
            Command::NodeAssociate { group, node } => {
                writeln!(out, "Associating node {} to multicast group {}", node.0, group.0)?;
                self.client.bm_mc_node_associate(handle(*group), handle(*node))?;
            }
            Command::NodeDissociate { group, node } => {
                writeln!(out, "Dissociating node {} from multicast group {}", node.0, group.0)?;
                self.client.bm_mc_node_dissociate(handle(*group), handle(*node))?;
            }
            Command::LagMembership { lag, ports } => {
                let ports = port_map(ports)?;
                writeln!(out, "Setting lag membership: {} <- {ports}", lag.0)?;
                let lag = i16::try_from(lag.0).map_err(|_| Trouble::wrong("Bad format for lag index"))?;
                self.client.bm_mc_set_lag_membership(lag, ports)?;
            }
            Command::MulticastDump => {
                let text = self.client.bm_mc_get_entries()?;
                let described = serde_json::from_str(&text)
                    .map_err(|_| Trouble::Refused("Exception when retrieving MC entries".into()))?;
                show_groups(&described, out)?;
            }
            Command::MirroringAdd { session, port, truncate } => {
                if truncate.is_some() {
                    return Err(Trouble::wrong("sessions that cut packets cannot be made over Thrift"));
                }
                let config = MirroringSession { port: Some(number("port", (*port).into())?), mgid: None };
                self.client.mirroring_session_add(handle(*session), config)?;
            }
            Command::MirroringAddGroup { session, group } => {
                let config = MirroringSession { port: None, mgid: Some(number("group", (*group).into())?) };
                self.client.mirroring_session_add(handle(*session), config)?;
            }
            Command::MirroringDelete { session } => self.client.mirroring_session_delete(handle(*session))?,
            Command::MirroringGet { session } => {
                let config = self.client.mirroring_session_get(handle(*session))?;
                let shown =
                    |number: Option<i32>| number.map_or("None".to_owned(), |number| number.to_string());
                writeln!(
                    out,
                    "MirroringSessionConfig(port={}, mgid={})",
                    shown(config.port),
                    shown(config.mgid)
                )?;
            }
            // Every other command has a handler of its own.
            _ => {}
        }
        Ok(())
    }
}

/// Ports as a string of digits, 1 for each that is named, port 0 last.
fn port_map(words: &[Word<'_>]) -> Result<String, Trouble> {
    let mut digits: Vec<u8> = Vec::new();
    for word in words {
        let port = value::plain(word.text).ok().filter(|port| *port <= MAX_PORT);
        let port = port
            .ok_or_else(|| Trouble::wrong(format!("'{}' is not a valid port number", word.text)))?
            as usize;
        if digits.len() <= port {
            digits.resize(port + 1, b'0');
        }
        if digits[port] == b'1' {
            return Err(Trouble::wrong(format!("Found duplicate port number '{port}'")));
        }
        digits[port] = b'1';
    }
    Ok(digits.iter().rev().map(|digit| char::from(*digit)).collect())
}

fn show_groups(described: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    let all = |key: &str| described[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |key: &str, handle: &Value| all(key).iter().find(|found| found["handle"] == *handle);
    let list = |numbers: &Value| {
        let numbers = numbers.as_array().map(Vec::as_slice).unwrap_or_default();
        numbers.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
    };
    writeln!(out, "==========\nMC ENTRIES")?;
    for group in all("mgrps") {
        writeln!(out, "**********\nmgrp({})", group["id"])?;
        for handle in group["l1_handles"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let Some(node) = of("l1_handles", handle) else { continue };
            let Some(ports) = of("l2_handles", &node["l2_handle"]) else { continue };
            let (ports, lags) = (list(&ports["ports"]), list(&ports["lags"]));
            writeln!(out, "  -> (L1h={handle}, rid={}) -> (ports=[{ports}], lags=[{lags}])", node["rid"])?;
        }
    }
    writeln!(out, "==========\nLAGS")?;
    match described["lags"].as_array() {
        Some(lags) => {
            for lag in lags {
                writeln!(out, "lag({}) -> ports=[{}]", lag["id"], list(&lag["ports"]))?;
            }
        }
        None => writeln!(out, "None for this PRE type")?,
    }
    writeln!(out, "==========")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Result<String, String> {
        let words: Vec<Word<'_>> = text.split_whitespace().map(|text| Word { text, start: 0 }).collect();
        port_map(&words).map_err(|trouble| trouble.to_string())
    }

    #[test]
    fn ports_are_digits_from_the_right() {
        assert_eq!(map("5 1 2"), Ok("100110".into()));
        assert_eq!(map(""), Ok(String::new()));
        assert_eq!(map("3 3"), Err("Error: Found duplicate port number '3'".into()));
        assert!(map("65536").is_err());
    }
}
