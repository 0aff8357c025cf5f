//! Records of flows as bytes: JSON lines, and messages of IPFIX (RFC 7011) as a file has them (RFC 5655).

use super::table::{FlowEnd, FlowRecord};
use serde_json::json;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of a file of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object a line.
    Json,
    /// Messages of IPFIX.
    Ipfix,
}

/// Who tells: a port, and whether packets came or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Teller {
    pub(super) port: u32,
    pub(super) is_output: bool,
}

/// Templates of records, by version of IP; frames without IP have one too.
const TEMPLATES: [(u16, u8); 3] = [(256, 4), (257, 6), (258, 0)];
/// Records of a message. One has at most 89 bytes, and a message at most 65535.
const RECORDS: usize = 256;
/// So many messages follow before the templates come again.
const MESSAGES: u32 = 64;

/// Writes records.
pub(super) struct Encoder {
    format: Format,
    sequence: u32,
    messages: u32,
}

impl Encoder {
    pub(super) fn new(format: Format) -> Encoder {
        Encoder { format, sequence: 0, messages: 0 }
    }

    /// Adds records to a text.
    pub(super) fn encode(&mut self, teller: Teller, records: &[FlowRecord], out: &mut Vec<u8>) {
        match self.format {
            Format::Json => records.iter().for_each(|record| json_line(teller, record, out)),
            Format::Ipfix => records.chunks(RECORDS).for_each(|records| self.message(teller, records, out)),
        }
    }

    fn message(&mut self, teller: Teller, records: &[FlowRecord], out: &mut Vec<u8>) {
        let start = out.len();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        put(out, 10u16.to_be_bytes());
        put(out, [0; 2]);
        // Until the year 2106, as the format has it.
        put(out, (seconds as u32).to_be_bytes());
        put(out, self.sequence.to_be_bytes());
        // The observation domain: the port, and the direction in the first bit.
        put(out, (teller.port | u32::from(teller.is_output) << 31).to_be_bytes());
        if self.messages.is_multiple_of(MESSAGES) {
            templates(out);
        }
        for (template, version) in TEMPLATES {
            let mut of_template = records.iter().filter(|record| record.key.version == version).peekable();
            if of_template.peek().is_none() {
                continue;
            }
            let set = out.len();
            put(out, template.to_be_bytes());
            put(out, [0; 2]);
            of_template.for_each(|record| data_record(record, out));
            set_length(out, set);
        }
        // The length of a message is in its second field, as that of a set.
        set_length(out, start);
        self.messages = self.messages.wrapping_add(1);
        self.sequence = self.sequence.wrapping_add(records.len() as u32);
    }
}

fn put<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) {
    out.extend_from_slice(&bytes);
}

/// Writes the length of what begins at a place, in bytes 2 and 3 there.
fn set_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u16;
    if let Some(place) = out.get_mut(start + 2..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// The elements of each template: their number (IANA's registry of IPFIX) and length.
fn elements(version: u8) -> impl Iterator<Item = (u16, u16)> {
    let addresses: &[(u16, u16)] = match version {
        // sourceIPv4Address, destinationIPv4Address
        4 => &[(8, 4), (12, 4)],
        // sourceIPv6Address, destinationIPv6Address
        6 => &[(27, 16), (28, 16)],
        _ => &[],
    };
    // sourceTransportPort, destinationTransportPort, protocolIdentifier, tcpControlBits, ethernetType, vlanId,
    // packetDeltaCount, octetDeltaCount, flowStartNanoseconds, flowEndNanoseconds, flowEndReason
    let common =
        [(7, 2), (11, 2), (4, 1), (6, 2), (256, 2), (58, 2), (2, 8), (1, 8), (156, 8), (157, 8), (136, 1)];
    addresses.iter().copied().chain(common)
}

fn templates(out: &mut Vec<u8>) {
    let set = out.len();
    put(out, 2u16.to_be_bytes());
    put(out, [0; 2]);
    for (template, version) in TEMPLATES {
        put(out, template.to_be_bytes());
        put(out, (elements(version).count() as u16).to_be_bytes());
        for (element, length) in elements(version) {
            put(out, element.to_be_bytes());
            put(out, length.to_be_bytes());
        }
    }
    set_length(out, set);
}

fn data_record(record: &FlowRecord, out: &mut Vec<u8>) {
    let key = &record.key;
    let bytes = match key.version {
        4 => 4,
        6 => 16,
        _ => 0,
    };
    out.extend_from_slice(&key.source[..bytes]);
    out.extend_from_slice(&key.destination[..bytes]);
    put(out, key.source_port.to_be_bytes());
    put(out, key.destination_port.to_be_bytes());
    put(out, [key.protocol]);
    put(out, u16::from(record.tcp_flags).to_be_bytes());
    put(out, key.ether_type.to_be_bytes());
    put(out, key.vlan.to_be_bytes());
    put(out, record.packets.to_be_bytes());
    put(out, record.bytes.to_be_bytes());
    put(out, ntp(record.start_ns));
    put(out, ntp(record.end_ns));
    // RFC 5102, flowEndReason.
    put(
        out,
        [match record.end {
            FlowEnd::Idle => 1,
            FlowEnd::Active => 2,
            FlowEnd::End => 4,
            FlowEnd::Evicted => 5,
        }],
    );
}

/// Seconds since 1900 and their fraction in 32 bits each (RFC 5905).
fn ntp(time_ns: u64) -> [u8; 8] {
    const SECOND: u64 = 1_000_000_000;
    let seconds = (time_ns / SECOND).wrapping_add(2_208_988_800);
    let fraction = ((time_ns % SECOND) << 32) / SECOND;
    (seconds << 32 | fraction).to_be_bytes()
}

fn json_line(teller: Teller, record: &FlowRecord, out: &mut Vec<u8>) {
    let FlowRecord { key, .. } = record;
    let mut line = json!({
        "port": teller.port,
        "direction": if teller.is_output { "output" } else { "input" },
        "start_ns": record.start_ns,
        "end_ns": record.end_ns,
        "packets": record.packets,
        "bytes": record.bytes,
        "end": record.end.name(),
        "ether_type": format!("0x{:04x}", key.ether_type),
    });
    if let Some(object) = line.as_object_mut() {
        if key.vlan != 0 {
            object.insert("vlan".into(), key.vlan.into());
        }
        if let Some([source, destination]) = addresses(record) {
            object.insert("source".into(), source.into());
            object.insert("destination".into(), destination.into());
            object.insert("protocol".into(), key.protocol.into());
            object.insert("source_port".into(), key.source_port.into());
            object.insert("destination_port".into(), key.destination_port.into());
        }
        if key.protocol == 6 {
            object.insert("tcp_flags".into(), record.tcp_flags.into());
        }
    }
    // A value of numbers and texts has a form, and a vector takes it.
    let _ = serde_json::to_writer(&mut *out, &line);
    out.push(b'\n');
}

fn addresses(record: &FlowRecord) -> Option<[String; 2]> {
    let both = [record.key.source, record.key.destination];
    match record.key.version {
        4 => Some(both.map(|bytes| Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).to_string())),
        6 => Some(both.map(|bytes| Ipv6Addr::from(bytes).to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::FlowKey;

    fn record() -> FlowRecord {
        let mut key = FlowKey { protocol: 6, version: 4, ether_type: 0x800, vlan: 7, ..FlowKey::default() };
        key.source[..4].copy_from_slice(&[10, 0, 0, 1]);
        key.destination[..4].copy_from_slice(&[10, 0, 0, 2]);
        (key.source_port, key.destination_port) = (5000, 80);
        let (start_ns, end_ns) = (1_500_000_000, 2_250_000_000);
        FlowRecord { key, start_ns, end_ns, packets: 3, bytes: 180, tcp_flags: 0x12, end: FlowEnd::Idle }
    }

    const TELLER: Teller = Teller { port: 3, is_output: true };

    #[test]
    fn a_line_of_json_has_all_of_a_flow() {
        let mut out = Vec::new();
        Encoder::new(Format::Json).encode(TELLER, &[record()], &mut out);
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let wanted = json!({
            "port": 3, "direction": "output", "start_ns": 1_500_000_000u64, "end_ns": 2_250_000_000u64, "packets": 3,
            "bytes": 180, "end": "idle", "ether_type": "0x0800", "vlan": 7, "source": "10.0.0.1", "protocol": 6,
            "destination": "10.0.0.2", "source_port": 5000, "destination_port": 80, "tcp_flags": 0x12,
        });
        assert_eq!(line, wanted);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    }

    /// The bytes by RFC 7011, sections 3.1 to 3.4, written by hand.
    #[test]
    fn a_message_of_ipfix_has_templates_and_records() {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(Format::Ipfix);
        encoder.encode(TELLER, &[record()], &mut out);
        let templates = 4 + (4 + 13 * 4) + (4 + 13 * 4) + (4 + 11 * 4);
        let data = 4 + 4 + 4 + 2 + 2 + 1 + 2 + 2 + 2 + 8 * 4 + 1;
        assert_eq!(out.len(), 16 + templates + data);
        assert_eq!(out[..4], [0, 10, 0, out.len() as u8]);
        assert_eq!(out[8..16], [0, 0, 0, 0, 0x80, 0, 0, 3]);
        assert_eq!(out[16..24], [0, 2, 0, templates as u8, 1, 0, 0, 13]);
        assert_eq!(out[24..32], [0, 8, 0, 4, 0, 12, 0, 4]);
        let mut wanted =
            vec![1, 0, 0, data as u8, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0, 80, 6, 0, 0x12, 8, 0, 0, 7];
        wanted.extend(3u64.to_be_bytes());
        wanted.extend(180u64.to_be_bytes());
        wanted.extend((2_208_988_801u64 << 32 | 1 << 31).to_be_bytes());
        wanted.extend((2_208_988_802u64 << 32 | 1 << 30).to_be_bytes());
        wanted.push(1);
        assert_eq!(out[16 + templates..], wanted);
        let before = out.len();
        encoder.encode(TELLER, &[record(), record()], &mut out);
        // Templates stay away, and the first message had one record.
        assert_eq!(out.len() - before, 16 + 4 + 2 * (data - 4));
        assert_eq!(out[before + 8..before + 12], [0, 0, 0, 1]);
    }
}
