//! A frame in a few words, for people.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// `06:00:00:00:00:01 > 02:00:00:00:00:01  10.0.1.2 > 10.0.0.2  udp  ttl 63  42 bytes`.
pub(crate) fn describe(frame: &[u8]) -> String {
    let mut text = String::new();
    if let Some((destination, rest)) = frame.split_first_chunk::<6>()
        && let Some((source, rest)) = rest.split_first_chunk::<6>()
        && let Some((kind, packet)) = rest.split_first_chunk::<2>()
    {
        text = format!("{} > {}  ", mac(source), mac(destination));
        match u16::from_be_bytes(*kind) {
            0x0800 => text += &ipv4(packet).unwrap_or_else(|| "ipv4, cut short".into()),
            0x86dd => text += &ipv6(packet).unwrap_or_else(|| "ipv6, cut short".into()),
            0x0806 => text += "arp",
            other => {
                // Writing to a string cannot fail.
                let _ = write!(text, "type {other:#06x}");
            }
        }
        text += "  ";
    }
    text + &format!("{} bytes", frame.len())
}

fn mac(bytes: &[u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn ipv4(packet: &[u8]) -> Option<String> {
    let header = packet.first_chunk::<20>()?;
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Some(format!("{} > {}  {}  ttl {}", address(12), address(16), protocol(header[9]), header[8]))
}

fn ipv6(packet: &[u8]) -> Option<String> {
    let header = packet.first_chunk::<40>()?;
    let address = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&header[at..at + 16]);
        Ipv6Addr::from(bytes)
    };
    Some(format!("{} > {}  {}  hop limit {}", address(8), address(24), protocol(header[6]), header[7]))
}

fn protocol(number: u8) -> String {
    match number {
        1 => "icmp".into(),
        6 => "tcp".into(),
        17 => "udp".into(),
        58 => "icmpv6".into(),
        other => format!("protocol {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_words() {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0x08, 0x00, 0x45];
        assert_eq!(describe(&frame), "06:00:00:00:00:00 > 02:00:00:00:00:01  ipv4, cut short  15 bytes");
        frame.extend([0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 1, 2]);
        assert_eq!(
            describe(&frame),
            "06:00:00:00:00:00 > 02:00:00:00:00:01  10.0.0.2 > 10.0.1.2  udp  ttl 64  34 bytes"
        );
        assert_eq!(describe(&[1, 2, 3]), "3 bytes");
        assert_eq!(describe(&[]), "0 bytes");
    }
}
