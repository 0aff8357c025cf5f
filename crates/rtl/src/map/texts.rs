//! The registers as texts: a C header, and a document.

use super::{Field, RegisterMap, TableMap};
use std::fmt::Write;

impl Field {
    /// A sentence about it.
    pub fn about(self) -> &'static str {
        match self {
            Field::Ident => "0x4d4c5243, \"MLRC\": that the device has these registers.",
            Field::Version => "1: the meaning of the registers.",
            Field::CookieLow => "The lower half of the cookie of the program.",
            Field::CookieHigh => "The upper half of the cookie of the program.",
            Field::Ports => "How many ports there are.",
            Field::Words => "How many data registers there are.",
            Field::Pending => "Which queues have something: a bit each, in the order of the ports.",
            Field::Enabled => "Which of these raise the interrupt.",
            Field::Port => "The number of a port.",
            Field::Address => "The number of a word of that port.",
            Field::Command => {
                "Bit 0: the data registers are written to the word, all of it in one cycle. Bit 1: the word is read to the data registers. \
                 Bit 2: then the address is one more."
            }
            Field::Status => "Bit 0: a read goes on. Until it has ended commands do nothing.",
        }
    }

    /// Its name in C and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Field::Ident => "ident",
            Field::Version => "version",
            Field::CookieLow => "cookie_low",
            Field::CookieHigh => "cookie_high",
            Field::Ports => "ports",
            Field::Words => "words",
            Field::Pending => "pending",
            Field::Enabled => "enabled",
            Field::Port => "port",
            Field::Address => "address",
            Field::Command => "command",
            Field::Status => "status",
        }
    }
}

/// What a name is in C: letters, digits, underscores.
fn c_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// A text within a comment of C, or a cell of a table.
fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '|' || c == '`' { ' ' } else { c };
    text.chars().map(plain).collect::<String>().replace("*/", "* /").replace("/*", "/ *")
}

impl RegisterMap {
    /// Names for ports that are different names in C: what is equal gets the number of the port.
    pub fn c_names(&self) -> Vec<String> {
        let names: Vec<String> = self.ports.iter().map(|port| c_name(&port.object)).collect();
        let name = |(at, name): (usize, &String)| match names[..at].contains(name) {
            true => format!("{name}__{at}"),
            false => name.clone(),
        };
        names.iter().enumerate().map(name).collect()
    }

    /// A header of C.
    pub fn header(&self) -> String {
        let mut text = String::new();
        let program = plain(&self.program);
        let _ = writeln!(text, "/* The registers of {program}. Made by millrace. */\n");
        let _ = writeln!(text, "#ifndef MILLRACE_REGISTERS_H\n#define MILLRACE_REGISTERS_H\n");
        let _ = writeln!(text, "#define MILLRACE_COOKIE {:#018x}ULL", self.cookie);
        let _ = writeln!(text, "#define MILLRACE_SIZE {:#x}\n", self.size());
        for field in Field::ALL {
            let _ = writeln!(text, "/* {} */", field.about());
            let _ = writeln!(text, "#define MILLRACE_{} {:#04x}", c_name(field.name()), field.offset());
        }
        let _ = writeln!(text, "/* The first of {} data registers. */", self.words());
        let _ = writeln!(text, "#define MILLRACE_DATA {:#04x}\n", RegisterMap::DATA);
        let (write, read, next) = (RegisterMap::WRITE, RegisterMap::READ, RegisterMap::NEXT);
        for (name, value) in [("WRITE", write), ("READ", read), ("NEXT", next)] {
            let _ = writeln!(text, "#define MILLRACE_COMMAND_{name} {value}");
        }
        for (number, (port, name)) in self.ports.iter().zip(self.c_names()).enumerate() {
            let _ = writeln!(text, "\n/* {} {} */", port.kind, plain(&port.object));
            let _ = writeln!(text, "#define MILLRACE_PORT_{name} {number}");
            let _ = writeln!(text, "#define MILLRACE_PORT_{name}_WORDS {}", port.words);
            let _ = writeln!(text, "#define MILLRACE_PORT_{name}_BITS {}", port.width);
        }
        if !self.names.is_empty() {
            let _ = writeln!(
                text,
                "\n/* Words with names of their own, of the ports that are named after the slash. */"
            );
        }
        for word in &self.names {
            let (name, object) = (c_name(&word.name), plain(&self.ports[word.port].object));
            let _ = writeln!(text, "#define MILLRACE_WORD_{name} {} /* / {object} */", word.address);
        }
        text.push_str("\n#endif\n");
        text
    }

    /// A document, as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "# Registers of {}\n", plain(&self.program));
        let _ = writeln!(
            text,
            "{} bytes, registers of 32 bits. Cookie {:#018x}.\n\nTo write a word: its port, its number and its data, then the command 1. To \
             read one: port, number, the command 2; when bit 0 of status is 0, the data registers have it. The lowest 32 bits of a word are in \
             the first data register.\n",
            self.size(),
            self.cookie
        );
        let _ = writeln!(text, "| offset | register | access | meaning |\n| --- | --- | --- | --- |");
        for field in Field::ALL {
            let access = if field.is_written() { "read, write" } else { "read" };
            let (offset, name, about) = (field.offset(), field.name(), field.about());
            let _ = writeln!(text, "| {offset:#04x} | `{name}` | {access} | {about} |");
        }
        let last = RegisterMap::DATA + 4 * self.words() - 4;
        let _ = writeln!(
            text,
            "| {:#04x} to {last:#04x} | `data` | read, write | The data of a word. |\n",
            RegisterMap::DATA
        );
        let _ = writeln!(
            text,
            "## Ports\n\n| number | kind | object | words | bits | access |\n| --- | --- | --- | --- | --- | --- |"
        );
        for (number, port) in self.ports.iter().enumerate() {
            let access = match (port.readable, port.writable) {
                (true, true) => "read, write",
                (true, false) => "read",
                (false, _) => "write",
            };
            let (object, kind) = (plain(&port.object), port.kind);
            let _ = writeln!(
                text,
                "| {number} | {kind} | `{object}` | {} | {} | {access} |",
                port.words, port.width
            );
        }
        if !self.names.is_empty() {
            let _ = writeln!(text, "\n## Words\n\n| port | word | name |\n| --- | --- | --- |");
        }
        for word in &self.names {
            let _ = writeln!(text, "| {} | {} | `{}` |", word.port, word.address, plain(&word.name));
        }
        if !self.tables.is_empty() {
            let _ = writeln!(
                text,
                "\n## Tables\n\nEach memory of a table has two banks: word n of a memory that starts at b is word 2 (b + n) of the port in bank 0 \
                 and the one after it in bank 1. Frames meet the bank that is bit 0 of the port `bank`; bit 1 is 1 when no frame meets the \
                 other one any more. Software writes the bank that no frame meets, changes the bank, waits, and writes the other.\n"
            );
            let _ = writeln!(
                text,
                "| port | unit | memory | starts at | words | bits |\n| --- | --- | --- | --- | --- | --- |"
            );
        }
        for TableMap { port, kind, areas } in &self.tables {
            for area in areas {
                let (name, base, words, width) = (&area.name, area.base, area.words, area.width);
                let _ = writeln!(text, "| {port} | {kind} | `{name}` | {base} | {words} | {width} |");
            }
        }
        text
    }
}
