//! What hardware takes of an FPGA, part by part, as an estimate.

use crate::device::Device;
use crate::emit::object;
use crate::hardware::{Hardware, Part, Stage};
use crate::objects::ObjectUnit;
use millrace_netlist::area::{Area, Fabric, Owner, TooLarge, estimate};
use millrace_netlist::{Design, passes, verify};
use std::collections::BTreeMap;
use std::fmt;

/// What the parts of a stage or of a device take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AreaReport {
    /// By the name of the part, in order.
    pub parts: Vec<(String, Area)>,
    /// Why nothing is known of them.
    pub too_large: Option<TooLarge>,
}

impl AreaReport {
    /// What a design takes, by the part that an instance, or a part of the program in it, belongs to. Instances have the names of all from
    /// the top on, with dots between them.
    pub fn of(design: &Design, fabric: Fabric, part: impl Fn(&Owner) -> String) -> AreaReport {
        let mut design = design.clone();
        if verify(&design).is_err() {
            return AreaReport::default();
        }
        passes::optimize(&mut design);
        let mut parts: BTreeMap<String, Area> = BTreeMap::new();
        let areas = match estimate(&design, fabric) {
            Ok(areas) => areas,
            Err(why) => return AreaReport { too_large: Some(why), ..AreaReport::default() },
        };
        for (owner, area) in areas {
            *parts.entry(part(&owner)).or_default() += area;
        }
        parts.retain(|_, area| *area != Area::default());
        AreaReport { parts: parts.into_iter().collect(), too_large: None }
    }

    /// All parts together.
    pub fn total(&self) -> Area {
        let mut total = Area::default();
        self.parts.iter().for_each(|(_, area)| total += *area);
        total
    }
}

impl fmt::Display for AreaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = self.too_large {
            return writeln!(f, "  no estimate of its area: {why}");
        }
        if self.parts.is_empty() {
            return Ok(());
        }
        let longest = self.parts.iter().map(|(part, _)| part.len()).max().unwrap_or(0).max(5);
        writeln!(
            f,
            "  {:longest$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "area, by estimate", "LUTs", "FFs", "memory", "its bits", "blocks", "products"
        )?;
        let total = [("total".to_owned(), self.total())];
        for (part, area) in self.parts.iter().chain(&total) {
            let Area { luts, ffs, memory_luts, memory_bits, blocks, multipliers } = area;
            writeln!(
                f,
                "  {part:longest$} {luts:>9} {ffs:>9} {memory_luts:>9} {memory_bits:>9} {blocks:>9} {multipliers:>9}"
            )?;
        }
        Ok(())
    }
}

/// The part of a stage that an instance in it belongs to, or in its pipeline a part of the program.
fn part_of_stage(hardware: &Hardware, stage: &Stage, path: &str, of_program: &str) -> String {
    let first = path.split('.').next().unwrap_or_default();
    let accesses = &stage.dataflow.accesses;
    let lookup = first.strip_prefix("lookup").and_then(|number| accesses.get(number.parse::<usize>().ok()?));
    if let Some(access) = lookup {
        return format!("table {}", object(&hardware.program, &access.unit));
    }
    match part_of_objects(stage.objects.iter(), path) {
        Some(object) => object,
        // What computes something there is of a part of the program; the rest holds values until they are needed.
        None if first == "pipeline" && of_program.is_empty() => "pipeline registers".to_owned(),
        None if first == "pipeline" => of_program.to_owned(),
        None => "connections".to_owned(),
    }
}

/// The unit of an object that an instance belongs to.
fn part_of_objects<'a>(mut units: impl Iterator<Item = &'a ObjectUnit>, path: &str) -> Option<String> {
    let is_of =
        |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let unit = units.find(|unit| is_of(&unit.name))?;
    Some(format!("{} {}", unit.kind_name(), unit.name))
}

impl Hardware {
    /// What a stage takes with its units; `design` is that of [`Hardware::designs`].
    pub fn area(&self, part: Part, design: &Design) -> AreaReport {
        let stage = self.stages.iter().find(|stage| stage.part == part);
        AreaReport::of(design, self.target.fabric(), |owner| match stage {
            Some(stage) => part_of_stage(self, stage, &owner.instance, &owner.part),
            None => "connections".to_owned(),
        })
    }

    /// What the units of objects of several stages take; `design` is [`Hardware::shared_design`].
    pub fn area_of_shared(&self, design: &Design) -> AreaReport {
        AreaReport::of(design, self.target.fabric(), |owner| self.part_of_shared(&owner.instance))
    }

    fn part_of_shared(&self, path: &str) -> String {
        let units = self.shared.objects.iter().map(|object| &object.unit);
        part_of_objects(units, path).unwrap_or_else(|| "turns of stages".to_owned())
    }
}

impl Device {
    /// What it takes; `hardware` is what it was made of.
    pub fn area(&self, hardware: &Hardware) -> AreaReport {
        AreaReport::of(self.design(), hardware.target.fabric(), |Owner { instance, part }| {
            let (first, rest) = instance.split_once('.').unwrap_or((instance, ""));
            let stage = hardware.stages.iter().find(|stage| stage.part.name() == first);
            match (stage, first) {
                (Some(stage), _) => format!("{first}: {}", part_of_stage(hardware, stage, rest, part)),
                (_, "shared") => format!("shared: {}", hardware.part_of_shared(rest)),
                (_, "control") => "registers and bus".to_owned(),
                (_, "counts") => "counts of lookups and drops".to_owned(),
                (_, mac) if mac.starts_with("mac") => "MACs".to_owned(),
                (_, side) if side.starts_with("receive") => "receiving sides, windows".to_owned(),
                (_, side) if side.starts_with("transmit") => match rest {
                    "editor" => "editors".to_owned(),
                    _ => "queues and schedulers".to_owned(),
                },
                _ => "turns, copies".to_owned(),
            }
        })
    }
}
