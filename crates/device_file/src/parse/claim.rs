//! `match` and `tag` of a virtual port.

use crate::keys;
use crate::limits::{MAX_LIST, MAX_MATCHED};
use crate::model::*;
use millrace_printable::counted;
use millrace_toml_sections::Table;
use millrace_toml_sections::{Finding, Findings, Kind, quoted};
use toml::de::DeValue;

/// The keys of a match that stand for one kind of frames.
const HEADER: [&str; 3] = ["vlan", "inner", "mac"];

/// The claim of a virtual port; none if it is wrong.
pub(super) fn claim(port: &Table<'_>, findings: &mut Findings) -> Option<Claim> {
    let before = findings.count();
    let claim = match port.table("match", &keys::MATCH, findings) {
        Some(table) => read(&table, findings),
        None => Claim { frames: Frames::All, priority: 0 },
    };
    (findings.count() == before).then_some(claim)
}

fn read(table: &Table<'_>, findings: &mut Findings) -> Claim {
    let priority = table.number("priority", findings).unwrap_or(0) as u16;
    let vlan = table.number("vlan", findings).map(|vlan| vlan as u16);
    let inner = table.number("inner", findings).map(|inner| inner as u16);
    let mac = mac(table, findings);
    let bytes = bytes(table, findings);
    let id = table.number("id", findings).map(|id| id as u32);
    if table.has("inner") && !table.has("vlan") {
        let message = "`inner` needs `vlan`: it is the tag after that one";
        findings.push(Finding::new(Kind::Conflict, table.at("inner"), message));
    }
    for key in ["bytes", "id"] {
        let other = HEADER.iter().chain(&["bytes"]).find(|other| **other != key && table.has(other));
        if let (true, Some(other)) = (table.has(key), other) {
            let message = format!("a match has `{key}` or `{other}`, not both");
            let finding = Finding::new(Kind::Conflict, table.at(key), message);
            findings.push(finding.also(table.at(other), format!("`{other}` is here")));
        }
    }
    let frames = match (bytes, id) {
        (Some(bytes), _) => Frames::Bytes(bytes),
        (None, Some(id)) => Frames::Id(id),
        (None, None) if vlan.is_none() && inner.is_none() && mac.is_none() => Frames::All,
        (None, None) => Frames::Header { vlan, inner, mac },
    };
    Claim { frames, priority }
}

fn mac(table: &Table<'_>, findings: &mut Findings) -> Option<Mac> {
    let text = table.text("mac", findings)?;
    let at = table.at("mac");
    let parts: Option<Vec<u8>> = text
        .split(':')
        .map(|part| {
            (part.len() == 2).then(|| hexadecimal(part)).flatten().and_then(|bytes| bytes.first().copied())
        })
        .collect();
    let Some(address) = parts.and_then(|parts| <[u8; 6]>::try_from(parts).ok()) else {
        let message =
            format!("`mac` is {}: an address is expected, such as \"02:00:00:00:00:01\"", quoted(&text));
        findings.push(Finding::new(Kind::Value, at, message));
        return None;
    };
    if address[0] & 1 == 1 {
        let message = format!("`mac` is {}: multicast is no station, `broadcast` takes it", quoted(&text));
        findings.push(Finding::new(Kind::Value, at, message));
        return None;
    }
    Some(Mac(address))
}

fn bytes(table: &Table<'_>, findings: &mut Findings) -> Option<Vec<Bytes>> {
    if !table.has("bytes") {
        return None;
    }
    let pieces = table.tables("bytes", &keys::BYTES, (MAX_LIST, "MAX_LIST"), findings);
    if table.value("bytes").and_then(|value| value.get_ref().as_array()).is_some_and(|list| list.is_empty()) {
        let message = "`bytes` is empty: `match = {}` is all frames";
        findings.push(Finding::new(Kind::Value, table.at("bytes"), message));
    }
    let mut read = Vec::new();
    for piece in &pieces {
        read.extend(masked(piece, findings));
    }
    let mut known: [Option<(u8, u8)>; MAX_MATCHED] = [None; MAX_MATCHED];
    for (bytes, piece) in read.iter().zip(&pieces) {
        for (offset, (value, mask)) in bytes.value.iter().zip(&bytes.mask).enumerate() {
            let place = usize::from(bytes.at) + offset;
            let (old, old_mask) = known[place].unwrap_or((0, 0));
            if (old ^ value) & (old_mask & mask) != 0 {
                let message = format!("byte {place} is to have two values: no frame matches");
                findings.push(Finding::new(Kind::Conflict, piece.at("value"), message));
                break;
            }
            known[place] = Some((old | value, old_mask | mask));
        }
    }
    Some(read)
}

fn masked(table: &Table<'_>, findings: &mut Findings) -> Option<Bytes> {
    let at = table.number("at", findings);
    let value = digits(table, "value", findings);
    let mask = match table.has("mask") {
        true => digits(table, "mask", findings),
        false => value.as_ref().map(|value| vec![0xff; value.len()]),
    };
    let (at, value, mask) = (at?, value?, mask?);
    if value.len() != mask.len() {
        let message = format!("`mask` has {}, `value` has {}", counted(mask.len(), "byte"), value.len());
        findings
            .push(Finding::new(Kind::Conflict, table.at("mask"), message).also(table.at("value"), "here"));
        return None;
    }
    if value.iter().zip(&mask).any(|(value, mask)| value & !mask != 0) {
        let message = "`value` has bits that `mask` leaves out: no frame matches";
        findings
            .push(Finding::new(Kind::Conflict, table.at("value"), message).also(table.at("mask"), "here"));
        return None;
    }
    if at as usize + value.len() > MAX_MATCHED {
        let message = format!("the bytes end after byte {MAX_MATCHED} of the frame (MAX_MATCHED)");
        findings.push(Finding::new(Kind::Limit, table.at("value"), message));
        return None;
    }
    Some(Bytes { at: at as u8, value, mask })
}

fn digits(table: &Table<'_>, key: &str, findings: &mut Findings) -> Option<Vec<u8>> {
    let text = table.text(key, findings)?;
    let bytes = text.strip_prefix("0x").and_then(hexadecimal).filter(|bytes| !bytes.is_empty());
    if bytes.is_none() {
        let message = format!(
            "`{key}` is {}: hexadecimal digits are expected, two for each byte, such as \"0x8100\"",
            quoted(&text)
        );
        findings.push(Finding::new(Kind::Value, table.at(key), message));
    }
    bytes
}

/// Two digits for each byte.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

pub(super) fn tag(port: &Table<'_>, claim: Option<&Claim>, findings: &mut Findings) -> Tag {
    let rewritten = port.value("tag").is_some_and(|value| matches!(value.get_ref(), DeValue::Table(_)));
    let tag = if rewritten {
        let table = port.table("tag", &keys::TAG, findings);
        let vlan = table.and_then(|table| table.number("rewrite", findings));
        Tag::Rewrite(vlan.unwrap_or(1) as u16)
    } else {
        match port.text("tag", findings).as_deref() {
            Some("strip") => Tag::Strip,
            None | Some("keep") => Tag::Keep,
            Some(other) => {
                let message = format!(
                    "`tag` is {}: \"keep\", \"strip\" or {{ rewrite = VLAN }} is expected",
                    quoted(other)
                );
                findings.push(Finding::new(Kind::Value, port.at("tag"), message));
                Tag::Keep
            }
        }
    };
    // What was taken off could not be put back.
    if tag != Tag::Keep
        && let Some(claim) = claim
        && !matches!(claim.frames, Frames::Header { vlan: Some(_), .. })
    {
        let message =
            "a tag that is stripped or rewritten needs `vlan` in `match`: it is put back on the path out";
        findings.push(Finding::new(Kind::Conflict, port.at("tag"), message));
    }
    tag
}
