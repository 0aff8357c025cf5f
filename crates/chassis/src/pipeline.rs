//! A program with what controllers are told of it.

use crate::compile::compile;
use millrace_dataplane::Cancel;
use millrace_describe::image::Image;
use millrace_messages::p4::config::v1::{P4Info, Preamble};
use millrace_pipeline::Program;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program with what controllers are told of it.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The verified program.
    pub program: Arc<Program>,
    /// Its description.
    pub p4info: P4Info,
    /// The widths of the fields of controller headers in the data plane, by the name of the header.
    pub controller_headers: BTreeMap<String, Vec<u32>>,
    /// The text of a P4_16 program, or the image, that it was made from.
    pub device_config: Vec<u8>,
}

impl Pipeline {
    /// The pipeline of an image, which was made from that device config.
    ///
    /// # Errors
    /// What is wrong with its P4Info.
    pub fn new(image: Image, device_config: Vec<u8>) -> Result<Pipeline, String> {
        let Image { program, p4info, controller_headers } = image;
        check_describes(&p4info, &program)?;
        Ok(Pipeline { program, p4info, controller_headers, device_config })
    }

    /// Gives it another port that means drop.
    ///
    /// # Errors
    /// As [`millrace_compile::set_drop_port`] says.
    pub fn set_drop_port(&mut self, port: u32) -> Result<(), String> {
        millrace_compile::set_drop_port(Arc::make_mut(&mut self.program), port)
    }
}

/// A program that drops every packet, for a switch that waits for a controller to bring one.
///
/// # Errors
/// None, unless the compiler is broken.
pub fn empty_program() -> Result<Arc<Program>, String> {
    let made = compile(include_bytes!("empty.p4"), &Cancel::default());
    let mut program = made.map_err(|error| error.message)?.program;
    // It has no architecture whose ports would bound those of the programs to come.
    Arc::make_mut(&mut program).architecture = "none".into();
    Ok(program)
}

/// Whether a description can be that of a program: what both have under one name has as many fields.
fn check_describes(info: &P4Info, program: &Program) -> Result<(), String> {
    let name = |preamble: &Option<Preamble>| {
        preamble.as_ref().map(|preamble| preamble.name.clone()).unwrap_or_default()
    };
    let tables = info.tables.iter().filter_map(|table| {
        let name = name(&table.preamble);
        let made = program.tables.values().find(|made| made.name == name)?;
        Some((name, table.match_fields.len(), made.keys.len()))
    });
    let actions = info.actions.iter().filter_map(|action| {
        let name = name(&action.preamble);
        let made = program.actions.values().find(|made| made.name == name)?;
        Some((name, action.params.len(), made.params.len()))
    });
    match tables.chain(actions).find(|(_, described, made)| described != made) {
        Some((name, described, made)) => {
            Err(format!("the P4Info is of another program: `{name}` has {made} fields, not {described}"))
        }
        None => Ok(()),
    }
}
