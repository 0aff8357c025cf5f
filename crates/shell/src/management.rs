//! Commands about the switch itself.

use crate::execute::{MAX_JSON_BYTES, Shell};
use crate::trouble::Trouble;
use crate::words::number;
use millrace_commands::Command;
use millrace_commands::value;
use millrace_syntax::read_text;
use millrace_thrift_api::{Crc16Config, Crc32Config};
use std::io::Write;
use std::path::Path;

impl Shell {
    /// Runs a command that is not one of [`millrace_commands`]; says whether it was one.
    pub(crate) fn manage(&mut self, name: &str, rest: &str, out: &mut dyn Write) -> Result<bool, Trouble> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match name {
            "get_time_elapsed" => {
                exactly::<0>(&words)?;
                writeln!(out, "{}", self.client.get_time_elapsed_us()?)?;
            }
            "get_time_since_epoch" => {
                exactly::<0>(&words)?;
                writeln!(out, "{}", self.client.get_time_since_epoch_us()?)?;
            }
            "load_new_config_file" => {
                let [file] = exactly(&words)?;
                let text = read_text(Path::new(file), MAX_JSON_BYTES)
                    .map_err(|_| Trouble::wrong("Not a valid filename"))?;
                if serde_json::from_str::<serde_json::Value>(&text).is_err() {
                    return Err(Trouble::wrong("Not a valid JSON file"));
                }
                writeln!(out, "Loading new Json config")?;
                self.client.bm_load_new_config(text.clone())?;
                self.schema = crate::schema::Schema::read(&text)?;
            }
            "swap_configs" => {
                exactly::<0>(&words)?;
                writeln!(out, "Swapping configs")?;
                self.client.bm_swap_configs()?;
            }
            "port_add" => {
                let (interface, port, pcap) = match words.as_slice() {
                    [interface, port] => (interface, port, ""),
                    [interface, port, pcap] => (interface, port, *pcap),
                    _ => return Err(Trouble::wrong("Insufficient number of args")),
                };
                let port = number("port", plain(port)?)?;
                self.client.bm_dev_mgr_add_port((*interface).to_owned(), port, pcap.to_owned())?;
            }
            "port_remove" => {
                let [port] = exactly(&words)?;
                self.client.bm_dev_mgr_remove_port(number("port", plain(port)?)?)?;
            }
            "switch_info" => {
                exactly::<0>(&words)?;
                self.switch_info(out)?;
            }
            "write_config_to_file" => {
                let [file] = exactly(&words)?;
                let text = self.client.bm_get_config()?;
                write_file(file, &text)?;
            }
            "serialize_state" => {
                let [file] = exactly(&words)?;
                let text = self.client.bm_serialize_state()?;
                write_file(file, &text)?;
            }
            "set_crc16_parameters" => {
                let [name, polynomial, initial, last, data, remainder] = exactly(&words)?;
                let config = Crc16Config {
                    polynomial: narrow(polynomial, 16)? as i16,
                    initial_remainder: narrow(initial, 16)? as i16,
                    final_xor_value: narrow(last, 16)? as i16,
                    data_reflected: truth(data)?,
                    remainder_reflected: truth(remainder)?,
                };
                self.check_calculation(name, "crc16_custom")?;
                self.client.bm_set_crc16_custom_parameters(name.to_owned(), config)?;
            }
            "set_crc32_parameters" => {
                let [name, polynomial, initial, last, data, remainder] = exactly(&words)?;
                let config = Crc32Config {
                    polynomial: narrow(polynomial, 32)? as i32,
                    initial_remainder: narrow(initial, 32)? as i32,
                    final_xor_value: narrow(last, 32)? as i32,
                    data_reflected: truth(data)?,
                    remainder_reflected: truth(remainder)?,
                };
                self.check_calculation(name, "crc32_custom")?;
                self.client.bm_set_crc32_custom_parameters(name.to_owned(), config)?;
            }
            "set_toeplitz_hash_key" => {
                let [name, digits] = exactly(&words)?;
                let key = hex_bytes(digits)
                    .ok_or_else(|| Trouble::wrong("Toeplitz hash key must be a hex string"))?;
                self.client.bm_set_toeplitz_hash_key(name.to_owned(), key)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the program has a hash of that name whose parameters can be set.
    fn check_calculation(&self, name: &str, algorithm: &str) -> Result<(), Trouble> {
        match self.schema.calculations.get(name).is_some_and(|known| known == algorithm) {
            true => Ok(()),
            false => Err(Trouble::wrong(format!("Invalid {algorithm} name ({name})"))),
        }
    }

    fn switch_info(&mut self, out: &mut dyn Write) -> Result<(), Trouble> {
        let info = self.client.bm_mgmt_get_info()?;
        let none = |socket: Option<String>| socket.unwrap_or_else(|| "None".to_owned());
        let lines = [
            ("device_id", info.device_id.to_string()),
            ("thrift_port", info.thrift_port.to_string()),
            ("notifications_socket", none(info.notifications_socket)),
            ("elogger_socket", none(info.elogger_socket)),
            ("debugger_socket", none(info.debugger_socket)),
        ];
        for (name, value) in lines {
            writeln!(out, "{name:25}: {value}")?;
        }
        Ok(())
    }

    /// Tells when a description is not that of the switch.
    pub(crate) fn compare(&mut self, text: &str, out: &mut dyn Write) -> Result<(), Trouble> {
        if self.client.bm_get_config()?.trim_end() != text.trim_end() {
            writeln!(out, "**********")?;
            writeln!(
                out,
                "WARNING: the JSON file given and that of the switch differ. Are they of one program?"
            )?;
            writeln!(out, "**********")?;
        }
        Ok(())
    }

    pub(crate) fn switch_command(
        &mut self,
        command: &Command<'_, '_>,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        match command {
            Command::SetQueueDepth { packets, place } => {
                let depth = number("depth", (*packets).into())?;
                let port = place.port.map(|port| number("port", port.into())).transpose()?;
                done(match (port, place.priority) {
                    (Some(port), Some(priority)) => {
                        self.client.set_egress_priority_queue_depth(port, priority.into(), depth)?
                    }
                    (Some(port), None) => self.client.set_egress_queue_depth(port, depth)?,
                    (None, _) => self.client.set_all_egress_queue_depths(depth)?,
                })
            }
            Command::SetQueueRate { packets_per_second, place } => {
                let rate = i64::try_from(*packets_per_second).unwrap_or(i64::MAX);
                let port = place.port.map(|port| number("port", port.into())).transpose()?;
                done(match (port, place.priority) {
                    (Some(port), Some(priority)) => {
                        self.client.set_egress_priority_queue_rate(port, priority.into(), rate)?
                    }
                    (Some(port), None) => self.client.set_egress_queue_rate(port, rate)?,
                    (None, _) => self.client.set_all_egress_queue_rates(rate)?,
                })
            }
            Command::ResetState => Ok(self.client.bm_reset_state()?),
            _ => {
                let centered = |number: &str, name: &str, status: &str, extra: &str| {
                    format!("{number:^10}{name:^20}{status:^10}{extra}")
                };
                writeln!(out, "{}", centered("port #", "iface name", "status", "extra info"))?;
                writeln!(out, "{}", "=".repeat(50))?;
                for port in self.client.bm_dev_mgr_show_ports()? {
                    let status = if port.is_up { "UP" } else { "DOWN" };
                    let extra: Vec<String> =
                        port.extra.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    let number = port.port_num.to_string();
                    writeln!(out, "{}", centered(&number, &port.iface_name, status, &extra.join("; ")))?;
                }
                Ok(())
            }
        }
    }
}

/// What a call about queues gave.
fn done(given: i32) -> Result<(), Trouble> {
    if given == 0 {
        Ok(())
    } else {
        Err(Trouble::wrong("the switch has no such queue, or queues cannot be so"))
    }
}

fn exactly<'w, const N: usize>(words: &[&'w str]) -> Result<[&'w str; N], Trouble> {
    <[&str; N]>::try_from(words)
        .map_err(|_| Trouble::wrong(format!("Wrong number of args, expected {N} but got {}", words.len())))
}

fn write_file(path: &str, text: &str) -> Result<(), Trouble> {
    std::fs::write(path, text).map_err(|error| Trouble::wrong(format!("{path}: {error}")))
}

fn plain(word: &str) -> Result<u64, Trouble> {
    value::plain(word).map_err(|error| Trouble::wrong(format!("{word}: {error}")))
}

/// A number that fits so many bits.
fn narrow(word: &str, bits: u32) -> Result<u64, Trouble> {
    let number = plain(word)?;
    match number >> bits {
        0 => Ok(number),
        _ => Err(Trouble::wrong(format!("Integer cannot fit within {bits} bits"))),
    }
}

fn truth(word: &str) -> Result<bool, Trouble> {
    match word {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        number => Ok(plain(number).map_err(|_| Trouble::wrong("Invalid bool parameter"))? != 0),
    }
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_bmv2_reads_them() {
        assert_eq!(narrow("0xffff", 16).unwrap() as i16, -1);
        assert!(narrow("0x10000", 16).is_err());
        assert_eq!((truth("True").unwrap(), truth("0").unwrap()), (true, false));
        assert!(truth("yes").is_err());
        assert_eq!(hex_bytes("00ff"), Some(vec![0, 255]));
        assert_eq!((hex_bytes("0"), hex_bytes("zz")), (None, None));
    }
}
