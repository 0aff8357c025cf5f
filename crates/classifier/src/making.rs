//! From rules to tables: checks each rule, numbers ports and scopes, refuses what is there twice.

use crate::classifier::{Flood, Hit, Port, Scope, Tables, key};
use crate::exact::Exact;
use crate::header::VID;
use crate::patterns::Pattern;
use crate::rule::{
    MAX_BYTES_RULES, MAX_PORTS, MAX_RULES, MAX_SWITCHES, MAX_VID, Match, Rule, RuleError, TagAction,
};
use std::collections::{HashMap, HashSet};

// Ports, their scopes, those of VLANs, and the one without rules have numbers of 16 bits.
const _: () = assert!(1 + MAX_PORTS + MAX_RULES <= 1 << 16);

/// The tables of rules.
pub(crate) fn tables(rules: &[Rule]) -> Result<Tables, RuleError> {
    if rules.len() > MAX_RULES {
        return Err(RuleError::TooManyRules(rules.len()));
    }
    let mut making = Making::new(rules);
    let mut seen = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        check(index, rule)?;
        if let Match::Bytes(_) = rule.matches {
            making.add_pattern(index)?;
        } else if let Some(first) = seen.insert((rule.physical, &rule.matches), index) {
            return Err(RuleError::Duplicate { first: rules[first].named(first), second: rule.named(index) });
        } else {
            making.add(index)?;
        }
    }
    Ok(making.finish())
}

/// What is wrong with a rule alone, its bytes aside.
fn check(index: usize, rule: &Rule) -> Result<(), RuleError> {
    let named = || rule.named(index);
    if usize::from(rule.target.switch) >= MAX_SWITCHES {
        return Err(RuleError::Switch(named()));
    }
    let (vids, address) = match rule.matches {
        Match::Whole | Match::Bytes(_) | Match::Id(_) => ([None, None], None),
        Match::Vlan(vid) => ([Some(vid), None], None),
        Match::QinQ { outer, inner } => ([Some(outer), Some(inner)], None),
        Match::VlanMac { vid, mac } => ([Some(vid), None], Some(mac)),
        Match::Mac(mac) => ([None, None], Some(mac)),
    };
    let rewritten = if let TagAction::Rewrite(vid) = rule.tag { Some(vid) } else { None };
    if let Some(vid) = vids.into_iter().chain([rewritten]).flatten().find(|vid| !(1..=MAX_VID).contains(vid))
    {
        return Err(RuleError::Vid(named(), vid));
    }
    match address {
        Some(mac) if mac == [0; 6] || mac[0] & 1 == 1 => Err(RuleError::Address(named())),
        _ => Ok(()),
    }
}

/// Tables that grow rule by rule.
struct Making<'r> {
    rules: &'r [Rule],
    numbers: Vec<u16>,
    ports: Vec<Port>,
    /// The patterns of each port, with the indices of their rules.
    patterns: Vec<Vec<(Pattern, usize)>>,
    /// How many rules each port has.
    counts: Vec<usize>,
    vids: Vec<[u16; VID as usize + 1]>,
    scopes: Vec<Scope>,
    floods: Vec<(u16, Hit)>,
    stations: Vec<(u64, Hit)>,
    inners: Vec<(u64, Hit)>,
    ids: Vec<(u64, Hit)>,
}

impl<'r> Making<'r> {
    fn new(rules: &'r [Rule]) -> Making<'r> {
        Making {
            rules,
            numbers: Vec::new(),
            ports: vec![Port::default()],
            patterns: vec![Vec::new()],
            counts: vec![0],
            vids: vec![[0; VID as usize + 1]],
            scopes: vec![Scope::default()],
            floods: Vec::new(),
            stations: Vec::new(),
            inners: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Adds a rule that compares bytes.
    fn add_pattern(&mut self, index: usize) -> Result<(), RuleError> {
        let rule = &self.rules[index];
        let Match::Bytes(bytes) = &rule.matches else { return Ok(()) };
        let pattern = Pattern::new(bytes).ok_or_else(|| RuleError::Bytes(rule.named(index)))?;
        let port = self.port(index)?;
        self.ports[port].content = true;
        let patterns = &mut self.patterns[port];
        if patterns.len() == MAX_BYTES_RULES {
            return Err(RuleError::TooManyBytesRules(rule.named(index)));
        }
        if let Some((first, at)) = patterns.iter().find(|(first, _)| first.covers(&pattern)) {
            let (same, first, second) = (*first == pattern, self.rules[*at].named(*at), rule.named(index));
            return Err(match same {
                true => RuleError::Duplicate { first, second },
                false => RuleError::Unreachable { first, second },
            });
        }
        patterns.push((pattern, index));
        Ok(())
    }

    /// Adds any other rule.
    fn add(&mut self, index: usize) -> Result<(), RuleError> {
        let (rule, port) = (&self.rules[index], self.port(index)?);
        let hit = rule.hit();
        let whole = self.ports[port].scope;
        // The scope in which the rule takes part in sharing.
        let shares = match rule.matches {
            Match::Whole => {
                self.scopes[usize::from(whole)].rest = Some(hit);
                whole
            }
            Match::Mac(mac) => {
                self.add_station(whole, mac, hit);
                whole
            }
            Match::Vlan(vid) => {
                let scope = self.vlan(port, vid);
                self.scopes[usize::from(scope)].rest = Some(hit);
                scope
            }
            Match::VlanMac { vid, mac } => {
                let scope = self.vlan(port, vid);
                self.add_station(scope, mac, hit);
                scope
            }
            Match::QinQ { outer, inner } => {
                let scope = self.vlan(port, outer);
                self.scopes[usize::from(scope)].inners = true;
                self.inners.push((key(scope, u64::from(inner)), hit));
                return Ok(());
            }
            Match::Id(id) => {
                self.ports[port].content = true;
                self.ports[port].ids = true;
                self.ids.push((key(whole, u64::from(id)), hit));
                return Ok(());
            }
            Match::Bytes(_) => return Ok(()),
        };
        if rule.flood {
            self.floods.push((shares, hit));
        }
        Ok(())
    }

    fn add_station(&mut self, scope: u16, mac: [u8; 6], hit: Hit) {
        let [a, b, c, d, e, f] = mac;
        self.scopes[usize::from(scope)].stations = true;
        self.stations.push((key(scope, u64::from_be_bytes([0, 0, a, b, c, d, e, f])), hit));
    }

    /// The index of a rule's physical port, which it gets if it has none.
    fn port(&mut self, index: usize) -> Result<usize, RuleError> {
        let physical = usize::from(self.rules[index].physical);
        if self.numbers.len() <= physical {
            self.numbers.resize(physical + 1, 0);
        }
        if self.numbers[physical] == 0 {
            if self.ports.len() > MAX_PORTS {
                return Err(RuleError::TooManyPorts(self.rules[index].named(index)));
            }
            self.numbers[physical] = self.ports.len() as u16;
            let scope = self.scope();
            self.ports.push(Port { scope, ..Port::default() });
            self.patterns.push(Vec::new());
            self.counts.push(0);
        }
        let port = usize::from(self.numbers[physical]);
        self.counts[port] += 1;
        Ok(port)
    }

    /// The scope of a VLAN of a port, which it gets if it has none.
    fn vlan(&mut self, port: usize, vid: u16) -> u16 {
        if self.ports[port].vids == 0 {
            self.ports[port].vids = self.vids.len() as u16;
            self.vids.push([0; VID as usize + 1]);
        }
        let (table, at) = (usize::from(self.ports[port].vids), usize::from(vid));
        if self.vids[table][at] == 0 {
            self.vids[table][at] = self.scope();
        }
        self.vids[table][at]
    }

    /// Another scope. Each port has one, and a rule makes at most one more.
    fn scope(&mut self) -> u16 {
        self.scopes.push(Scope::default());
        (self.scopes.len() - 1) as u16
    }

    fn finish(mut self) -> Tables {
        // In the order of the rules; of several with one target, the first.
        let mut seen = HashSet::new();
        self.floods.retain(|(scope, hit)| seen.insert((*scope, hit.target())));
        self.floods.sort_by_key(|(scope, _)| *scope);
        for (at, (scope, _)) in (0..).zip(&self.floods) {
            let Flood { from, to } = &mut self.scopes[usize::from(*scope)].flood;
            if *from == *to {
                *from = at;
            }
            *to = at + 1;
        }
        for (at, port) in self.ports.iter_mut().enumerate() {
            let patterns = self.patterns[at].drain(..);
            port.patterns = patterns.map(|(pattern, index)| (pattern, self.rules[index].hit())).collect();
            let of_port = self.scopes[usize::from(port.scope)];
            port.whole = of_port.rest.filter(|_| self.counts[at] == 1);
            if of_port.stations || port.vids == 0 {
                continue;
            }
            for number in self.vids[usize::from(port.vids)] {
                let scope = &mut self.scopes[usize::from(number)];
                scope.all = scope.rest.filter(|_| !scope.stations && !scope.inners);
            }
        }
        Tables {
            numbers: self.numbers.into(),
            ports: self.ports.into(),
            vids: self.vids.into(),
            scopes: self.scopes.into(),
            floods: self.floods.into_iter().map(|(_, hit)| hit).collect(),
            stations: Exact::new(&self.stations),
            inners: Exact::new(&self.inners),
            ids: Exact::new(&self.ids),
        }
    }
}
