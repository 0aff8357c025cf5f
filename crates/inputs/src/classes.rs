//! Classes of packets by a list: of prefixes, where the longest one decides, or of exact values.

use crate::error::InputError;
use crate::filter::mac;
use crate::headers::Headers;
use millrace_tables::engines::{
    Dir24, Dir24Reader, Domain, Exact, ExactReader, Simd, WideLpm, WideLpmReader, Worker,
};
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;

/// Most entries of a list.
pub const MAX_LIST_ENTRIES: usize = 1 << 20;
/// Largest file of a list, in bytes.
pub const MAX_LIST_FILE: u64 = 64 << 20;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Pass = 1,
    Drop = 2,
    Account = 3,
}

impl Class {
    pub(crate) fn named(name: &str) -> Option<Class> {
        match name {
            "pass" => Some(Class::Pass),
            "drop" => Some(Class::Drop),
            "account" => Some(Class::Account),
            _ => None,
        }
    }
}

/// Where a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    File(String),
    Given(String),
    /// A file that was read: its path and its text.
    Read(String, String),
}

/// The entries of a list: words and a class each.
struct Entries {
    name: String,
    entries: Vec<(usize, Vec<String>, Class)>,
}

impl List {
    /// The same with the file read, so that it is not needed again.
    pub(crate) fn read(&self) -> Result<List, InputError> {
        let List::File(path) = self else { return Ok(self.clone()) };
        let failed = |error| InputError::system(format!("read {path}"), error);
        let file = File::open(path).map_err(failed)?;
        let mut text = String::new();
        let size = file.take(MAX_LIST_FILE + 1).read_to_string(&mut text).map_err(failed)?;
        if size as u64 > MAX_LIST_FILE {
            let message = format!("a list has at most {MAX_LIST_FILE} bytes");
            return Err(InputError::List { list: path.clone(), line: 1, message });
        }
        Ok(List::Read(path.clone(), text))
    }

    /// Entries of so many words. `may_account`: whether there is an account to count in.
    fn entries(&self, words: usize, may_account: bool) -> Result<Entries, InputError> {
        let (name, text, is_file) = match self.read()? {
            List::Given(text) => {
                (format!("list `{}`", text.chars().take(40).collect::<String>()), text, false)
            }
            List::File(name) => (name, String::new(), true),
            List::Read(name, text) => (name, text, true),
        };
        let mut entries = Vec::new();
        let mut number = 0;
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            for part in line.split(',') {
                number += usize::from(!is_file);
                let place = if is_file { at + 1 } else { number };
                let refused = |message: String| InputError::List { list: name.clone(), line: place, message };
                let mut parts: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
                if parts.is_empty() {
                    continue;
                }
                let class = match parts.len() == words + 1 {
                    true => parts.pop().and_then(|word| Class::named(&word)),
                    false => (parts.len() == words).then_some(Class::Pass),
                };
                let Some(class) = class else {
                    let wanted = if words == 1 { "a value".to_owned() } else { format!("{words} values") };
                    return Err(refused(format!(
                        "{wanted} and perhaps `pass`, `drop` or `account` were expected"
                    )));
                };
                if class == Class::Account && !may_account {
                    return Err(refused("`account` needs `else account FILE` after the list".to_owned()));
                }
                if entries.len() == MAX_LIST_ENTRIES {
                    return Err(refused(format!("a list has at most {MAX_LIST_ENTRIES} entries")));
                }
                entries.push((place, parts, class));
            }
        }
        Ok(Entries { name, entries })
    }
}

/// Which address decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Destination,
}

/// Packets by the longest prefix of an address.
pub(crate) struct Prefixes {
    side: Side,
    v4: Dir24Reader,
    v6: WideLpmReader,
    worker: Worker,
    // The writing sides own what readers read.
    _writers: (Dir24, WideLpm),
}

/// Keys of a batch, with the places of their packets.
type Keys = ([u64; 128], [u32; 64], [u8; 64], usize);

impl Prefixes {
    pub(crate) fn open(side: Side, list: &List, may_account: bool) -> Result<Prefixes, InputError> {
        let Entries { name, entries } = list.entries(1, may_account)?;
        let domain = Domain::new();
        let size = entries.len() as u32;
        let memory = |_| InputError::Memory;
        let mut v4 = Dir24::new(&domain, 32, size, Simd::best()).map_err(memory)?;
        let mut v6 = WideLpm::new(&domain, 128, size, Simd::best()).map_err(memory)?;
        let mut seen = std::collections::HashSet::new();
        for (line, words, class) in entries {
            let refused = |message: String| InputError::List { list: name.clone(), line, message };
            let text = words.concat();
            let (address, length) = prefix(&text).map_err(refused)?;
            if !seen.insert((address, length)) {
                return Err(refused(format!("{text} is there twice")));
            }
            match address {
                IpAddr::V4(address) => v4.insert(u32::from(address).into(), length, class as u32),
                IpAddr::V6(address) => {
                    let bits = u128::from(address);
                    v6.set(&[bits as u64, (bits >> 64) as u64], length, class as u32)
                }
            }
            .map_err(memory)?;
        }
        v6.commit().map_err(memory)?;
        Ok(Prefixes { side, v4: v4.reader(), v6: v6.reader(), worker: domain.worker(), _writers: (v4, v6) })
    }

    /// The class of each packet whose bit is set; 0 where no prefix has its address.
    pub(crate) fn classes(&self, headers: &[Headers], wanted: u64, classes: &mut [u32; 64]) {
        let mut v4: Keys = ([0; 128], [0; 64], [0; 64], 0);
        let mut v6: Keys = ([0; 128], [0; 64], [0; 64], 0);
        for (at, headers) in headers.iter().enumerate().filter(|(at, _)| wanted >> at & 1 == 1) {
            let address = match self.side {
                Side::Source => &headers.key.source,
                Side::Destination => &headers.key.destination,
            };
            let (keys, _, places, count) = if headers.key.version == 4 { &mut v4 } else { &mut v6 };
            let bits = u128::from_be_bytes(*address);
            match headers.key.version {
                4 => keys[*count] = (bits >> 96) as u64,
                6 => (keys[2 * *count], keys[2 * *count + 1]) = (bits as u64, (bits >> 64) as u64),
                _ => continue,
            }
            places[*count] = at as u8;
            *count += 1;
        }
        classes.fill(0);
        let (keys, out, places, count) = &mut v4;
        self.v4.lookup(&self.worker, &keys[..*count], &mut out[..*count]);
        (0..*count).for_each(|at| classes[usize::from(places[at])] = out[at]);
        let (keys, out, places, count) = &mut v6;
        self.v6.lookup(&self.worker, &keys[..2 * *count], &mut out[..*count]);
        (0..*count).for_each(|at| classes[usize::from(places[at])] = out[at]);
    }
}

/// `ADDRESS/LENGTH`, or an address alone.
fn prefix(text: &str) -> Result<(IpAddr, u32), String> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let wrong = || format!("`{text}` is no prefix, as 10.0.0.0/8 or 2001:db8::/32");
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), |length| length.parse().map_err(|_| wrong()))?;
    let bits = match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => address.into(),
    };
    if length > most {
        return Err(format!("a prefix of this address has at most {most} bits, not {length}"));
    }
    match bits.checked_shl(length).unwrap_or(0) {
        0 => Ok((address, length)),
        _ => Err(format!("{address} has bits beyond its prefix of {length}")),
    }
}

/// What exact values are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyField {
    Source,
    Destination,
    Protocol,
    SourcePort,
    DestinationPort,
    Vlan,
    EtherType,
    EtherSource,
    EtherDestination,
}

pub(crate) const KEY_FIELDS: [(&str, KeyField); 9] = [
    ("src", KeyField::Source),
    ("dst", KeyField::Destination),
    ("proto", KeyField::Protocol),
    ("sport", KeyField::SourcePort),
    ("dport", KeyField::DestinationPort),
    ("vlan", KeyField::Vlan),
    ("ethertype", KeyField::EtherType),
    ("ethersrc", KeyField::EtherSource),
    ("etherdst", KeyField::EtherDestination),
];

/// Bytes of a key: all fields, and the version of each address.
const KEY_BYTES: usize = 56;
type KeyBytes = [u8; KEY_BYTES];

/// Packets by exact values.
pub(crate) struct Values {
    fields: Vec<KeyField>,
    limbs: usize,
    table: ExactReader,
    worker: Worker,
    _writer: Exact,
}

/// Adds bytes to a key.
fn add(key: &mut KeyBytes, at: &mut usize, bytes: &[u8]) {
    if let Some(place) = key.get_mut(*at..*at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
    *at += bytes.len();
}

impl KeyField {
    /// Adds the field of a frame.
    fn read(self, frame: &[u8], headers: &Headers, key: &mut KeyBytes, at: &mut usize) {
        let of = &headers.key;
        let ether = |start: usize| frame.get(start..start + 6).unwrap_or(&[0; 6]);
        match self {
            KeyField::Source | KeyField::Destination => {
                add(key, at, if self == KeyField::Source { &of.source } else { &of.destination });
                add(key, at, &[of.version]);
            }
            KeyField::Protocol => add(key, at, &[of.protocol]),
            KeyField::SourcePort => add(key, at, &of.source_port.to_be_bytes()),
            KeyField::DestinationPort => add(key, at, &of.destination_port.to_be_bytes()),
            KeyField::Vlan => add(key, at, &of.vlan.to_be_bytes()),
            KeyField::EtherType => add(key, at, &of.ether_type.to_be_bytes()),
            KeyField::EtherSource => add(key, at, ether(6)),
            KeyField::EtherDestination => add(key, at, ether(0)),
        }
    }

    /// Adds the field as it is written in a list.
    fn write(self, text: &str, key: &mut KeyBytes, at: &mut usize) -> Result<(), String> {
        let number = || match text.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16).ok(),
            None => text.parse::<u16>().ok(),
        };
        let wrong = |wanted: &str| format!("`{text}` is not {wanted}");
        match self {
            KeyField::Source | KeyField::Destination => {
                let mut bytes = [0; 17];
                match text.parse().map_err(|_| wrong("an address"))? {
                    IpAddr::V4(address) => (bytes[..4].copy_from_slice(&address.octets()), bytes[16] = 4),
                    IpAddr::V6(address) => (bytes[..16].copy_from_slice(&address.octets()), bytes[16] = 6),
                };
                add(key, at, &bytes);
            }
            KeyField::Protocol => {
                let named = [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmp6", 58), ("sctp", 132)];
                let named = named.into_iter().find(|(name, _)| *name == text).map(|(_, number)| number);
                let number = named.or_else(|| number().and_then(|number| u8::try_from(number).ok()));
                add(key, at, &[number.ok_or_else(|| wrong("a protocol, as tcp or 6"))?]);
            }
            KeyField::EtherSource | KeyField::EtherDestination => {
                add(key, at, &mac(text).ok_or_else(|| wrong("a hardware address"))?);
            }
            _ => add(key, at, &number().ok_or_else(|| wrong("a number of 16 bits"))?.to_be_bytes()),
        }
        Ok(())
    }
}

/// The limbs of a key.
fn limbs_of(key: &KeyBytes) -> [u64; KEY_BYTES / 8] {
    let (limbs, _) = key.as_chunks::<8>();
    std::array::from_fn(|at| limbs.get(at).map_or(0, |limb| u64::from_le_bytes(*limb)))
}

impl Values {
    pub(crate) fn open(fields: &[KeyField], list: &List, may_account: bool) -> Result<Values, InputError> {
        let Entries { name, entries } = list.entries(fields.len(), may_account)?;
        let (mut blank, mut bytes) = ([0; KEY_BYTES], 0);
        fields.iter().for_each(|field| field.read(&[], &Headers::default(), &mut blank, &mut bytes));
        let limbs = bytes.div_ceil(8).max(1);
        let domain = Domain::new();
        let memory = |_| InputError::Memory;
        let mut table = Exact::new(&domain, limbs, Simd::best()).map_err(memory)?;
        table.reserve(entries.len()).map_err(memory)?;
        for (line, words, class) in entries {
            let refused = |message: String| InputError::List { list: name.clone(), line, message };
            let (mut key, mut at) = ([0; KEY_BYTES], 0);
            for (field, word) in fields.iter().zip(&words) {
                field.write(word, &mut key, &mut at).map_err(refused)?;
            }
            let key = limbs_of(&key);
            if table.get(&key[..limbs]) != 0 {
                return Err(refused(format!("{} is there twice", words.join(" "))));
            }
            table.set(&key[..limbs], class as u32).map_err(memory)?;
        }
        let (reader, worker) = (table.reader(), domain.worker());
        Ok(Values { fields: fields.to_vec(), limbs, table: reader, worker, _writer: table })
    }

    /// The class of each frame whose bit is set; 0 where its values are not in the list.
    pub(crate) fn classes<'f>(
        &self,
        frames: impl Iterator<Item = (&'f [u8], &'f Headers)>,
        wanted: u64,
        classes: &mut [u32; 64],
    ) {
        let mut keys = [0; 64 * KEY_BYTES / 8];
        let (mut places, mut found, mut count) = ([0u8; 64], [0; 64], 0);
        for (at, (frame, headers)) in frames.enumerate().filter(|(at, _)| wanted >> at & 1 == 1) {
            let (mut key, mut used) = ([0; KEY_BYTES], 0);
            self.fields.iter().for_each(|field| field.read(frame, headers, &mut key, &mut used));
            keys[count * self.limbs..(count + 1) * self.limbs].copy_from_slice(&limbs_of(&key)[..self.limbs]);
            places[count] = at as u8;
            count += 1;
        }
        classes.fill(0);
        self.table.lookup(&self.worker, &keys[..count * self.limbs], &mut found[..count]);
        (0..count).for_each(|at| classes[usize::from(places[at])] = found[at]);
    }
}
