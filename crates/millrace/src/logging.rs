//! The log of a run: what happened when, for people or for programs that collect it. Packets are logged at the level
//! `trace` alone. The level can be changed while the switch runs, and the file be opened again once another program has moved it away.

use crate::cli::{LogArgs, LogFormat, LogLevel};
use crate::findings::Failure;
use crate::log_file::LogFile;
use crate::stories::Stories;
use clap::ValueEnum;
use millrace_dataplane::Control;
use millrace_printable::printable_line;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tracing::{Event, Level, Subscriber, enabled, info};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// The log of this process.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    filter: reload::Handle<Targets, Registry>,
    place: Arc<Destination>,
}

/// Where lines go.
#[derive(Debug)]
struct Destination {
    sink: Sink,
    /// Whether lines are for people, and not for a program that would read what is hidden in them.
    is_text: bool,
}

#[derive(Debug)]
enum Sink {
    Stdout,
    Stderr,
    File(Mutex<LogFile>),
}

/// Names of standard output.
const STDOUT: &[&str] = &["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// Names of standard error.
const STDERR: &[&str] = &["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"];

/// Starts the log. Nothing is logged unless that is asked for, now or later.
pub(crate) fn start(args: &LogArgs) -> Result<Log, Failure> {
    let asked_for = args.log.is_some() || args.log_format.is_some();
    let level = args.log_level.unwrap_or(if asked_for { LogLevel::Info } else { LogLevel::Off });
    let sink = match &args.log {
        // Opened again, the file that it may be would be written from its beginning, and a socket cannot be opened.
        Some(path) if is_one_of(path, STDOUT) => Sink::Stdout,
        Some(path) if is_one_of(path, STDERR) => Sink::Stderr,
        Some(path) => {
            let file = LogFile::open(path, args.log_max_size, args.log_max_files);
            Sink::File(Mutex::new(file.map_err(|error| Failure::failed(path.display(), error))?))
        }
        None => Sink::Stderr,
    };
    let format = args.log_format.unwrap_or(LogFormat::Text);
    let place = Arc::new(Destination { sink, is_text: format != LogFormat::Json });
    let is_terminal = args.log.is_none() && io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(Lines(Arc::clone(&place))).with_ansi(false);
    let layer = match format {
        // Whoever reads along knows which program this is.
        LogFormat::Text => lines.with_target(!is_terminal).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Bmv2 => lines.event_format(Bmv2Lines).boxed(),
    };
    let (filter, handle) = reload::Layer::new(ours(level.filter()));
    let started = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    started.map_err(|error| Failure::failed("the log", error))?;
    Ok(Log { filter: handle, place })
}

/// What libraries say of themselves is of use to nobody who runs a switch.
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("millrace", level)
}

fn is_one_of(path: &Path, names: &[&str]) -> bool {
    names.iter().any(|name| path == Path::new(name))
}

/// Lines as bmv2 writes them: `[14:05:09.250] [bmv2] [D] [thread 71] text`. The time is UTC.
struct Bmv2Lines;

impl<S, N> FormatEvent<S, N> for Bmv2Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let letter = match *event.metadata().level() {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            Level::INFO => 'I',
            Level::DEBUG => 'D',
            Level::TRACE => 'T',
        };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seconds, milliseconds) = (since.as_secs(), since.subsec_millis());
        let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
        let seconds = seconds % 60;
        write!(writer, "[{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}] ")?;
        write!(writer, "[bmv2] [{letter}] [thread {}] ", std::process::id())?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

impl Log {
    /// Whether there is a file.
    pub(crate) fn has_file(&self) -> bool {
        matches!(self.place.sink, Sink::File(_))
    }

    /// Goes on in the file that has the name now: another one, once the old one was moved away.
    pub(crate) fn reopen(&self) -> Result<(), Failure> {
        match &self.place.sink {
            Sink::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.reopen().map_err(|error| Failure::failed("the log", error))
            }
            Sink::Stdout | Sink::Stderr => Ok(()),
        }
    }

    fn level(&self) -> LogLevel {
        let level = self.filter.with_current(|filter| filter.iter().next().map(|(_, level)| level));
        LogLevel::of(level.ok().flatten().unwrap_or(LevelFilter::OFF))
    }

    fn set_level(&self, level: LogLevel) -> Result<(), String> {
        self.filter.modify(|filter| *filter = ours(level.filter())).map_err(|error| error.to_string())
    }
}

/// The log of a running switch, as clients of its HTTP server change it.
pub(crate) struct LogOfSwitch {
    pub(crate) log: Log,
    pub(crate) control: Control,
    pub(crate) args: LogArgs,
}

impl millrace_observe::Log for LogOfSwitch {
    fn level(&self) -> String {
        self.log.level().name()
    }

    fn set_level(&self, level: &str) -> Result<(), String> {
        let wanted = LogLevel::from_str(level, true).map_err(|_| {
            let known: Vec<String> = LogLevel::value_variants().iter().map(|level| level.name()).collect();
            format!("`{}` is no level of the log: {}", level.escape_debug(), known.join(", "))
        })?;
        let before = self.level();
        let (from, to) = (before.as_str(), wanted.name());
        // Once, at the level that has room for it.
        let is_told = enabled!(Level::INFO);
        if is_told {
            info!(from, to, "log level");
        }
        self.log.set_level(wanted)?;
        if !is_told {
            info!(from, to, "log level");
        }
        // Stories of packets cost time, so the worker tells them to a log that takes them alone.
        self.control.tell_stories(Stories::are_wanted(&self.args)).map_err(|error| error.to_string())
    }
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

    fn of(filter: LevelFilter) -> LogLevel {
        let same = |level: &&LogLevel| level.filter() == filter;
        LogLevel::value_variants().iter().find(same).copied().unwrap_or(LogLevel::Off)
    }

    /// As it is written on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Makes what a line is written to.
#[derive(Clone, Debug)]
struct Lines(Arc<Destination>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        let to = match &self.0.sink {
            Sink::Stdout => To::Stdout,
            Sink::Stderr => To::Stderr,
            Sink::File(file) => To::File(file.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        Line { to, is_text: self.0.is_text }
    }
}

enum To<'a> {
    Stdout,
    Stderr,
    File(MutexGuard<'a, LogFile>),
}

/// What a line is written to, all of it at once.
struct Line<'a> {
    to: To<'a>,
    is_text: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        // JSON has its own way.
        let shown: Cow<'_, str> = match (self.is_text, text.strip_suffix('\n')) {
            (true, Some(line)) => Cow::Owned(format!("{}\n", printable_line(line))),
            (true, None) => printable_line(&text),
            (false, _) => Cow::Borrowed(&*text),
        };
        match &mut self.to {
            To::File(file) => file.write_all(shown.as_bytes())?,
            To::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush())?;
            }
            To::Stderr => io::stderr().lock().write_all(shown.as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
