//! What Yosys makes of designs, in numbers, next to estimates of area.

use super::tools;
use millrace_netlist::Design;
use millrace_netlist::area::{Area, Fabric};

/// What Yosys counts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counted {
    luts: u64,
    ffs: u64,
    memory_luts: u64,
    blocks: u64,
}

/// Synthesises a design.
pub(crate) fn synthesised(design: &Design, name: &str, fabric: Fabric) -> Counted {
    let command = match fabric {
        Fabric::Lut4 => "synth_ecp5",
        Fabric::Lut6 => "synth_xilinx -flatten -noiopad -noclkbuf",
    };
    let script = format!("{command} -top TOP; check -assert; tee -o /dev/stdout stat");
    counted(&tools::yosys(design, name, &script).unwrap_or_else(|said| panic!("{said}")))
}

fn counted(said: &str) -> Counted {
    let mut counted = Counted::default();
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let (Some(cell), Some(count), None) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        match cell {
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" => counted.luts += count,
            "CCU2C" => counted.luts += 2 * count,
            "FDRE" | "FDSE" | "TRELLIS_FF" => counted.ffs += count,
            "RAM32M" | "RAM64M" | "TRELLIS_DPR16X4" => counted.memory_luts += 4 * count,
            "RAM32X1D" | "RAM64X1D" => counted.memory_luts += 2 * count,
            "SRL16E" | "SRLC32E" => counted.memory_luts += count,
            "RAMB18E1" | "DP16KD" => counted.blocks += count,
            "RAMB36E1" => counted.blocks += 2 * count,
            _ => {}
        }
    }
    counted
}

impl Counted {
    /// Whether an estimate has these numbers, or is by a fifth different, or by `few`.
    pub(crate) fn is_near(&self, told: &Area, few: u64) -> bool {
        let pairs = [
            (told.luts + told.memory_luts, self.luts + self.memory_luts),
            (told.ffs, self.ffs),
            (told.blocks, self.blocks),
        ];
        pairs.into_iter().all(|(told, found)| told.abs_diff(found) <= few.max(found / 5))
    }
}
