//! The commands: those of [`millrace_commands`], and those that only make sense on a connection.

use millrace_commands::{COMMANDS, usage as shared_usage};
use std::io::{self, Write};

/// Name, arguments and meaning.
const OWN: &[(&str, &str, &str)] = &[
    ("exit", "", "end the shell (or control-D)"),
    ("get_time_elapsed", "", "show for how long the switch has been running, in microseconds"),
    ("get_time_since_epoch", "", "show the time of the switch's clock, in microseconds"),
    ("load_new_config_file", "FILE", "hand another program to the switch, as bmv2 JSON"),
    ("port_add", "INTERFACE PORT [PCAP]", "add a port"),
    ("port_remove", "PORT", "remove a port"),
    ("serialize_state", "FILE", "write the state of the switch to a file"),
    (
        "set_crc16_parameters",
        "NAME POLYNOMIAL INITIAL FINAL REFLECT_DATA REFLECT_REMAINDER",
        "change a custom CRC-16",
    ),
    (
        "set_crc32_parameters",
        "NAME POLYNOMIAL INITIAL FINAL REFLECT_DATA REFLECT_REMAINDER",
        "change a custom CRC-32",
    ),
    ("set_toeplitz_hash_key", "NAME HEX", "change the key of a Toeplitz hash"),
    ("swap_configs", "", "go on with the program of load_new_config_file"),
    ("switch_info", "", "show the switch's ids and sockets"),
    ("write_config_to_file", "FILE", "write the description of the program to a file"),
];

/// The names of all commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().chain(OWN).map(|(name, ..)| *name)
}

/// Whether there is a command of that name.
pub(crate) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Arguments and meaning of a command.
pub(crate) fn usage(name: &str) -> Option<(&'static str, &'static str)> {
    let own = || OWN.iter().find(|(own, ..)| *own == name).map(|(_, args, meaning)| (*args, *meaning));
    shared_usage(name).or_else(own)
}

/// Shows how a command is used, or all of them.
pub(crate) fn help(name: &str, out: &mut dyn Write) -> io::Result<()> {
    let line = |name: &str, out: &mut dyn Write| match usage(name) {
        Some((args, meaning)) => writeln!(out, "{}\n    {meaning}", format!("{name} {args}").trim_end()),
        None => writeln!(out, "*** No help on {name}"),
    };
    if !name.is_empty() {
        return line(name, out);
    }
    let mut all: Vec<&str> = names().collect();
    all.sort_unstable();
    all.into_iter().try_for_each(|name| line(name, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_help_and_one_entry() {
        let mut all: Vec<&str> = names().collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(all.iter().all(|name| usage(name).is_some()));
    }
}
