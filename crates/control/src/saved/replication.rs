//! Multicast groups and clone sessions as commands.

use super::Saved;
use millrace_dataplane::{Replication, Session};
use std::fmt::Display;

impl Saved {
    pub(super) fn add_replication(&mut self, engine: &Replication) {
        for (lag, ports) in engine.lags() {
            self.line(format_args!("mc_set_lag_membership {lag}{}", words(ports)));
        }
        // Handles that are free are taken for as long as others get theirs.
        let end = engine.nodes().last().map_or(0, |(handle, _)| handle.0 + 1);
        let mut free = Vec::new();
        let mut nodes = engine.nodes().peekable();
        for number in 0..end {
            match nodes.next_if(|(handle, _)| handle.0 == number) {
                Some((_, node)) => {
                    let lags = if node.lags.is_empty() { "" } else { " |" };
                    let (ports, of_lags) = (words(&node.ports), words(&node.lags));
                    self.line(format_args!("mc_node_create {}{ports}{lags}{of_lags}", node.rid));
                }
                None => {
                    free.push(number);
                    self.line(format_args!("mc_node_create 0"));
                }
            }
        }
        let mut next = end;
        for (id, group) in engine.groups() {
            self.line(format_args!("mc_mgrp_create {id}"));
            for handle in &group.nodes {
                self.line(format_args!("mc_node_associate {id} {}", handle.0));
            }
            // Copies that P4Runtime made become nodes.
            for copy in &group.copies {
                self.line(format_args!("mc_node_create {} {}", copy.rid, copy.port));
                self.line(format_args!("mc_node_associate {id} {next}"));
                next += 1;
            }
        }
        for number in free {
            self.line(format_args!("mc_node_destroy {number}"));
        }
        for (id, session) in engine.sessions() {
            self.add_session(id, session);
        }
    }

    /// A command gives a session one port or one group.
    fn add_session(&mut self, id: u32, session: &Session) {
        let Session { copies, group, truncate, class_of_service } = session;
        match (copies.as_slice(), group, truncate) {
            ([copy], None, None) if copy.rid == 0 && *class_of_service == 0 => {
                self.line(format_args!("mirroring_add {id} {}", copy.port));
            }
            ([copy], None, Some(bytes)) if copy.rid == 0 && *class_of_service == 0 => {
                self.line(format_args!("mirroring_add_truncate {id} {} {bytes}", copy.port));
            }
            ([], Some(group), None) if *class_of_service == 0 => {
                self.line(format_args!("mirroring_add_mc {id} {group}"));
            }
            _ => self.missing(format_args!("the clone session {id}, which is not of one port or one group")),
        }
    }
}

/// Numbers, each after a blank.
fn words<T: Display>(numbers: &[T]) -> String {
    numbers.iter().map(|number| format!(" {number}")).collect()
}
