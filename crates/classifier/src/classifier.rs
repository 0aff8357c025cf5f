//! Which rule a frame belongs to.

use crate::exact::Exact;
use crate::header::{Header, VID, with_header};
use crate::patterns::{Pattern, Start};
use crate::rule::{Rule, RuleError, TagAction, Target};

/// All rules of a device, ready for frames. It is made once and never changes: other rules are another classifier.
#[derive(Debug)]
pub struct Classifier {
    pub(crate) tables: Tables,
}

/// The rules of one physical port: found once for a batch of its frames.
#[derive(Clone, Copy, Debug)]
pub struct PortRules<'a> {
    tables: &'a Tables,
    port: &'a Port,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To one port of one switch.
    One(Hit),
    /// To two or more, each of them once ([`Classifier::hits`]).
    All(Flood),
    /// Nowhere: the caller drops it and counts that.
    None,
}

/// Several ports that a frame goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flood {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// A port of a virtual switch, and what becomes of the frame's tags before it gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The number of the switch.
    pub switch: u16,
    /// The number of the port in that switch.
    pub port: u32,
    /// What becomes of the tags.
    pub tag: TagAction,
}

/// What rules become. Index 0 of `ports`, `vids` and `scopes` is the one without rules.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The index of a physical port in `ports`.
    pub(crate) numbers: Box<[u16]>,
    pub(crate) ports: Box<[Port]>,
    /// For ports with rules of VLANs: the index in `scopes` of each id.
    pub(crate) vids: Box<[[u16; VID as usize + 1]]>,
    pub(crate) scopes: Box<[Scope]>,
    /// Who gets frames to groups, by scope.
    pub(crate) floods: Box<[Hit]>,
    /// By [`key`] of scope and address.
    pub(crate) stations: Exact<Hit>,
    /// By [`key`] of scope and id of the inner tag.
    pub(crate) inners: Exact<Hit>,
    /// By [`key`] of scope and result of the operator's program.
    pub(crate) ids: Exact<Hit>,
}

/// A physical port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Port {
    /// The index of its table in `vids`.
    pub(crate) vids: u16,
    /// The index of the scope of the whole port.
    pub(crate) scope: u16,
    /// Whether it has rules that compare bytes or have ids.
    pub(crate) content: bool,
    /// Some rules compare the result of the operator's program.
    pub(crate) ids: bool,
    /// Rules that compare bytes, as they are written.
    pub(crate) patterns: Box<[(Pattern, Hit)]>,
    /// The hit of its only rule, if that is for the whole port.
    pub(crate) whole: Option<Hit>,
}

/// The frames of one VLAN of a port, or all frames of a port: what switches share by address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    /// Where all frames go that are looked up in this scope, if that is one place: no rule by address or inner tag could
    /// take one of them. For most VLANs it is `rest`.
    pub(crate) all: Option<Hit>,
    /// Where frames go that nothing else takes.
    pub(crate) rest: Option<Hit>,
    /// Whether there are rules by address in it.
    pub(crate) stations: bool,
    /// Whether there are rules by inner tag in it.
    pub(crate) inners: bool,
    /// Its part of `floods`.
    pub(crate) flood: Flood,
}

/// The key of something in a scope: an address, an inner id, the result of a program.
#[inline]
pub(crate) fn key(scope: u16, what: u64) -> u64 {
    what << 16 | u64::from(scope)
}

impl Classifier {
    /// Makes a classifier of rules.
    ///
    /// # Errors
    /// [`RuleError`] for the first rule that is wrong, or that matches the same as one before it.
    pub fn new(rules: &[Rule]) -> Result<Classifier, RuleError> {
        Ok(Classifier { tables: crate::making::tables(rules)? })
    }

    /// Where a frame of a physical port goes. `id` is the result of the operator's classifying program for it, if there is
    /// one.
    #[inline]
    pub fn classify(&self, physical: u16, frame: &[u8], id: Option<u32>) -> Verdict {
        self.port(physical).classify(frame, id)
    }

    /// The rules of a physical port. Whoever has a batch of its frames finds them once.
    #[inline]
    pub fn port(&self, physical: u16) -> PortRules<'_> {
        let number = self.tables.numbers.get(usize::from(physical)).copied().unwrap_or(0);
        PortRules { tables: &self.tables, port: &self.tables.ports[usize::from(number)] }
    }

    /// The ports that a frame goes to which this classifier sends to several; none of another's.
    pub fn hits(&self, flood: Flood) -> &[Hit] {
        self.tables.floods.get(flood.from as usize..flood.to as usize).unwrap_or(&[])
    }

    /// Where all frames of a physical port go, when its only rule is for the whole port: nobody has to look at them.
    #[inline]
    pub fn whole(&self, physical: u16) -> Option<Hit> {
        self.port(physical).whole()
    }
}

impl PortRules<'_> {
    /// Where a frame goes if its outer tag alone says that, or that it has none: so it is for most VLANs. None: [`PortRules::classify`] says it.
    #[inline]
    pub fn by_vlan(self, frame: &[u8]) -> Option<Hit> {
        let header = Header::of(frame).filter(|_| !self.port.content)?;
        self.tables.vlan(self.port, header).1.all
    }

    /// As [`Classifier::classify`] for a frame of this port.
    pub fn classify(self, frame: &[u8], id: Option<u32>) -> Verdict {
        if self.port.content
            && let Some(hit) = self.tables.by_content(self.port, frame, id)
        {
            return Verdict::One(hit);
        }
        with_header(frame, |header| self.tables.by_header(self.port, header))
    }

    /// Whether some rule compares the result of the operator's program, which is not needed else.
    #[inline]
    pub fn compares_ids(self) -> bool {
        self.port.ids
    }

    /// As [`Classifier::whole`].
    #[inline]
    pub fn whole(self) -> Option<Hit> {
        self.port.whole
    }
}

impl Tables {
    /// Rules that compare bytes as they are written, then those with ids.
    #[inline]
    fn by_content(&self, port: &Port, frame: &[u8], id: Option<u32>) -> Option<Hit> {
        if !port.patterns.is_empty()
            && let Some(hit) = by_bytes(&port.patterns, frame)
        {
            return Some(hit);
        }
        self.ids.find(key(port.scope, u64::from(id?)))
    }

    /// The frames of its VLAN that a frame belongs to.
    #[inline]
    fn vlan(&self, port: &Port, header: Header) -> (u16, &Scope) {
        let number = self.vids[usize::from(port.vids)][usize::from(header.outer())];
        (number, &self.scopes[usize::from(number)])
    }

    /// Addresses and tags.
    #[inline]
    fn by_header(&self, port: &Port, header: Header) -> Verdict {
        let (number, vlan) = self.vlan(port, header);
        if let Some(hit) = vlan.all {
            return Verdict::One(hit);
        }
        if vlan.stations
            && let Some(hit) = self.stations.find(key(number, header.destination()))
        {
            return Verdict::One(hit);
        }
        self.by_other(port, vlan, number, header)
    }

    /// What an address in a VLAN does not say.
    fn by_other(&self, port: &Port, vlan: &Scope, number: u16, header: Header) -> Verdict {
        let whole = &self.scopes[usize::from(port.scope)];
        if whole.stations
            && let Some(hit) = self.stations.find(key(port.scope, header.destination()))
        {
            return Verdict::One(hit);
        }
        // No rule has the inner id 0, and a scope of no VLAN has no rules by inner tag.
        if vlan.inners
            && let Some(hit) = self.inners.find(key(number, u64::from(header.inner())))
        {
            return Verdict::One(hit);
        }
        let verdict = self.rest(vlan, header).or_else(|| self.rest(whole, header));
        verdict.unwrap_or(Verdict::None)
    }

    /// Where a frame of a scope goes that no rule with an address or an inner tag takes; none when it is not for this scope
    /// to say.
    #[inline]
    fn rest(&self, scope: &Scope, header: Header) -> Option<Verdict> {
        if !scope.stations {
            return scope.rest.map(Verdict::One);
        }
        Some(match scope.rest {
            _ if header.to_group() => self.flood(scope),
            Some(hit) => Verdict::One(hit),
            None => Verdict::None,
        })
    }

    fn flood(&self, scope: &Scope) -> Verdict {
        let Flood { from, to } = scope.flood;
        match &self.floods[from as usize..to as usize] {
            [] => Verdict::None,
            [hit] => Verdict::One(*hit),
            _ => Verdict::All(scope.flood),
        }
    }
}

/// The first pattern that matches.
#[inline(never)]
fn by_bytes(patterns: &[(Pattern, Hit)], frame: &[u8]) -> Option<Hit> {
    let start = Start::of(frame);
    patterns.iter().find(|(pattern, _)| pattern.matches(&start)).map(|(_, hit)| *hit)
}

impl Hit {
    /// The port without what becomes of tags.
    pub fn target(self) -> Target {
        Target { switch: self.switch, port: self.port }
    }
}

impl Rule {
    pub(crate) fn hit(&self) -> Hit {
        Hit { switch: self.target.switch, port: self.target.port, tag: self.tag }
    }
}
