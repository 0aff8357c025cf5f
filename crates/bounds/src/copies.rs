//! How many copies of a packet there may be for a set of ports: the most bits that are set in any value which the program gives the
//! set ([`Intrinsic::EgressPorts`]).
//!
//! The order of assignments is left aside: a slot holds 0 or the value of one of its assignments, so no set has more ports than the
//! largest of these. A number of bits is bounded through every operation that can only lose bits or put them side by side; of others,
//! sums for example, it is the width.
//!
//! Example: an AFDX switch reads the set from the entry of a virtual link. If its entries name at most four ports each, no frame
//! makes more than four copies, although the set has room for 64.

use crate::knowledge::Knowledge;
use millrace_midend::copies::MAX_COPIES;
use millrace_midend::type_width;
use millrace_pipeline::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most copies that compiled code makes of a packet in one run.
pub(crate) fn most_copies(program: &Program, knowledge: &Knowledge) -> u32 {
    let Some(ports) = program.intrinsics.get(Intrinsic::EgressPorts) else { return 0 };
    let mut ones = Ones::new(program, knowledge);
    ones.of_slot(ports).min(MAX_COPIES)
}

/// Most slots that an assignment is followed through.
const MAX_CHAIN: usize = 64;

/// The most bits that are set in values.
struct Ones<'a> {
    program: &'a Program,
    /// What assignments give a slot; none: it is also written by something that may give anything.
    assigned: FxHashMap<SlotId, Option<Vec<&'a Expr>>>,
    /// What entries and defaults give parameters of actions.
    data: FxHashMap<SlotId, u32>,
    /// What the switch writes too.
    told: FxHashSet<SlotId>,
    known: FxHashMap<SlotId, u32>,
    /// Slots that are being looked at: of one that depends on itself nothing is known.
    open: FxHashSet<SlotId>,
}

impl<'a> Ones<'a> {
    fn new(program: &'a Program, knowledge: &Knowledge) -> Ones<'a> {
        let mut assigned: FxHashMap<SlotId, Option<Vec<&Expr>>> = FxHashMap::default();
        for block in program.bodies.values().flat_map(|body| body.blocks.values()) {
            for inst in &block.insts {
                if let Inst::Assign { dst, value } = inst {
                    if let Some(values) = assigned.entry(*dst).or_insert_with(|| Some(Vec::new())) {
                        values.push(value);
                    }
                } else if let Some(dst) = inst.dst() {
                    assigned.insert(dst, None);
                }
            }
            if let Terminator::Apply { hit, action, .. } = &block.term {
                assigned.extend(hit.iter().chain(action).map(|slot| (*slot, None)));
            }
        }
        let mut data: FxHashMap<SlotId, u32> = FxHashMap::default();
        for (id, table) in &program.tables {
            let color = table.direct_meter.as_ref().and_then(|meter| meter.at_hit);
            assigned.extend(color.map(|slot| (slot, None)));
            for (number, listed) in table.actions.iter().enumerate() {
                let ones = &knowledge.tables[id].ones[number];
                for (param, ones) in program.actions[listed.action].params.iter().zip(ones) {
                    let most = data.entry(*param).or_default();
                    *most = (*most).max(*ones);
                }
            }
        }
        let told = Intrinsic::ALL.iter().filter(|role| **role != Intrinsic::EgressPorts);
        let told = told.filter_map(|role| program.intrinsics.get(*role)).collect();
        Ones { program, assigned, data, told, known: FxHashMap::default(), open: FxHashSet::default() }
    }

    fn of_slot(&mut self, slot: SlotId) -> u32 {
        if let Some(known) = self.known.get(&slot) {
            return *known;
        }
        let described = &self.program.slots[slot];
        let width = type_width(described.ty);
        // Fields come from packets.
        let from_outside = matches!(described.home, Home::Header { .. }) || self.told.contains(&slot);
        if from_outside || self.open.len() >= MAX_CHAIN || !self.open.insert(slot) {
            return width;
        }
        let data = self.data.get(&slot).copied().unwrap_or(0);
        let ones = match self.assigned.get(&slot).cloned() {
            Some(None) => width,
            Some(Some(values)) => values.into_iter().map(|value| self.of(value)).max().unwrap_or(0),
            None => 0,
        };
        self.open.remove(&slot);
        let most = ones.max(data).min(width);
        // What was found while another slot was open may be too much for that one's sake, never too little.
        self.known.insert(slot, most);
        most
    }

    fn of(&mut self, expr: &Expr) -> u32 {
        let width = match expr.ty(self.program) {
            Type::Bool => 1,
            ty => type_width(ty),
        };
        let most = match expr {
            Expr::Const(bits) => (0..bits.width()).filter(|at| bits.bit(*at)).count() as u32,
            Expr::Bool(truth) => u32::from(*truth),
            Expr::Read(slot) => self.of_slot(*slot),
            Expr::Slice(operand, ..) | Expr::ZeroExtend(operand, _) => self.of(operand),
            Expr::Concat(high, low) | Expr::Binary(BinaryOp::Or | BinaryOp::Xor, high, low) => {
                self.of(high).saturating_add(self.of(low))
            }
            Expr::Binary(BinaryOp::And, left, right) => self.of(left).min(self.of(right)),
            // One shifted by a number is one port; what is shifted out is lost.
            Expr::Binary(BinaryOp::Shl | BinaryOp::Shr, operand, _) => self.of(operand),
            Expr::Mux(_, then, els) => self.of(then).max(self.of(els)),
            _ => width,
        };
        most.min(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::entity::PrimaryMap;

    /// The most copies of a program that makes its set by one assignment.
    fn most_of(value: &str) -> u32 {
        let text = format!(
            "program p
errors (NoError)
intrinsic egress_ports = ports
intrinsic ingress_port = port
ingress (c)
header h: t {{
    x: bit<8>
}}
metadata ports: bit<64>
metadata port: bit<32>
metadata a: bit<64>
metadata b: bit<64>
body control c {{
block0:
    a = 64w5
    b = a
    ports = {value}
    branch valid(h), block1, block2
block1:
    a = 64w0x70
    goto block2
block2:
    end
}}
"
        );
        let program = millrace_pipeline::text::parse(&text).unwrap();
        millrace_pipeline::verify(&program).unwrap();
        most_copies(&program, &Knowledge { tables: PrimaryMap::new(), is_shared: false, memory: 0 })
    }

    #[test]
    fn a_set_has_at_most_the_ports_of_the_largest_assignment() {
        assert_eq!(most_of("64w0xf0"), 4);
        assert_eq!(most_of("a"), 3, "5 or 0x70");
        assert_eq!(most_of("b"), 3, "what a has been");
        assert_eq!(most_of("or(a, 64w1)"), 4);
        assert_eq!(most_of("and(a, 64w0x3)"), 2);
        assert_eq!(most_of("shl(64w1, h.x)"), 1, "one port of any number");
    }

    #[test]
    fn a_set_of_which_nothing_is_known_has_all_ports() {
        assert_eq!(most_of("sub(a, 64w1)"), MAX_COPIES);
        assert_eq!(most_of("add(a, 64w1)"), MAX_COPIES);
        assert_eq!(most_of("zext(port, 64)"), MAX_COPIES, "the switch writes it");
        assert_eq!(most_of("zext(h.x, 64)"), 8);
        assert_eq!(most_of("or(ports, 64w1)"), MAX_COPIES, "it may have been anything");
    }
}
