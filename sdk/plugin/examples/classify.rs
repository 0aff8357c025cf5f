//! A layer-7 classifier: which protocol a packet speaks and for which host, from HTTP's Host, the server name of a TLS hello, or the
//! name that a DNS query asks for. What is for a blocked host is dropped, and answered in place of the host: HTTP with 403, TLS with
//! a reset, DNS with "refused".
//!
//! ```p4
//! @plugin("classify", passes) extern bit<8> classify(
//!     in bit<48> dst, in bit<48> src,                   // of Ethernet
//!     in bit<32> from, in bit<32> to,                   // of IPv4
//!     in bit<16> from_port, in bit<16> to_port, in bit<8> protocol,
//!     in bit<32> seq, in bit<32> ack);                  // of TCP
//! ```
//!
//! It gives 0 unknown, 1 HTTP, 2 TLS, 3 DNS. The payload is what follows the header of TCP or UDP.

use millrace_plugin::{Call, plugin};

plugin! { payload: 2048, reply: 2048, call: classify }

/// Hosts of this domain, and the domain itself, are blocked.
const BLOCKED: &str = "blocked.example";
const FORBIDDEN: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\nConnection: close\r\n\r\nblocked\n";
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flags of TCP.
const FIN_PSH_ACK: u8 = 0x19;
const RST_ACK: u8 = 0x14;
/// Bytes of Ethernet and IPv4 before TCP and UDP.
const FRONT: usize = 14 + 20;

/// What a packet speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Http = 1,
    Tls = 2,
    Dns = 3,
}

fn classify(call: &mut Call<'_>) {
    let protocol = call.arg(6) as u8;
    let payload = call.payload();
    let found = match protocol {
        TCP => http(payload).map(|host| (Class::Http, host)).or_else(|| Some((Class::Tls, tls(payload)?))),
        UDP if call.arg(5) == 53 => dns(payload).map(|host| (Class::Dns, host)),
        _ => None,
    };
    let Some((class, host)) = found else { return };
    call.give(0, class as u64);
    if is_blocked(&host) {
        call.drop();
        answer(call, class);
    }
}

fn is_blocked(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host.strip_suffix(BLOCKED).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

/// The host of a request of HTTP/1, without its port; empty where it says none.
fn http(payload: &[u8]) -> Option<String> {
    let methods = ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "CONNECT ", "PATCH "];
    methods.iter().find(|method| payload.starts_with(method.as_bytes()))?;
    let text = String::from_utf8_lossy(payload);
    let mut lines = text.split("\r\n").skip(1).take_while(|line| !line.is_empty());
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    let host = host.unwrap_or_default();
    Some(host.split(':').next().unwrap_or_default().to_owned())
}

/// Reads numbers and parts one after another.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A part after its length, which has so many bytes; as much of it as there is.
    fn part(&mut self, bytes: usize) -> Option<Reader<'a>> {
        let len = self.number(bytes)?.min(self.0.len());
        self.take(len).map(Reader)
    }
}

/// The server name of a hello of a TLS client (RFC 8446, 4.1.2; RFC 6066, 3); empty where it says none.
fn tls(payload: &[u8]) -> Option<String> {
    let mut record = Reader(payload);
    // A record of a handshake, of version 3.x, and in it a hello of a client.
    (record.number(1)? == 22 && record.number(1)? == 3).then_some(())?;
    record.take(1)?;
    let mut handshake = record.part(2)?;
    (handshake.number(1)? == 1).then_some(())?;
    let mut hello = handshake.part(3)?;
    hello.take(2 + 32)?;
    hello.part(1)?;
    hello.part(2)?;
    hello.part(1)?;
    let Some(mut extensions) = hello.part(2) else { return Some(String::new()) };
    while let (Some(kind), Some(mut extension)) = (extensions.number(2), extensions.part(2)) {
        if kind == 0 {
            let mut names = extension.part(2)?;
            names.take(1)?;
            let name = names.part(2)?;
            return Some(String::from_utf8_lossy(name.0).into_owned());
        }
    }
    Some(String::new())
}

/// The name that a DNS query asks for (RFC 1035, 4.1).
fn dns(payload: &[u8]) -> Option<String> {
    let mut query = Reader(payload);
    query.take(2)?;
    let (flags, questions) = (query.number(2)?, query.number(2)?);
    (flags & 0x8000 == 0 && questions == 1).then_some(())?;
    query.take(6)?;
    let mut labels = Vec::new();
    loop {
        let label = query.part(1)?;
        match label.0 {
            [] => return Some(labels.join(".")),
            label if label.len() < 64 => labels.push(String::from_utf8_lossy(label).into_owned()),
            _ => return None,
        }
    }
}

/// The packet that answers in the place of the host.
fn answer(call: &mut Call<'_>, class: Class) {
    let payload = call.payload_len() as u32;
    match class {
        Class::Http => segment(call, FIN_PSH_ACK, payload, FORBIDDEN),
        Class::Tls => segment(call, RST_ACK, payload, &[]),
        Class::Dns => refuse(call),
    }
}

/// A segment of TCP that acknowledges what came.
fn segment(call: &mut Call<'_>, flags: u8, payload: u32, data: &[u8]) {
    let (from_port, to_port) = (call.arg(5) as u16, call.arg(4) as u16);
    let (seq, ack) = (call.arg(8) as u32, (call.arg(7) as u32).wrapping_add(payload));
    let mut tcp = Vec::with_capacity(20 + data.len());
    tcp.extend_from_slice(&from_port.to_be_bytes());
    tcp.extend_from_slice(&to_port.to_be_bytes());
    tcp.extend_from_slice(&seq.to_be_bytes());
    tcp.extend_from_slice(&ack.to_be_bytes());
    tcp.extend_from_slice(&[5 << 4, flags, 0, 0, 0, 0, 0, 0]);
    tcp.extend_from_slice(data);
    send(call, TCP, tcp, 16);
}

/// The query again as an answer: refused.
fn refuse(call: &mut Call<'_>) {
    let (from_port, to_port) = (call.arg(5) as u16, call.arg(4) as u16);
    let query = call.payload();
    let mut udp = Vec::with_capacity(8 + query.len());
    udp.extend_from_slice(&from_port.to_be_bytes());
    udp.extend_from_slice(&to_port.to_be_bytes());
    udp.extend_from_slice(&(8 + query.len() as u16).to_be_bytes());
    udp.extend_from_slice(&[0, 0]);
    udp.extend_from_slice(query);
    // It is an answer, nothing recursed, with code 5 (RFC 1035, 4.1.1).
    udp[8 + 2] |= 0x80;
    udp[8 + 3] = 5;
    send(call, UDP, udp, 6);
}

/// Sends a segment or datagram back, whose checksum is at `sum_at`.
fn send(call: &mut Call<'_>, protocol: u8, mut part: Vec<u8>, sum_at: usize) {
    let (from, to) = ((call.arg(3) as u32).to_be_bytes(), (call.arg(2) as u32).to_be_bytes());
    let len = (part.len() as u16).to_be_bytes();
    let pseudo = [&from[..], &to[..], &[0, protocol], &len].concat();
    let sum = checksum(&[&pseudo, &part]);
    // Of UDP 0 means none (RFC 768).
    let sum = if sum == 0 && protocol == UDP { 0xffff } else { sum };
    part[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
    ip[8] = 64;
    ip[9] = protocol;
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let (dst, src) = (call.arg(0).to_be_bytes(), call.arg(1).to_be_bytes());
    // Without room nothing is answered, and the packet is dropped all the same.
    let Ok(packet) = call.reply(FRONT + part.len()) else { return };
    packet[..6].copy_from_slice(&src[2..]);
    packet[6..12].copy_from_slice(&dst[2..]);
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..FRONT].copy_from_slice(&ip);
    packet[FRONT..].copy_from_slice(&part);
}

/// The checksum of RFC 1071 over parts, of which all but the last have an even number of bytes.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
