//! What the fuzz targets share: the programs of `programs/` as switches with their entries.

pub mod budget;
pub mod controller;
pub mod wire;

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_pipeline::Program;
use millrace_syntax::{Options, parse_text};
use std::sync::{Arc, LazyLock};

/// A program of `programs/` and its entries.
pub struct Subject {
    /// The IR.
    pub program: Arc<Program>,
    /// The entries file.
    pub entries: &'static str,
}

macro_rules! subject {
    ($name:literal) => {
        Subject {
            program: compile($name, include_str!(concat!("../../programs/", $name, ".p4"))),
            entries: include_str!(concat!("../../programs/", $name, ".entries")),
        }
    };
}

/// Every program of `programs/`.
pub static SUBJECTS: LazyLock<Vec<Subject>> =
    LazyLock::new(|| vec![subject!("router"), subject!("l2_switch"), subject!("firewall")]);

impl Subject {
    /// A switch without entries.
    pub fn empty_switch(&self) -> Switch {
        Switch::new(Arc::clone(&self.program), SwitchConfig::default()).expect("programs of the project run")
    }

    /// A switch with the entries.
    pub fn switch(&self) -> Switch {
        let mut switch = self.empty_switch();
        millrace_control::entries::load(&mut switch, self.entries).expect("entries of the project fit");
        switch
    }
}

fn compile(name: &str, text: &str) -> Arc<Program> {
    let parsed = parse_text(name, text, &Options::default());
    let checked = millrace_sema::check(&parsed.program);
    assert!(!parsed.diagnostics.has_errors() && !checked.diagnostics.has_errors(), "{name} has errors");
    Arc::new(millrace_lower::lower(&checked.program, name).expect("programs of the project lower"))
}
