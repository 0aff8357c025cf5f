//! What filters select, compared with what tcpdump selects from the same frames: written expressions, and random ones.

use millrace_inputs::filter::Filter;
use std::process::Command;

/// The bytes of a frame: Ethernet, tags, labels, and what they carry.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut ether = |kind: u16, tags: &[u16], rest: &[u8]| {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (at, tag) in tags.iter().enumerate() {
            let kind = if at == 0 && tags.len() == 2 { 0x88a8u16 } else { 0x8100 };
            frame.extend(kind.to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(rest);
        // Padded, so that nothing is read beyond the end: where libpcap reads first is its own affair.
        frame.resize(frame.len().max(64) + 64, 0);
        frames.push(frame);
    };
    let payloads = [tcp(80, 5000, 2), tcp(1025, 443, 0x12), udp(53, 33000), udp(7, 53), icmp(8), icmp(3)];
    for tags in [&[][..], &[100], &[0x2064], &[7, 100]] {
        for (number, payload) in payloads.iter().enumerate() {
            let number = number as u8;
            let protocol = [6, 6, 17, 17, 1, 1][usize::from(number)];
            let v4 = ipv4([10, 0, number, 1], [192, 168, 1, number], protocol, 0, &[], payload);
            ether(0x800, tags, &v4);
            let options = [1, 1, 1, 1, 1, 1, 1, 0];
            ether(
                0x800,
                tags,
                &ipv4([10, 1, 2, 3], [224, 0, 0, number], protocol, 0x2000, &options, payload),
            );
            ether(0x800, tags, &ipv4([10, 1, 2, 3], [10, 0, 0, 1], protocol, 20, &[], payload));
            ether(0x86dd, tags, &ipv6(number, protocol, payload));
            let mut fragment = vec![protocol, 0, 0, 1, 0, 0, 0, number];
            fragment.extend(payload);
            ether(0x86dd, tags, &ipv6(0xff, 44, &fragment));
            for labels in [&[16u32][..], &[1000, 16]] {
                let mut stack = labels_of(labels);
                stack.extend(&v4);
                ether(0x8847, tags, &stack);
                let mut stack = labels_of(labels);
                stack.extend(ipv6(number, protocol, payload));
                ether(0x8847, tags, &stack);
            }
        }
        for (kind, operation) in [(0x806, 1), (0x806, 2), (0x8035, 3)] {
            let mut arp = vec![0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 2, 10, 0, 0, 1];
            arp.extend([0, 0, 0, 0, 0, 0, 192, 168, 1, 1]);
            ether(kind, tags, &arp);
        }
        ether(0x88cc, tags, &[2, 7, 4]);
    }
    let mut broadcast = frames[0].clone();
    broadcast[..6].fill(0xff);
    frames.push(broadcast);
    let mut multicast = frames[1].clone();
    multicast[..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 5]);
    frames.push(multicast);
    let long = frames[0].iter().copied().cycle().take(1200).collect();
    frames.push(long);
    frames
}

fn labels_of(labels: &[u32]) -> Vec<u8> {
    let last = labels.len() - 1;
    let word = |(at, label): (usize, &u32)| (label << 12 | u32::from(at == last) << 8 | 64).to_be_bytes();
    labels.iter().enumerate().flat_map(word).collect()
}

fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    bytes
}

fn udp(source: u16, destination: u16) -> Vec<u8> {
    let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    bytes.extend([0, 8, 0, 0]);
    bytes
}

fn icmp(kind: u8) -> Vec<u8> {
    vec![kind, 1, 0, 0, 0, 0, 0, 0]
}

fn ipv4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    fragment: u16,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let words = 5 + options.len() / 4;
    let length = (words * 4 + payload.len()) as u16;
    let mut bytes = vec![0x40 | words as u8, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 1]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0]);
    bytes.extend(source);
    bytes.extend(destination);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

fn ipv6(number: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let protocol = if protocol == 1 { 58 } else { protocol };
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([protocol, 64]);
    let mut address = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number];
    bytes.extend(address);
    address[0] = if number == 0xff { 0xff } else { 0xfd };
    bytes.extend(address);
    bytes.extend(payload);
    bytes
}

const EXPRESSIONS: &[&str] = &[
    "ip",
    "ip6",
    "arp",
    "rarp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "sctp",
    "igmp",
    "pim",
    "esp",
    "ah",
    "vrrp",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst 10.0.0.1",
    "src or dst host 10.0.0.1",
    "src and dst host 10.0.0.1",
    "ip host 10.0.0.1",
    "arp host 10.0.0.1",
    "rarp host 10.0.0.1",
    "arp src host 10.0.0.1",
    "host 2001:db8::1",
    "ip6 host 2001:db8::2",
    "dst host fd01:db8::3",
    "src net 2001:db8::/32",
    "net fd00::/8",
    "net 2001:db8::/125",
    "net 10.0.0.0/8",
    "src net 10.0",
    "net 10",
    "net 10.0.2",
    "net 192.168.0.0 mask 255.255.0.0",
    "net 0.0.0.0/0",
    "ip net 10.1.0.0/16",
    "port 80",
    "src port 80",
    "dst port 53",
    "tcp port 443",
    "udp port 53",
    "port http",
    "udp port domain",
    "portrange 50-60",
    "tcp dst portrange 400-500",
    "src or dst port 53",
    "src and dst port 53",
    "port 53 or 80",
    "port 53 or 80 and tcp",
    "not port 53",
    "! tcp and ! udp",
    "host 10.0.0.1 or 10.0.1.1",
    "not host 10.0.0.1 and 192.168.1.1",
    "host (10.0.0.1 or 10.0.1.1)",
    "tcp port (80 or 443) and host 10.0.0.1",
    "port (53 or not 80)",
    "tcp or udp port 53",
    "(tcp or udp) and port 53",
    "ip or ip6 and tcp",
    "ip proto 6",
    "ip6 proto 17",
    "proto 17",
    "ip proto \\tcp",
    "ether proto \\ip",
    "ether proto 0x806",
    "ether proto 0x88cc",
    "ip6 proto 44",
    "proto \\icmp",
    "ip proto 17 or 1",
    "ether host 02:00:00:00:00:01",
    "ether src 02:00:00:00:00:02",
    "ether dst 02:0:0:0:0:2",
    "ether broadcast",
    "broadcast",
    "ether multicast",
    "multicast",
    "ip multicast",
    "ip6 multicast",
    "vlan",
    "vlan 100",
    "vlan 7 and vlan 100",
    "vlan and tcp",
    "vlan 100 and host 10.0.0.1",
    "not vlan",
    "vlan or tcp",
    "vlan and vlan and udp port 53",
    "vlan 100 and ip6",
    "vlan 100 && arp",
    "mpls",
    "mpls 16",
    "mpls 1000 and mpls 16",
    "mpls and ip",
    "mpls and tcp port 80",
    "mpls 16 and host 10.0.0.1",
    "mpls 1000 and mpls and ip6",
    "vlan and mpls 16 and udp",
    "mpls and net 10.0.0.0/8",
    "mpls and host 2001:db8::1",
    "less 150",
    "greater 1000",
    "len > 100",
    "len <= 128",
    "len = 1200",
    "len - 8 > 1000",
    "len % 2 = 1",
    "tcp[13] & 2 != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn",
    "tcp[tcpflags] = tcp-syn|tcp-ack",
    "icmp[icmptype] == icmp-echo",
    "icmp[icmptype] != icmp-echo and icmp[icmpcode] = 1",
    "icmp[0] = 8 or udp",
    "ip[0] & 0xf != 5",
    "ip[8] < 65",
    "ip[2:2] > 28",
    "ip[12:4] = 0x0a000001",
    "ip[16] >= 224",
    "ether[0] & 1 = 1",
    "ether[12:2] = 0x800",
    "udp[0:2] = 53",
    "udp[0:2] + udp[2:2] = 60",
    "ip[ip[8] - 62] = 0",
    "tcp[0:2] > tcp[2:2]",
    "tcp[((tcp[12:1] & 0xf0) >> 2):2] = 0",
    "arp[6:2] = 2",
    "rarp[6:2] = 3",
    "ip6[6] = 6",
    "icmp6[0] = 128",
    "icmp6[0] = 8",
    "(ip[0] & 0xf) * 4 + 8 = 36",
    "ip[0] >> 4 = 4",
    "ip[0] << 1 > 130",
    "ip[8] ^ 64 = 0",
    "ip[8] / 2 = 32",
    "1 = 1",
    "0x10 = 020",
    "ip and not (tcp or udp)",
    "ip[6:2] & 0x1fff = 0 and tcp",
    "ip[8] - 65 = -1",
    "ip[1] = 0 && ! ip[9] = 6",
    "len > 100 and not len > 1000",
    "(host 10.0.0.1 and (port 80 or 443)) or arp",
    "ether proto \\ip6 and not ip6 proto 6",
];

/// Whether tcpdump is there. `./test` installs it.
fn has_tcpdump() -> bool {
    Command::new("tcpdump").arg("--version").output().is_ok()
}

/// A file of frames, each of which tcpdump selects or not.
struct Oracle {
    file: std::path::PathBuf,
    frames: Vec<Vec<u8>>,
}

impl Oracle {
    fn new(name: &str) -> Oracle {
        let frames = frames();
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65535, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for (number, frame) in frames.iter().enumerate() {
            for word in [number as u32, 0, frame.len() as u32, frame.len() as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
        let file = std::env::temp_dir().join(format!("millrace-inputs-{}-{name}.pcap", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        Oracle { file, frames }
    }

    /// The numbers of the frames that tcpdump selects: it copies them with their times.
    fn selected(&self, expression: &str) -> Result<Vec<usize>, String> {
        let mut command = Command::new("tcpdump");
        let output = command.arg("-r").arg(&self.file).args(["-w", "-", expression]).output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let mut rest = &output.stdout[24..];
        let mut selected = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
            selected.push(word(0));
            rest = &rest[16 + word(8)..];
        }
        Ok(selected)
    }

    fn ours(&self, filter: &Filter) -> Vec<usize> {
        (0..self.frames.len()).filter(|at| filter.selects(&self.frames[*at])).collect()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

#[test]
fn written_expressions_select_what_tcpdump_selects() {
    if !has_tcpdump() {
        println!("written_expressions: skipped, tcpdump is not installed");
        return;
    }
    let oracle = Oracle::new("written");
    let mut wrong = Vec::new();
    for expression in EXPRESSIONS {
        let ours = match Filter::compile(expression) {
            Ok(filter) => oracle.ours(&filter),
            Err(error) => {
                wrong.push(format!("{error}"));
                continue;
            }
        };
        match oracle.selected(expression) {
            Ok(theirs) if theirs == ours => {}
            Ok(theirs) => {
                wrong.push(format!("`{expression}`: {} frames, tcpdump {}", ours.len(), theirs.len()))
            }
            Err(error) => {
                wrong.push(format!("`{expression}`: tcpdump: {}", error.lines().last().unwrap_or("")))
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Numbers in no order, the same each time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as usize
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    /// An expression of at most so many levels.
    fn expression(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 7 } else { 10 }) {
            0 => self.of(&["ip", "ip6", "arp", "tcp", "udp", "icmp", "icmp6", "multicast"]).to_owned(),
            1 => format!(
                "{}{} {}",
                self.of(&["", "tcp ", "udp "]),
                self.of(&["port", "src port", "dst port"]),
                self.of(&["53", "80", "443", "7"])
            ),
            2 => format!(
                "{}host {}",
                self.of(&["", "src ", "dst ", "src and dst "]),
                self.of(&["10.0.0.1", "10.1.2.3", "2001:db8::1", "192.168.1.1"])
            ),
            3 => format!(
                "{}net {}",
                self.of(&["", "src ", "dst "]),
                self.of(&["10.0.0.0/8", "10.1", "192.168.0.0/23", "fd00::/8"])
            ),
            4 => format!("{}proto {}", self.of(&["ip ", "ip6 ", ""]), self.of(&["6", "17", "1", "44"])),
            5 => {
                // Of one header, which comes first: libpcap forgets what bytes after an arithmetic sign demand of a frame.
                let bytes: &[&str] = match self.below(5) {
                    0 => &["ip[8]", "ip[2:2]", "ip[0] & 0xf", "ip[16:4]"],
                    1 => &["tcp[13]", "tcp[0:2]", "tcp[((tcp[12] & 0xf0) >> 2) - 2:2]"],
                    2 => &["udp[2:2]", "udp[0:2]", "udp[len % 4]"],
                    3 => &["ip6[6]", "ip6[40:2]"],
                    _ => &["arp[6:2]", "arp[7]"],
                };
                let first = self.of(bytes);
                let sign = self.of(&["+", "-", "*", "&", "|", "^", "<< 2 +", ">> 1 |"]);
                let (left, right) = (self.number(bytes, 2), self.number(bytes, 1));
                format!("{first} {sign} {left} {} {right}", self.of(&["=", "!=", "<", "<=", ">", ">="]))
            }
            6 => format!("{} {}", self.of(&["less", "greater"]), self.of(&["100", "128", "140", "1000"])),
            7 => format!("not {}", self.expression(depth - 1)),
            8 => format!("({})", self.expression(depth - 1)),
            _ => {
                let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("{left} {} {right}", self.of(&["and", "or", "&&", "||"]))
            }
        }
    }

    fn number(&mut self, bytes: &[&'static str], depth: usize) -> String {
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => self.of(&["0", "1", "2", "8", "53", "80", "128", "0xffff"]).to_owned(),
            1 => "len".to_owned(),
            2 => self.of(bytes).to_owned(),
            3 => format!("({})", self.number(bytes, depth - 1)),
            _ => {
                let left = self.number(bytes, depth - 1);
                let sign = self.of(&["+", "-", "*", "&", "|", "^", "<< 2 +", ">> 1 |"]);
                format!("{left} {sign} {}", self.number(bytes, depth - 1))
            }
        }
    }
}

#[test]
fn random_expressions_select_what_tcpdump_selects() {
    if !has_tcpdump() {
        println!("random_expressions: skipped, tcpdump is not installed");
        return;
    }
    let oracle = Oracle::new("random");
    let mut numbers = Numbers(7);
    let (mut compared, mut wrong) = (0, Vec::new());
    while compared < 300 {
        let expression = numbers.expression(4);
        // Some are refused by libpcap because they select nothing.
        let Ok(theirs) = oracle.selected(&expression) else { continue };
        compared += 1;
        match Filter::compile(&expression) {
            Ok(filter) if oracle.ours(&filter) == theirs => {}
            Ok(filter) => wrong.push(format!(
                "`{expression}`: {} frames, tcpdump {}",
                oracle.ours(&filter).len(),
                theirs.len()
            )),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
