//! Commands about multicast and clones.

use super::execute::{Executor, Reply};
use millrace_commands::Refusal;
use millrace_commands::{Command, Line, Word};
use millrace_dataplane::{NodeHandle, PortId, ReplicationError, Session};
use std::fmt::Write;
use std::ops::Range;

impl<'a> Executor<'_, 'a> {
    pub(super) fn replication_command(&mut self, line: &Line<'_, 'a>) -> Result<Reply, Refusal> {
        let engine = self.switch.replication_mut();
        match &line.command {
            Command::GroupCreate { group } => done(group.1.at(), engine.create_group(group.0)),
            Command::GroupDestroy { group } => done(group.1.at(), engine.destroy_group(group.0)),
            Command::NodeCreate { rid, ports, lags } => {
                let whole = |error: ReplicationError| Refusal::new(line.at.clone(), error.to_string());
                let (ports, lags) = (port_numbers(ports)?, lag_numbers(lags)?);
                let made = engine.create_node(*rid, ports).map_err(whole)?;
                if let Err(error) = engine.set_node_lags(made, lags) {
                    engine.destroy_node(made).map_err(whole)?;
                    return Err(whole(error));
                }
                Ok(Reply::Made { what: "node", handle: made.0 })
            }
            Command::NodeUpdate { node, ports, lags } => {
                let handle = NodeHandle(node.0);
                let (ports, lags) = (port_numbers(ports)?, lag_numbers(lags)?);
                done(node.1.at(), engine.update_node_whole(handle, ports, lags))
            }
            Command::LagMembership { lag, ports } => {
                let ports = port_numbers(ports)?;
                let id = u16::try_from(lag.0).unwrap_or(u16::MAX);
                done(lag.1.at(), engine.set_lag(id, ports))
            }
            Command::NodeDestroy { node } => done(node.1.at(), engine.destroy_node(NodeHandle(node.0))),
            Command::NodeAssociate { group, node } => {
                done(group.1.start..node.1.at().end, engine.associate(group.0, NodeHandle(node.0)))
            }
            Command::NodeDissociate { group, node } => {
                done(group.1.start..node.1.at().end, engine.dissociate(group.0, NodeHandle(node.0)))
            }
            Command::MirroringAdd { session, port, truncate } => {
                let kept = Session { truncate: *truncate, ..Session::to_port(*port) };
                done(line.at.clone(), engine.set_session(session.0, kept))
            }
            Command::MirroringAddGroup { session, group } => {
                done(line.at.clone(), engine.set_session(session.0, Session::to_group(*group)))
            }
            Command::MirroringDelete { session } => done(session.1.at(), engine.delete_session(session.0)),
            Command::MirroringGet { session } => match engine.session(session.0) {
                Some(kept) => Ok(Reply::Text(session_text(kept))),
                None => done(session.1.at(), Err(ReplicationError::NoSession(session.0))),
            },
            Command::MulticastDump => Ok(Reply::Text(self.multicast_text())),
            // Every other command has a handler of its own.
            _ => Ok(Reply::Done),
        }
    }

    fn multicast_text(&self) -> String {
        let engine = self.switch.replication();
        let mut text = String::from("==========\nMC ENTRIES\n");
        for (id, group) in engine.groups() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "**********\nmgrp({id})");
            for handle in &group.nodes {
                let Some(node) = engine.node(*handle) else { continue };
                let (rid, ports, lags) = (node.rid, list(&node.ports), list(&node.lags));
                let _ =
                    writeln!(text, "  -> (L1h={}, rid={rid}) -> (ports=[{ports}], lags=[{lags}])", handle.0);
            }
            for copy in &group.copies {
                let _ = writeln!(text, "  -> (rid={}) -> (ports=[{}], lags=[])", copy.rid, copy.port);
            }
        }
        text.push_str("==========\nLAGS\n");
        for (id, ports) in engine.lags() {
            let _ = writeln!(text, "lag({id}) -> ports=[{}]", list(ports));
        }
        text + "==========\n"
    }
}

fn done(at: Range<usize>, result: Result<(), ReplicationError>) -> Result<Reply, Refusal> {
    result.map_err(|error| Refusal::new(at, error.to_string()))?;
    Ok(Reply::Done)
}

/// As [`port_numbers`] for link aggregation groups.
fn lag_numbers(words: &[Word<'_>]) -> Result<Vec<u16>, Refusal> {
    let numbers = port_numbers(words)?;
    Ok(numbers.into_iter().map(|lag| u16::try_from(lag).unwrap_or(u16::MAX)).collect())
}

/// The parser has read the ports as numbers already.
fn port_numbers(words: &[Word<'_>]) -> Result<Vec<PortId>, Refusal> {
    let mut ports: Vec<PortId> = Vec::with_capacity(words.len());
    for word in words {
        let port =
            millrace_commands::value::plain(word.text).ok().and_then(|port| PortId::try_from(port).ok());
        let port = port.ok_or_else(|| Refusal::new(word.at(), format!("`{}` is not a port", word.text)))?;
        if ports.contains(&port) {
            return Err(Refusal::new(word.at(), format!("port {port} is listed twice")));
        }
        ports.push(port);
    }
    Ok(ports)
}

fn session_text(session: &Session) -> String {
    let group = session.group.map_or("None".to_owned(), |group| group.to_string());
    let port = match session.copies.as_slice() {
        [] => "None".to_owned(),
        copies => list(&copies.iter().map(|copy| copy.port).collect::<Vec<_>>()),
    };
    format!("MirroringSessionConfig(mgid={group}, port={port})\n")
}

fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
