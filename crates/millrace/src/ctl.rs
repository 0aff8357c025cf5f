//! `millrace ctl`: a running device with many virtual switches, over a socket of this machine, or over gRPC from any.

mod arguments;
mod graph;
mod sent;
mod show;
mod table;

use crate::cli::ProgramArgs;
use crate::entries::read_utf8;
use crate::findings::{Failure, Findings};
use crate::grpc;
use crate::output::{say, say_line, tell, tell_line};
use crate::source::{load_any, write_output};
pub(crate) use arguments::name;
use arguments::{end, millionths};
use clap::{Args, Subcommand, ValueEnum};
use millrace_access::{MAX_TOKEN_FILE, read_secret};
use millrace_ctl_api::{Answer, Client, ClientError, MAX_REQUEST, Probation, Refused, Request};
use millrace_device_file::{MAX_FILE, MAX_SHOWN, MAX_WAITING, toml_string};
use millrace_listen::{Address, P4RUNTIME, is_local};
use millrace_p4runtime_api::client::endpoint;
use millrace_printable::printable_line;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The folder of the sockets of devices.
const SOCKETS: &str = "/run/millrace";
/// The name of a device that has none in its file.
const DEVICE: &str = "millrace";

#[derive(Debug, Args)]
pub(crate) struct CtlCommand {
    #[command(subcommand)]
    what: What,
    /// The socket of the device [default: /run/millrace/millrace.sock]
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// The name of the device, whose socket is /run/millrace/NAME.sock
    #[arg(long, value_name = "NAME", global = true, value_parser = name)]
    device: Option<String>,
    /// Where the device serves gRPC, to reach it there: on any machine, if it has `grpc-ctl`
    #[arg(long, value_name = "ADDR|PORT", global = true)]
    grpc: Option<Address>,
    /// The authority that signed the server's certificate, for TLS (PEM)
    #[arg(long, value_name = "FILE", global = true)]
    grpc_ca: Option<PathBuf>,
    /// The name in the server's certificate; the address if not given
    #[arg(long, value_name = "NAME", global = true)]
    grpc_name: Option<String>,
    /// The own certificate, for mutual TLS (PEM)
    #[arg(long, value_name = "FILE", global = true)]
    grpc_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", global = true)]
    grpc_key: Option<PathBuf>,
    /// The file that holds the token of a tenant, or over gRPC of the operator; without it the user who asks counts, over gRPC the
    /// certificate
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says which switches there are, and how each is
    List,
    /// Says what physical ports and switches have counted
    Stats {
        /// Of that switch alone
        #[arg(value_name = "SWITCH")]
        switch: Option<String>,
    },
    /// Says what is connected with what
    Graph {
        /// As an indented list, for Graphviz, or as one JSON object
        #[arg(long, value_enum, default_value_t = GraphForm::Text)]
        form: GraphForm,
    },
    /// Prints the file of the device as it runs now
    Show,
    /// Has the device become as a file says, by the smallest changes
    Apply {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Says what would change, and changes nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Adds what a file has: tenants, ports, switches, links
    Load {
        /// The file, with those sections alone that are added
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Removes a switch, with its links
    Remove(SwitchArg),
    /// Has a switch take packets
    Start(SwitchArg),
    /// Has a switch take no packets; its program and entries stay
    Stop(SwitchArg),
    /// Connects two virtual ports
    Link(LinkArgs),
    /// Removes the link between two virtual ports
    Unlink(EndArgs),
    /// Has a switch go on with another program: no packet is lost, and what was written is kept as far as it fits
    Swap(Box<SwapArgs>),
    /// Has the program before the last swap come back, with the state that it had then
    Rollback(SwitchArg),
    /// Prints the program, the entries and the state of a switch
    Snapshot {
        #[command(flatten)]
        switch: SwitchArg,
        /// Where to write it; standard output if not given
        #[arg(short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Has a switch go on with what a snapshot holds
    Restore {
        #[command(flatten)]
        switch: SwitchArg,
        /// The snapshot
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Has a candidate run next to a switch, and compares what both send for the same packets
    Shadow(Box<ShadowArgs>),
}

/// A switch.
#[derive(Debug, Args)]
struct SwitchArg {
    /// The switch
    #[arg(value_name = "SWITCH")]
    switch: String,
}

/// Two virtual ports.
#[derive(Debug, Args)]
struct EndArgs {
    /// A virtual port
    #[arg(value_name = "SWITCH:PORT", value_parser = end)]
    one: String,
    /// The other one
    #[arg(value_name = "SWITCH:PORT", value_parser = end)]
    other: String,
}

/// What a link is.
#[derive(Debug, Args)]
struct LinkArgs {
    #[command(flatten)]
    ends: EndArgs,
    /// How long a packet takes, as 1ms
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// The rate in each direction, as 10Gbit
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// The share of packets that are lost, as 0.1%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Most packets that wait in each direction; the next one is dropped
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_WAITING))]
    waiting: Option<u64>,
}

#[derive(Debug, Args)]
struct SwapArgs {
    #[command(flatten)]
    switch: SwitchArg,
    #[command(flatten)]
    program: ProgramArgs,
    /// Refuses the change if not all that was written has a place in the new program
    #[arg(long)]
    keep_everything: bool,
    /// Watches the new program for so many seconds; the one before comes back by itself if too much is dropped
    #[arg(long, value_name = "SECONDS", requires = "max_drops", value_parser = clap::value_parser!(u32).range(1..))]
    probation: Option<u32>,
    /// The largest part of its packets that the new program may drop meanwhile, as 0.5%
    #[arg(long, value_name = "PERCENT", requires = "probation", value_parser = millionths)]
    max_drops: Option<u32>,
}

#[derive(Debug, Args)]
struct ShadowArgs {
    #[command(flatten)]
    switch: SwitchArg,
    /// The program of the candidate, or an image of one; without it, how both compare is said
    #[arg(value_name = "PROG")]
    program: Option<PathBuf>,
    #[command(flatten)]
    source: crate::cli::SourceArgs,
    /// The candidate ends
    #[arg(long, conflicts_with = "program")]
    end: bool,
}

/// A form of what is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GraphForm {
    Text,
    Dot,
    Json,
}

impl CtlCommand {
    /// Whether one JSON object is wanted on standard output.
    pub(crate) fn json(&self) -> bool {
        self.json || matches!(self.what, What::Graph { form: GraphForm::Json })
    }

    /// The path of the socket.
    fn path(&self) -> Result<PathBuf, Failure> {
        match (&self.socket, &self.device) {
            (Some(_), Some(_)) => Err(Failure::Usage(
                "--socket and --device both say which device: give one of them".to_owned(),
            )),
            (Some(path), None) => Ok(path.clone()),
            (None, name) => {
                Ok(Path::new(SOCKETS).join(format!("{}.sock", name.as_deref().unwrap_or(DEVICE))))
            }
        }
    }

    /// Connects to the device.
    fn connect(&self) -> Result<Client, Failure> {
        let json = self.json();
        let token = self.token()?;
        let Some(given) = &self.grpc else {
            let path = self.path()?;
            return Client::connect(&path, token.as_deref()).map_err(|error| refused(error, json));
        };
        let address = grpc::address(given, &P4RUNTIME)?;
        let name = self.grpc_name.clone().unwrap_or_else(|| given.host());
        let certificate = self.grpc_cert.as_deref().zip(self.grpc_key.as_deref());
        let tls = grpc::client_tls(self.grpc_ca.as_deref(), name, certificate)?;
        if tls.is_none() && !is_local(address) {
            return Err(Failure::Usage(format!(
                "a device on another machine, as at {address}, is asked over TLS only: --grpc-ca names the authority of its certificate"
            )));
        }
        let endpoint = endpoint(address, tls.as_ref()).map_err(|error| Failure::failed("TLS", error))?;
        Client::connect_grpc(endpoint, token.as_deref()).map_err(|error| refused(error, json))
    }

    /// Options that need others, or contradict them. Where each may stand, the parser of the command line does not look for that.
    fn check(&self) -> Result<(), Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if self.json && matches!(self.what, What::Graph { form: GraphForm::Dot }) {
            return usage("--json and --form dot contradict each other");
        }
        let tls = [
            ("--grpc-ca", self.grpc_ca.is_some(), "--grpc", self.grpc.is_some()),
            ("--grpc-name", self.grpc_name.is_some(), "--grpc-ca", self.grpc_ca.is_some()),
            ("--grpc-cert", self.grpc_cert.is_some(), "--grpc-ca", self.grpc_ca.is_some()),
            ("--grpc-cert", self.grpc_cert.is_some(), "--grpc-key", self.grpc_key.is_some()),
            ("--grpc-key", self.grpc_key.is_some(), "--grpc-cert", self.grpc_cert.is_some()),
        ];
        if let Some((option, _, needed, _)) = tls.into_iter().find(|(_, is_there, _, has)| *is_there && !has)
        {
            return usage(&format!("{option} needs {needed}"));
        }
        match self.grpc.is_some() && (self.socket.is_some() || self.device.is_some()) {
            true => usage("--grpc is another path to a device than --socket and --device: give one of them"),
            false => Ok(()),
        }
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        self.token_file.as_deref().map(token).transpose()
    }
}

/// The text of the file of a token, which nobody else may read.
fn token_file(path: &Path) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(path.display(), error);
    let bytes = read_secret(path, MAX_TOKEN_FILE).map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|_| failed(&"a token is text, and this is not UTF-8"))
}

/// The token that a file holds.
pub(crate) fn token(path: &Path) -> Result<String, Failure> {
    let text = token_file(path)?;
    match text.trim_ascii() {
        "" => Err(Failure::failed(path.display(), "it holds no token")),
        token => Ok(token.to_owned()),
    }
}

/// `millrace ctl`.
pub(crate) fn ctl(command: &CtlCommand, findings: &mut Findings) -> Result<(), Failure> {
    let json = command.json();
    command.check()?;
    // What is wrong with files and programs is told before a device is asked for anything.
    let request = request(&command.what, command.grpc.is_some(), findings)?;
    let mut client = command.connect()?;
    let answer = client.ask(&request).map_err(|error| refused(named(error, &command.what), json))?;
    if let (What::Show, Answer::Text(text)) = (&command.what, &answer)
        && text.len() > MAX_SHOWN
    {
        tell_line(format_args!(
            "warning: the text has {} bytes, and a file at most {MAX_SHOWN} (MAX_SHOWN): it cannot be applied again",
            text.len()
        ));
    }
    match &command.what {
        What::Snapshot { output: Some(path), .. } => written(path, &answer, json),
        _ if json => tell_json(&answer),
        What::Graph { form: GraphForm::Dot } => match &answer {
            Answer::Graph(status) => {
                say(graph::dot(client.device(), status));
                Ok(())
            }
            _ => Err(Failure::Failed("the device does not answer with a graph".to_owned())),
        },
        _ => match answer {
            Answer::Text(text) => write_output(None, &text),
            answer => {
                say(show::text(&answer));
                Ok(())
            }
        },
    }
}

/// What a device is asked for. One that is remote gets the contents of files, not their names.
fn request(what: &What, is_remote: bool, findings: &mut Findings) -> Result<Request, Failure> {
    let of = |SwitchArg { switch }: &SwitchArg| switch.clone();
    let mut named = |file: &Path, most: usize| {
        let text = text(file, most as u64)?;
        Ok::<_, Failure>(match is_remote {
            true => (sent::files(file, &text, findings)?, text, String::new()),
            false => (BTreeMap::new(), text, folder(file)?),
        })
    };
    Ok(match what {
        What::List => Request::List,
        What::Stats { switch } => Request::Stats { switch: switch.clone() },
        What::Graph { .. } => Request::Graph,
        What::Show => Request::Show,
        What::Apply { file, dry_run } => {
            let (files, text, folder) = named(file, MAX_SHOWN)?;
            Request::Apply { text, folder, files, dry_run: *dry_run }
        }
        What::Load { file } => {
            let (files, text, folder) = named(file, MAX_FILE)?;
            Request::Load { text, folder, files }
        }
        What::Remove(switch) => Request::Remove { switch: of(switch) },
        What::Start(switch) => Request::Start { switch: of(switch) },
        What::Stop(switch) => Request::Stop { switch: of(switch) },
        // A link names no file.
        What::Link(link) => {
            let folder = if is_remote { String::new() } else { "/".to_owned() };
            Request::Load { text: section(link), folder, files: BTreeMap::new() }
        }
        What::Unlink(EndArgs { one, other }) => Request::Unlink { between: [one.clone(), other.clone()] },
        What::Swap(args) => Request::Swap {
            switch: of(&args.switch),
            program: image(&args.program.path, &args.program.source, findings)?,
            keep_everything: args.keep_everything,
            probation: args
                .probation
                .zip(args.max_drops)
                .map(|(seconds, max_drops)| Probation { seconds, max_drops }),
        },
        What::Rollback(switch) => Request::Rollback { switch: of(switch) },
        What::Snapshot { switch, .. } => Request::Snapshot { switch: of(switch) },
        What::Restore { switch, file } => {
            Request::Restore { switch: of(switch), snapshot: text(file, MAX_REQUEST as u64)? }
        }
        What::Shadow(args) => Request::Shadow {
            switch: of(&args.switch),
            program: match &args.program {
                Some(path) => Some(image(path, &args.source, findings)?),
                None => None,
            },
            end: args.end,
        },
    })
}

/// A program as the text of its image, so that the device reads no file of who asks.
fn image(path: &Path, source: &crate::cli::SourceArgs, findings: &mut Findings) -> Result<String, Failure> {
    Ok(load_any(path, source, findings)?.image(findings)?.to_string())
}

/// The section of a link.
fn section(link: &LinkArgs) -> String {
    let [one, other] = [&link.ends.one, &link.ends.other].map(|end| toml_string(end));
    let mut text = format!("[[link]]\nbetween = [{one}, {other}]\n");
    let values = [("delay", &link.delay), ("rate", &link.rate), ("loss", &link.loss)];
    for (key, value) in values.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {}", toml_string(value));
    }
    if let Some(waiting) = link.waiting {
        let _ = writeln!(text, "waiting = {waiting}");
    }
    text
}

/// The text of a file.
fn text(path: &Path, max: u64) -> Result<String, Failure> {
    read_utf8(path, max)
}

/// The folder of a file, from the root.
fn folder(file: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(file).map_err(|error| Failure::failed(file.display(), error))?;
    let folder = path.parent().unwrap_or(&path);
    match folder.to_str() {
        Some(folder) => Ok(folder.to_owned()),
        None => Err(Failure::failed(folder.display(), "the name of the folder is not UTF-8")),
    }
}

/// Writes a text that the device answers to a file.
fn written(path: &Path, answer: &Answer, json: bool) -> Result<(), Failure> {
    let Answer::Text(text) = answer else {
        return Err(Failure::Failed("the device does not answer with a text".to_owned()));
    };
    write_output(Some(path), text)?;
    if json {
        say_line(json!({ "ok": true, "output": path.display().to_string(), "bytes": text.len() }));
    }
    Ok(())
}

/// The answer as it is, with `ok`.
fn tell_json(answer: &Answer) -> Result<(), Failure> {
    let mut object = serde_json::to_value(answer).map_err(|error| Failure::failed("the answer", error))?;
    if let Some(object) = object.as_object_mut() {
        object.insert("ok".to_owned(), true.into());
    }
    say_line(object);
    Ok(())
}

/// The device does not know the name of the file whose text it has got: what is shown of it has that name here.
fn named(error: ClientError, what: &What) -> ClientError {
    let (What::Apply { file, .. } | What::Load { file }) = what else { return error };
    let ClientError::Refused(mut refused) = error else { return error };
    let file = printable_line(&file.display().to_string()).into_owned();
    for problem in &mut refused.problems {
        for before in ["[ ", "--> "] {
            let (from, to) = (format!("{before}the file:"), format!("{before}{file}:"));
            problem.shown = problem.shown.replacen(&from, &to, 1);
        }
    }
    ClientError::Refused(refused)
}

/// Why the device did not do it. What is wrong with a text is shown with its lines.
fn refused(error: ClientError, json: bool) -> Failure {
    let Refused { kind, message, problems } = match error {
        ClientError::Refused(refused) => refused,
        error => return Failure::Failed(error.to_string()),
    };
    for problem in &problems {
        tell(&problem.shown);
        if !problem.shown.ends_with('\n') {
            tell("\n");
        }
    }
    if !json {
        return Failure::Failed(message);
    }
    tell_line(format_args!("error: {message}"));
    say_line(json!({ "ok": false, "error": message, "kind": kind, "diagnostics": problems }));
    Failure::Told
}
