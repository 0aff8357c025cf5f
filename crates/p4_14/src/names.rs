//! Names in the P4_16 program. P4_14 has a namespace for each kind of declaration, P4_16 one for all, so a name that is
//! taken gets a number. What the control plane calls things is said by annotations and never changes.

use millrace_syntax::ast::{Declaration, Program};
use millrace_syntax::p4_14;
use std::collections::HashSet;

/// The names that are taken.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Those of a library are taken, those that every program has, and parameters of actions: the control plane knows
    /// parameters by their names, so these stay as they are.
    pub(crate) fn new(library: &Program, program: &p4_14::ast::Program) -> Names {
        let mut names = Names::default();
        names.taken.extend(library.declarations.iter().filter_map(|d| d.name()).map(|n| n.to_string()));
        for declaration in &library.declarations {
            if let Declaration::MatchKinds(list) | Declaration::Errors(list) = declaration {
                names.taken.extend(list.names.iter().map(|n| n.to_string()));
            }
        }
        names.taken.extend(["start", "accept", "reject", "main", "apply"].map(str::to_owned));
        names.taken.extend(BLOCKS.map(str::to_owned));
        names.taken.extend(["headers", "metadata", PACKET].map(str::to_owned));
        for declaration in &program.declarations {
            if let p4_14::ast::Declaration::Action(action) = declaration {
                names.taken.extend(action.params.iter().map(|p| p.to_string()));
            }
        }
        names
    }

    /// The name itself, or with a number.
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        if self.taken.insert(base.to_owned()) {
            return base.to_owned();
        }
        let numbered = (1u64..).map(|n| format!("{base}_{n}")).find(|name| self.taken.insert(name.clone()));
        numbered.unwrap_or_default()
    }
}

/// The blocks of the program.
pub(crate) const BLOCKS: [&str; 6] =
    ["ParserImpl", "verifyChecksum", "ingress", "egress", "computeChecksum", "DeparserImpl"];

/// The packet, in the parser and the deparser.
pub(crate) const PACKET: &str = "packet";
