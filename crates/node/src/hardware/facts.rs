//! Which facts of a frame anything looks at after a block: liveness, backwards over the connections of a node.
//!
//! A device keeps what goes with a frame in memory for each of its slots and ports, so facts that nothing looks at again are left out
//! there: those of a frame that a program sends to a MAC are none.

use super::modules::FACTS;
use crate::interface::FIELDS;
use crate::model::{End, Kind, NodeFile};
use millrace_netlist::{ModuleBuilder, NodeId};

/// Facts, a bit for each of [`FIELDS`], the first one lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live(u8);

impl Live {
    const CLASS: Live = Live(0b0010);
    const OCTETS: Live = Live(0b0100);
    const TARGETS: Live = Live(0b1000);
    const ALL: Live = Live(0b1111);

    fn with(self, other: Live) -> Live {
        Live(self.0 | other.0)
    }

    fn without(self, other: Live) -> Live {
        Live(self.0 & !other.0)
    }

    /// Those of a frame that enters a block, by those that are live at any of its outputs.
    fn before(self, kind: &Kind) -> Live {
        match kind {
            // A frame on a link has none.
            Kind::Mac(_) => Live::default(),
            Kind::Queue(_) | Kind::Scheduler(_) => self,
            Kind::OctetSelector(_) => self.without(Live::OCTETS),
            Kind::Tcam(_) => self.without(Live::TARGETS).without(Live::CLASS).with(Live::OCTETS),
            Kind::Demultiplexer(_) => self.with(Live::TARGETS),
            Kind::P4(_) => self.without(Live::CLASS),
            // The processor reads its buffer.
            Kind::Manager(_) => Live::ALL,
        }
    }

    /// Those that are live after each block of a node, where `is_part` says which blocks are in one design with that block; others may look
    /// at all of them.
    pub(super) fn after_blocks(node: &NodeFile, is_part: impl Fn(usize) -> bool) -> Vec<Live> {
        let device = |block: usize| node.functions[node.blocks[block].function].device;
        let mut after = vec![Live::default(); node.blocks.len()];
        // Sets only grow, each by one of four facts: that ends.
        loop {
            let mut next = after.clone();
            for connection in &node.connections {
                let (End { block: from, .. }, End { block: to, .. }) = (connection.from, connection.to);
                let of = match is_part(to) && device(from) == device(to) {
                    true => after[to].before(&node.blocks[to].kind),
                    false => Live::ALL,
                };
                next[from] = next[from].with(of);
            }
            if next == after {
                return after;
            }
            after = next;
        }
    }

    /// The fields of it that a program does not say itself, each with its lowest bit in `tuser` and its width, the highest first.
    fn kept(self) -> impl Iterator<Item = (u32, u32)> {
        let mut above = FACTS;
        let fields = FIELDS.iter().zip(0..).map(move |((_, width, _), number)| {
            above -= width;
            (Live(1 << number), above, *width)
        });
        fields
            .filter(move |(of, ..)| self.without(Live::CLASS).0 & of.0 != 0)
            .map(|(_, low, width)| (low, width))
    }

    /// The bits of those.
    pub(super) fn width(self) -> u32 {
        self.kept().map(|(_, width)| width).sum()
    }

    /// Those of all facts of a frame.
    pub(super) fn pack(self, m: &mut ModuleBuilder, facts: NodeId) -> Vec<NodeId> {
        self.kept().map(|(low, width)| m.slice(facts, low, width)).collect()
    }

    /// All facts: those from where [`Live::pack`] has put them, the class, and 0.
    pub(super) fn unpack(self, m: &mut ModuleBuilder, packed: Option<NodeId>, class: NodeId) -> NodeId {
        let (mut facts, mut above, mut left) = (Vec::new(), FACTS, self.width());
        for ((_, width, _), number) in FIELDS.iter().zip(0..) {
            above -= width;
            let is_kept = self.kept().any(|(low, _)| low == above);
            facts.push(match packed {
                _ if Live(1 << number) == Live::CLASS => class,
                Some(packed) if is_kept => {
                    left -= width;
                    m.slice(packed, left, *width)
                }
                _ => m.number(*width, 0),
            });
        }
        m.concat(&facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(connections: &[(&str, &str)], part: impl Fn(&str) -> bool) -> Vec<(String, Live)> {
        let mut text = String::from(
            "[[device]]\nname = \"d\"\n[[service]]\nname = \"s\"\n[[function]]\nname = \"f\"\nservice = \"s\"\ndevice = \"d\"\n",
        );
        for (name, rest) in [
            ("mac", "kind = \"mac\""),
            ("program", "kind = \"p4\"\nprogram = \"p.p4\""),
            ("select", "kind = \"octet_selector\"\noctets = [1]"),
            ("tcam", "kind = \"tcam\""),
            ("spread", "kind = \"demultiplexer\""),
            ("queue", "kind = \"queue\""),
            ("manager", "kind = \"manager\""),
        ] {
            // Each block of a file has a connection.
            let port = format!("{name}.");
            if !connections.iter().any(|(from, to)| from.starts_with(&port) || to.starts_with(&port)) {
                continue;
            }
            text += &format!("[[block]]\nname = \"{name}\"\nfunction = \"f\"\n{rest}\n");
        }
        for (from, to) in connections {
            text += &format!("[[connection]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
        }
        let node = NodeFile::parse("node.toml", &text).unwrap_or_else(|why| panic!("{}", why.render(false)));
        let live = Live::after_blocks(&node, |block| part(&node.blocks[block].name));
        node.blocks.iter().map(|block| block.name.clone()).zip(live).collect()
    }

    fn of(all: &[(String, Live)], name: &str) -> Live {
        all.iter().find(|(of, _)| of == name).unwrap().1
    }

    #[test]
    fn a_frame_for_a_mac_needs_no_facts() {
        let all = after(
            &[("mac.rx", "program.in0"), ("program.out0", "queue.in"), ("queue.out", "mac.tx")],
            |_| true,
        );
        assert_eq!(of(&all, "program"), Live::default());
        assert_eq!(of(&all, "program").width(), 0);
        // Software may look at everything.
        let all = after(
            &[("mac.rx", "program.in0"), ("program.out0", "queue.in"), ("queue.out", "mac.tx")],
            |name| name != "queue",
        );
        assert_eq!(of(&all, "program"), Live::ALL);
        assert_eq!(of(&all, "program").width(), 176);
    }

    #[test]
    fn what_is_said_again_need_not_be_kept() {
        let connections = [
            ("program.out0", "tcam.in"),
            ("program.out1", "select.in"),
            ("select.out", "tcam.in"),
            ("tcam.out", "spread.in"),
            ("spread.out0", "mac.tx"),
        ];
        let all = after(&connections, |_| true);
        assert_eq!(of(&all, "tcam"), Live::TARGETS);
        assert_eq!(of(&all, "select"), Live::OCTETS);
        assert_eq!(of(&all, "program"), Live::OCTETS);
        // A manager is asked by the processor.
        let all = after(&[&connections[..], &[("spread.manager", "manager.in")]].concat(), |_| true);
        assert_eq!(of(&all, "program"), Live::OCTETS.with(Live(1)));
    }
}
