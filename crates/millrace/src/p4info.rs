//! `millrace p4info`, and the forms in which P4Info is written.

use crate::cli::{P4infoArgs, P4runtimeVersion};
use crate::findings::{Failure, Findings};
use crate::output::say_line;
use crate::source::{load_any, write_bytes};
use clap::ValueEnum;
use millrace_describe::p4info::{Version, keep_to, to_text};
use millrace_messages::config::P4Info;
use millrace_messages::json::write;
use prost::Message;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn p4info(args: &P4infoArgs, findings: &mut Findings) -> Result<(), Failure> {
    let loaded = load_any(&args.program.path, &args.program.source, findings)?;
    let mut info = loaded.p4info();
    keep_to(args.p4runtime.into(), &mut info);
    let named = || args.output.as_deref().and_then(Form::by_ending);
    let form = args.format.or_else(named).unwrap_or(Form::Text);
    let bytes = form.write(&info).map_err(Failure::Failed)?;
    if !args.json {
        return write_bytes(args.output.as_deref(), &bytes);
    }
    if let Some(path) = &args.output {
        write_bytes(Some(path), &bytes)?;
    }
    let failed = |error: &dyn std::fmt::Display| Failure::failed("the P4Info", error);
    let object = write(&info).map_err(|error| failed(&error))?;
    let object: Value = serde_json::from_str(&object).map_err(|error| failed(&error))?;
    say_line(
        json!({ "ok": true, "p4info": object, "output": args.output.as_ref().map(|path| path.display().to_string()) }),
    );
    Ok(())
}

impl From<P4runtimeVersion> for Version {
    fn from(version: P4runtimeVersion) -> Version {
        match version {
            P4runtimeVersion::V1_3 => Version::V1_3,
            P4runtimeVersion::V1_4 => Version::V1_4,
            P4runtimeVersion::V1_5 => Version::V1_5,
        }
    }
}

/// A form of protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Text,
    Json,
    Binary,
}

impl Form {
    /// The form that the ending of a file stands for.
    pub(crate) fn by_ending(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()? {
            "txtpb" | "txt" => Some(Form::Text),
            "json" => Some(Form::Json),
            "bin" => Some(Form::Binary),
            _ => None,
        }
    }

    /// Writes P4Info.
    pub(crate) fn write(self, info: &P4Info) -> Result<Vec<u8>, String> {
        match self {
            Form::Text => Ok(to_text(info).into_bytes()),
            Form::Json => write(info).map(String::into_bytes),
            Form::Binary => Ok(info.encode_to_vec()),
        }
    }
}
