//! The log of a run: what happened when, for people or for programs that collect it. Packets are logged at the level
//! `trace` alone.

use crate::cli::{LogArgs, LogFormat, LogLevel};
use crate::findings::Failure;
use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::sync::Mutex;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts the log, if one is asked for.
pub(crate) fn start(args: &LogArgs) -> Result<(), Failure> {
    let asked_for = args.log.is_some() || args.log_format.is_some();
    let level = match args.log_level {
        None if !asked_for => return Ok(()),
        None => LevelFilter::INFO,
        Some(level) => level.filter(),
    };
    let writer = match &args.log {
        Some(path) => {
            let file = OpenOptions::new().append(true).create(true).open(path);
            BoxMakeWriter::new(Mutex::new(file.map_err(|error| Failure::failed(path.display(), error))?))
        }
        None => BoxMakeWriter::new(std::io::stderr),
    };
    // What libraries say of themselves is of use to nobody who runs a switch.
    let ours = Targets::new().with_target("millrace", level);
    let is_terminal = args.log.is_none() && std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
    let layer = match args.log_format.unwrap_or(LogFormat::Text) {
        // Whoever reads along knows which program this is.
        LogFormat::Text => lines.with_target(!is_terminal).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let started = tracing_subscriber::registry().with(layer.with_filter(ours)).try_init();
    started.map_err(|error| Failure::failed("the log", error))
}

impl LogLevel {
    fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}
