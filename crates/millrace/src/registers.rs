//! A register map as JSON, written with a design and read by `millrace link`.

use crate::entries::read_utf8;
use crate::findings::Failure;
use millrace_rtl::map::{Field, RegisterMap, WordName};
use millrace_rtl::{PortKind, SoftwarePort};
use serde_json::{Value, json};
use std::path::Path;

/// The register map as JSON.
fn as_json(map: &RegisterMap) -> Value {
    let registers: Vec<_> = (Field::ALL.iter())
        .map(|field| {
            json!({ "name": field.name(), "offset": field.offset(), "writable": field.is_written(), "about": field.about() })
        })
        .collect();
    let ports: Vec<_> = (map.ports.iter().zip(map.c_names()).enumerate())
        .map(|(number, (port, c_name))| {
            json!({ "number": number, "object": port.object, "c_name": c_name, "kind": port.kind.to_string(), "words": port.words,
                    "bits": port.width, "readable": port.readable, "writable": port.writable })
        })
        .collect();
    let tables: Vec<_> = (map.tables.iter())
        .map(|table| {
            let memories: Vec<_> = (table.areas.iter())
                .map(|area| json!({ "name": area.name, "base": area.base, "words": area.words, "bits": area.width }))
                .collect();
            json!({ "port": table.port, "unit": table.kind, "memories": memories })
        })
        .collect();
    let words: Vec<_> = (map.names.iter())
        .map(|word| json!({ "name": word.name, "port": word.port, "address": word.address }))
        .collect();
    json!({ "program": map.program, "cookie": format!("{:#018x}", map.cookie), "ident": RegisterMap::IDENT,
            "version": RegisterMap::VERSION, "bytes": map.size(), "data_offset": RegisterMap::DATA, "data_registers": map.words(),
            "command": { "write": RegisterMap::WRITE, "read": RegisterMap::READ, "next": RegisterMap::NEXT },
            "registers": registers, "ports": ports, "tables": tables, "words": words })
}

/// The files of a register map, each with its name: a header of C, a document, JSON.
pub(crate) fn files(map: &RegisterMap) -> [(&'static str, String); 3] {
    let json = format!("{:#}\n", as_json(map));
    [("registers.h", map.header()), ("registers.md", map.markdown()), ("registers.json", json)]
}

/// The most bytes of a file with a map.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a map from its file, without what is known of the memories of tables.
pub(crate) fn read(path: &Path) -> Result<RegisterMap, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(path.display(), error);
    let text = read_utf8(path, MAX_BYTES)?;
    let json: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    from_json(&json).ok_or_else(|| failed(&"it is no registers.json of millrace rtl"))
}

fn from_json(json: &Value) -> Option<RegisterMap> {
    if json["ident"].as_u64()? != u64::from(RegisterMap::IDENT)
        || json["version"].as_u64()? != u64::from(RegisterMap::VERSION)
    {
        return None;
    }
    let ports = json["ports"].as_array()?.iter().map(|port| {
        let kind = port["kind"].as_str()?;
        Some(SoftwarePort {
            object: port["object"].as_str()?.to_owned(),
            kind: PortKind::ALL.into_iter().find(|other| other.to_string() == kind)?,
            words: port["words"].as_u64()?,
            width: u32::try_from(port["bits"].as_u64()?)
                .ok()
                .filter(|bits| (1..=32 * RegisterMap::MAX_WORDS).contains(bits))?,
            readable: port["readable"].as_bool()?,
            writable: port["writable"].as_bool()?,
        })
    });
    let ports: Vec<SoftwarePort> = ports.collect::<Option<_>>()?;
    let names = json["words"].as_array()?.iter().map(|word| {
        let port = usize::try_from(word["port"].as_u64()?).ok().filter(|port| *port < ports.len())?;
        Some(WordName { name: word["name"].as_str()?.to_owned(), port, address: word["address"].as_u64()? })
    });
    let names = names.collect::<Option<_>>()?;
    Some(RegisterMap {
        program: json["program"].as_str()?.to_owned(),
        cookie: u64::from_str_radix(json["cookie"].as_str()?.strip_prefix("0x")?, 16).ok()?,
        ports,
        tables: Vec::new(),
        names,
    })
}
