//! What hardware is for: how long operations take there, by which the scheduler places them in cycles.
//!
//! Delays are those of an operation between two registers, with the wires to it, as `tests/rtl/calibrate` measures them. They are
//! estimates: how long a wire is shows when the design is routed.

use crate::graph::{Binary, Node, Unary, Wire};
use millrace_netlist::area::Fabric;
use millrace_netlist::{Design, passes};

/// What hardware is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// An FPGA with lookup tables of six inputs.
    #[default]
    Generic,
    /// Lattice ECP5, speed grade 8.
    Ecp5,
    /// Xilinx 7, speed grade 2.
    Xc7,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 3] = [Target::Generic, Target::Ecp5, Target::Xc7];

    /// The word for it in commands.
    pub fn name(self) -> &'static str {
        match self {
            Target::Generic => "generic",
            Target::Ecp5 => "ecp5",
            Target::Xc7 => "xc7",
        }
    }

    /// What it is.
    pub fn about(self) -> &'static str {
        match self {
            Target::Generic => "any FPGA",
            Target::Ecp5 => "Lattice ECP5",
            Target::Xc7 => "Xilinx 7",
        }
    }

    /// What it is made of.
    pub fn fabric(self) -> Fabric {
        match self {
            Target::Ecp5 => Fabric::Lut4,
            Target::Generic | Target::Xc7 => Fabric::Lut6,
        }
    }

    /// Whether its tools make shift registers in lookup tables of chains of registers. Those of an ECP5 have none.
    fn has_shift_registers(self) -> bool {
        self != Target::Ecp5
    }

    /// A finished design, as the fabric has it.
    pub fn suit(self, design: &mut Design) {
        // What is simulated here is as it was written: a bit that nothing reads is one that a test may look at.
        if self == Target::Generic {
            return;
        }
        // Bits that nothing reads need no memory, and tools look for those that never change a cycle of a pipeline at a time.
        passes::optimize(design);
        if !self.has_shift_registers() {
            passes::delay_lines(design);
        }
        if self.fabric() == Fabric::Lut4 {
            passes::borrows(design);
        }
    }

    pub(crate) fn delays(self) -> Delays {
        match self {
            Target::Generic => Delays {
                margin: 500,
                far: 0,
                inputs: 6,
                level: 450,
                chain: 450,
                less: 450,
                carry: 15,
                choice: 450,
                spread: 0,
                product: 1800,
                product_bit: 30,
            },
            Target::Ecp5 => Delays {
                margin: 1000,
                far: 800,
                inputs: 4,
                level: 800,
                chain: 1100,
                less: 1100,
                carry: 23,
                choice: 500,
                spread: 100,
                product: 2600,
                product_bit: 125,
            },
            Target::Xc7 => Delays {
                margin: 600,
                far: 0,
                inputs: 6,
                level: 500,
                chain: 600,
                less: 600,
                carry: 15,
                choice: 500,
                spread: 40,
                product: 3500,
                product_bit: 45,
            },
        }
    }
}

/// The delays of a target, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// After the edge of the clock until values of registers are there, and before the next when they must be.
    margin: u32,
    /// By how much the first wire of a cycle is longer where the design is large, and registers are far from the logic: 2.2 ns were
    /// measured in the router's ingress on an ECP5.
    far: u32,
    /// Inputs of a lookup table.
    inputs: u32,
    /// A lookup table and the wire to it.
    level: u32,
    /// Into a carry chain and out of it, for sums.
    chain: u32,
    /// The same where the carry itself is the result.
    less: u32,
    /// A bit of a carry chain.
    carry: u32,
    /// A choice of one bit, and what each doubling of its width adds: one wire leads to all bits.
    choice: u32,
    spread: u32,
    /// A product, and each bit of it.
    product: u32,
    product_bit: u32,
}

impl Delays {
    /// What a cycle takes besides its operations.
    pub(crate) fn overhead(&self) -> u32 {
        self.margin + self.far
    }

    /// What an operation takes; `of` is the width of an operand.
    pub(crate) fn of(&self, node: &Node, width: u32, of: impl Fn(Wire) -> u32) -> u32 {
        match node {
            Node::Const(_) | Node::Frame(_) | Node::Input(_) | Node::Answer(..) => 0,
            Node::Concat(..) | Node::Slice(..) | Node::Unary(Unary::Not, _) => 0,
            Node::Unary(Unary::Any | Unary::Parity, a) => self.level * self.levels(of(*a)),
            Node::Mux(..) => self.choose(width),
            Node::Binary(op, a, b) => match op {
                Binary::And | Binary::Or | Binary::Xor => self.level,
                Binary::Add | Binary::Sub => self.chain + self.carry * of(*a),
                Binary::Lt | Binary::LtSigned => self.less + self.carry * of(*a),
                Binary::Eq => self.level * self.levels(2 * of(*a)),
                Binary::Mul => self.product + self.product_bit * width,
                // A level of choices for each bit of the amount that counts; two fit in a lookup table.
                Binary::Shl | Binary::Shr | Binary::ShrSigned => {
                    let bits = of(*b).min(width.max(2).ilog2() + 1);
                    self.choose(width) * bits.div_ceil(2).max(1)
                }
            },
        }
    }

    /// Lookup tables one after the other that take so many bits.
    fn levels(&self, bits: u32) -> u32 {
        let (mut levels, mut reach) = (1, u64::from(self.inputs));
        while reach < u64::from(bits) {
            levels += 1;
            reach *= u64::from(self.inputs);
        }
        levels
    }

    fn choose(&self, width: u32) -> u32 {
        self.choice + self.spread * width.max(1).ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    fn operands() -> (Wire, Wire) {
        (Wire::new(0), Wire::new(1))
    }

    #[test]
    fn wiring_is_free_and_wide_sums_take_longer() {
        let (a, b) = operands();
        for target in Target::ALL {
            let delays = target.delays();
            assert_eq!(delays.of(&Node::Concat(a, b), 64, |_| 32), 0);
            let sum = |width| delays.of(&Node::Binary(Binary::Add, a, b), width, |_| width);
            assert!(sum(16) < sum(64));
        }
    }

    /// What `tests/rtl/calibrate` measured of operations between registers by Yosys 0.23 and nextpnr-ecp5 0.11: nothing that is
    /// estimated takes 500 ps longer, or less than half the time.
    #[test]
    fn estimates_for_the_ecp5_are_near_what_was_measured() {
        let delays = Target::Ecp5.delays();
        let (a, b) = operands();
        let both = |op| Node::Binary(op, a, b);
        let mux = Node::Mux(Wire::new(2), a, b);
        let (any, parity) = (Node::Unary(Unary::Any, a), Node::Unary(Unary::Parity, a));
        let (add, lt, eq) = (both(Binary::Add), both(Binary::Lt), both(Binary::Eq));
        let measured: [(&Node, u32, u32); 23] = [
            (&add, 16, 1542),
            (&add, 32, 1886),
            (&add, 64, 2574),
            (&add, 128, 3950),
            // As the borrow of a difference ([`Target::suit`]).
            (&lt, 16, 1963),
            (&lt, 32, 2289),
            (&lt, 64, 3030),
            (&lt, 128, 4314),
            (&eq, 8, 1333),
            (&eq, 16, 1908),
            (&eq, 32, 2985),
            (&eq, 48, 3693),
            (&eq, 104, 4241),
            (&eq, 128, 4064),
            (&any, 16, 1439),
            (&any, 48, 2110),
            (&any, 128, 4133),
            (&parity, 64, 2110),
            (&parity, 128, 2985),
            (&mux, 1, 768),
            (&mux, 32, 1510),
            (&mux, 128, 1927),
            (&mux, 512, 2296),
        ];
        for (node, width, took) in measured {
            let result = if matches!(node, Node::Mux(..)) { width } else { 1 };
            let told = delays.margin + delays.of(node, result, |_| width);
            assert!(
                told + 500 >= took && told <= 2 * took,
                "{node:?} of {width} bits: {told}, measured {took}"
            );
        }
    }
}
