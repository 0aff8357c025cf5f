//! What a node is made of, in words.

use crate::model::{NodeFile, Placement};
use std::fmt::Write;

impl NodeFile {
    /// Services, functions and blocks with where each is, and what is connected over which interface; a block a line.
    pub fn describe(&self) -> String {
        let mut text = format!("node {}\n", self.name);
        for (number, service) in self.services.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "service {service}");
            for (at, function) in
                self.functions.iter().enumerate().filter(|(_, function)| function.service == number)
            {
                let _ =
                    writeln!(text, "  function {} on {}", function.name, self.devices[function.device].name);
                for block in self.blocks.iter().filter(|block| block.function == at) {
                    let _ = writeln!(
                        text,
                        "    {}: {} in {}",
                        block.name,
                        block.kind.word(),
                        block.placement.word()
                    );
                }
            }
        }
        for connection in &self.connections {
            let (from, to) = (&self.blocks[connection.from.block], &self.blocks[connection.to.block]);
            let output = &from.kind.outputs()[connection.from.port];
            let input = &to.kind.inputs()[connection.to.port];
            let link = if from.gives_from() == to.placement { "" } else { ", over the host link" };
            let interface = connection.interface.word();
            let _ = writeln!(text, "{}.{output} -> {}.{input} ({interface}{link})", from.name, to.name);
        }
        for (number, memory) in self.memories.iter().enumerate() {
            let owner = &self.devices[memory.device].name;
            let _ = writeln!(text, "memory {} on {owner}: {} words", memory.name, memory.words);
            for (block, shared) in self.sharers(number) {
                let _ = writeln!(text, "    {}: {}", block.name, shared.registers.join(", "));
            }
        }
        text
    }

    /// Whether a part of it is in hardware.
    pub fn has_hardware(&self) -> bool {
        self.blocks.iter().any(|block| block.placement == Placement::Hardware)
    }
}
