//! The switch as Python sees it.

use crate::arrays::{Counter, Register};
use crate::errors::{self, Found, command_error, failed, raised, refused, unreadable};
use crate::meters::Meter;
use crate::packets::{self, Packet, frame};
use crate::profile::Profile;
use crate::program::Text;
use crate::records;
use crate::replication;
use crate::shared::Shared;
use crate::table::Table;
use crate::value_set::ValueSet;
use crate::values;
use millrace_control::commands::number_trace;
use millrace_control::entries;
use millrace_dataplane::{
    DigestMessage, Dropped, EngineKind, KnownPorts, PortId, QueueConfig, Session, SwitchConfig,
};
use millrace_pipeline::Program;
use millrace_state::{State, WriteError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// Packets of `send_many` between two looks at whether somebody wants to interrupt it.
const CHUNK: usize = 1024;

/// Most bytes of a file of entries.
const MAX_ENTRIES_BYTES: u64 = 4 << 30;

/// A P4 program that runs as a switch in this process.
///
/// - `program`: the path of a P4 file.
/// - `ports`: the ports that exist; packets from and to others are dropped. Without it there is any port.
/// - `engine`: "auto" (machine code where there is some), "jit" or "interp".
/// - `include`: folders to look for included files in; `defines`: macros, a dict or a list of "NAME" and "NAME=VALUE".
/// - `std`: "p4-16" or "p4-14".
/// - `entries`: a file of bmv2 runtime commands or P4Runtime JSON, to start with.
/// - `queues`: classes of service of each port, 1 to 8.
/// - `seed`: where the program's random numbers start.
///
/// The clock is simulated: it starts at 0 and stands still unless `advance` moves it. Raises `CompileError` for a wrong
/// program, `CommandError` for wrong entries, `OSError` for a file that cannot be read.
#[pyclass(frozen, module = "millrace", weakref)]
pub(crate) struct Switch {
    shared: Shared,
    program: Arc<Program>,
    /// The program as P4Runtime describes it: P4Info as protobuf text.
    #[pyo3(get)]
    p4info: String,
    warnings: Vec<Found>,
}

#[pymethods]
impl Switch {
    #[new]
    #[pyo3(signature = (program, *, ports = None, engine = "auto", include = None, defines = None, std = "p4-16", entries = None, queues = 1, seed = 0))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        program: PathBuf,
        ports: Option<Vec<PortId>>,
        engine: &str,
        include: Option<Vec<PathBuf>>,
        defines: Option<&Bound<'_, PyAny>>,
        std: &str,
        entries: Option<PathBuf>,
        queues: u8,
        seed: u64,
    ) -> PyResult<Switch> {
        let config = config(ports, engine, queues, seed)?;
        let text = Text::in_file(program, Text::options(include, defines, std)?)?;
        Switch::start(py, text, config, entries)
    }

    /// A switch whose program is given as text. `name` shows in messages; quoted includes are looked for next to it. The other
    /// arguments are those of `Switch`.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "program.p4", ports = None, engine = "auto", include = None, defines = None, std = "p4-16", entries = None, queues = 1, seed = 0))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn from_source(
        py: Python<'_>,
        text: String,
        name: &str,
        ports: Option<Vec<PortId>>,
        engine: &str,
        include: Option<Vec<PathBuf>>,
        defines: Option<&Bound<'_, PyAny>>,
        std: &str,
        entries: Option<PathBuf>,
        queues: u8,
        seed: u64,
    ) -> PyResult<Switch> {
        let config = config(ports, engine, queues, seed)?;
        let text = Text::named(name.to_owned(), text, Text::options(include, defines, std)?);
        Switch::start(py, text, config, entries)
    }

    // ---- Packets ----

    /// Takes a packet in on a port; returns the packets that leave at once, in order. The packet is bytes, or an object that
    /// gives its bytes, such as one of scapy.
    fn send(&self, py: Python<'_>, port: PortId, packet: &Bound<'_, PyAny>) -> PyResult<Vec<Packet>> {
        let bytes = frame(packet)?;
        let sent = self.shared.briefly(py, |running| running.send(port, &bytes));
        Ok(packets::to_list(py, &sent))
    }

    /// Takes many packets in, one after the other, each a pair of port and packet; returns what left after each. Other Python
    /// threads run meanwhile. A pair that is none raises an exception before the first packet is taken in.
    fn send_many(&self, py: Python<'_>, packets: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<Packet>>> {
        let mut all: Vec<(PortId, PyBackedBytes)> = Vec::new();
        for pair in packets.try_iter()? {
            let number = all.len();
            let (port, packet): (PortId, Bound<'_, PyAny>) = pair?.extract()?;
            all.push((port, frame(&packet).map_err(|wrong| wrong.about(format_args!("packet {number}")))?));
        }
        let mut left = Vec::with_capacity(all.len());
        for chunk in all.chunks(CHUNK) {
            let sent: Vec<_> = self
                .shared
                .call(py, |running| chunk.iter().map(|(port, bytes)| running.send(*port, bytes)).collect());
            left.extend(sent.iter().map(|sent| packets::to_list(py, sent)));
            py.check_signals()?;
        }
        Ok(left)
    }

    /// Takes a packet in; returns an `Outcome` of the packets that left at once, the drops with their reasons, the digests and
    /// the lines of the log (which `digests` and `log` do not give again).
    fn inject<'py>(
        &self,
        py: Python<'py>,
        port: PortId,
        packet: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = frame(packet)?;
        let passed = self.shared.briefly(py, |running| running.pass(port, &bytes));
        let drops = passed.drops.iter().map(|drop| self.dropped(py, drop)).collect::<PyResult<Vec<_>>>()?;
        let digests = passed.digests.iter().map(|one| self.digest(py, one)).collect::<PyResult<Vec<_>>>()?;
        records::make(py, "Outcome", (packets::to_list(py, &passed.sent), drops, digests, passed.log))
    }

    /// Takes a packet in and tells its story: `str()` of the `Trace` is text, its `story` the same as data. A trace lets time
    /// pass until queues are empty.
    fn trace<'py>(
        &self,
        py: Python<'py>,
        port: PortId,
        packet: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = frame(packet)?;
        let (sent, mut trace) = self.shared.call(py, |running| running.trace(port, &bytes));
        number_trace(&mut trace);
        let story = serde_json::to_string(&trace).map_err(failed)?;
        let story = py.import("json")?.call_method1("loads", (story,))?;
        records::make(py, "Trace", (packets::to_list(py, &sent), trace.to_string(), story))
    }

    /// The switch's clock in nanoseconds.
    #[getter]
    fn now_ns(&self, py: Python<'_>) -> u64 {
        self.shared.call(py, |running| running.switch.now_ns())
    }

    /// Lets so many nanoseconds pass; returns the packets that leave their queues in them.
    fn advance(&self, py: Python<'_>, ns: u64) -> Vec<Packet> {
        let sent = self.shared.call(py, |running| running.advance(ns));
        packets::to_list(py, &sent)
    }

    /// Lets time pass until all queues are empty; returns the packets that leave.
    fn drain(&self, py: Python<'_>) -> Vec<Packet> {
        let sent = self.shared.call(py, |running| running.drain());
        packets::to_list(py, &sent)
    }

    // ---- What was counted and said ----

    /// Packets and copies that went nowhere, by reason ("ingress_drop", "parser_error:PacketTooShort", ...).
    #[getter]
    fn drops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let drops: Vec<_> = self.shared.call(py, |running| running.switch.counters().all_drops().collect());
        let dict = PyDict::new(py);
        for (reason, count) in drops {
            dict.set_item(reason.label(&self.program), count)?;
        }
        Ok(dict)
    }

    /// Packets and copies that places of the program asked to drop, by place ("mark_to_drop in ingress.drop
    /// (router.p4:61), of table ingress.ipv4_lpm", ...).
    #[getter]
    fn drop_sites<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sites: Vec<(String, u64)> = self.shared.call(py, |running| {
            let switch = &running.switch;
            let sites = switch.counters().drop_sites(switch.program());
            sites.map(|(site, count)| (site.to_string(), count)).collect()
        });
        let dict = PyDict::new(py);
        for (site, count) in sites {
            dict.set_item(site, count)?;
        }
        Ok(dict)
    }

    /// `PortCounters` of the ports that exist or, with any port, of those that saw a packet.
    #[getter]
    fn ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ports: Vec<_> = self.shared.call(py, |running| running.switch.counters().ports().collect());
        let dict = PyDict::new(py);
        for (port, counters) in ports {
            let received = (counters.rx_packets, counters.rx_bytes);
            let sent = (counters.tx_packets, counters.tx_bytes);
            let fields = (received.0, received.1, sent.0, sent.1, counters.rx_drops, counters.tx_drops);
            dict.set_item(port, records::make(py, "PortCounters", fields)?)?;
        }
        Ok(dict)
    }

    /// The messages that the program sent to the control plane since this was asked last, at most 65536 of them: `Digest(name,
    /// fields)`.
    fn digests<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let digests = self.shared.call(py, |running| std::mem::take(&mut running.digests));
        digests.iter().map(|message| self.digest(py, message)).collect()
    }

    /// The lines that the program wrote to its log since this was asked last, at most 65536 of them.
    fn log(&self, py: Python<'_>) -> Vec<String> {
        self.shared.call(py, |running| std::mem::take(&mut running.log)).into()
    }

    // ---- The program and its objects ----

    /// The name of the program: its file's, without the ending.
    #[getter]
    fn name(&self) -> &str {
        &self.program.name
    }

    /// What runs the program: "jit" or "interp".
    #[getter]
    fn engine(&self, py: Python<'_>) -> &'static str {
        self.shared.call(py, |running| running.switch.engine_name())
    }

    /// What the compiler warned of: `Diagnostic` objects.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        errors::to_list(py, self.warnings.clone())
    }

    /// The full names of all objects by kind: "tables", "counters", "registers", "meters", "profiles", "value_sets".
    #[getter]
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let program = &self.program;
        let tables = program.tables.values();
        let direct_counters = tables.clone().filter_map(|table| Some(&table.direct_counter.as_ref()?.name));
        let direct_meters = tables.clone().filter_map(|table| Some(&table.direct_meter.as_ref()?.name));
        let kinds: [(&str, Vec<&String>); 6] = [
            ("tables", tables.clone().map(|one| &one.name).collect()),
            ("counters", program.counters.values().map(|one| &one.name).chain(direct_counters).collect()),
            ("registers", program.registers.values().map(|one| &one.name).collect()),
            ("meters", program.meters.values().map(|one| &one.name).chain(direct_meters).collect()),
            ("profiles", program.profiles.values().map(|one| &one.name).collect()),
            ("value_sets", program.value_sets.values().map(|one| &one.name).collect()),
        ];
        let dict = PyDict::new(py);
        kinds.into_iter().try_for_each(|(kind, names)| dict.set_item(kind, names))?;
        Ok(dict)
    }

    /// A table by its name, or by the end of it after a dot. Here as for all objects, a name that there is not raises
    /// `UnknownNameError`, a `KeyError`, with the name that was probably meant.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        self.object(py, |state| state.table_named(name), Table::new)
    }

    /// An indexed or direct counter by its name.
    fn counter(&self, py: Python<'_>, name: &str) -> PyResult<Counter> {
        self.object(py, |state| state.counter_named(name), Counter::new)
    }

    /// A register by its name.
    fn register(&self, py: Python<'_>, name: &str) -> PyResult<Register> {
        self.object(py, |state| state.register_named(name), Register::new)
    }

    /// An indexed or direct meter by its name.
    fn meter(&self, py: Python<'_>, name: &str) -> PyResult<Meter> {
        self.object(py, |state| state.meter_named(name), Meter::new)
    }

    /// An action profile or selector by its name.
    fn profile(&self, py: Python<'_>, name: &str) -> PyResult<Profile> {
        self.object(py, |state| state.profile_named(name), Profile::new)
    }

    /// A parser value set by its name.
    fn value_set(&self, py: Python<'_>, name: &str) -> PyResult<ValueSet> {
        self.object(py, |state| state.value_set_named(name), ValueSet::new)
    }

    /// Runs bmv2 runtime commands, one a line, or loads P4Runtime JSON (a text that begins with a brace). All of it is done or,
    /// when something is refused (`CommandError`), nothing. Returns what commands that show something showed.
    fn run_commands(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        self.load(py, "commands", text)
    }

    /// As `run_commands` for the text of a file.
    fn load_entries(&self, py: Python<'_>, path: PathBuf) -> PyResult<String> {
        let text = millrace_syntax::read_text(&path, MAX_ENTRIES_BYTES)
            .map_err(|error| unreadable(&path, &error))?;
        self.load(py, &path.to_string_lossy(), &text)
    }

    // ---- Replication and queues ----

    /// Makes a multicast group, or gives one that is there other copies: each a port or (port, replica number).
    fn set_multicast_group(&self, py: Python<'_>, id: u32, copies: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let copies = replication::copies(&copies)?;
        let set = self
            .shared
            .call(py, |running| replication::set_group(running.switch.replication_mut(), id, copies));
        set.map_err(|error| raised::WriteError::new_err(error.to_string()))
    }

    /// Removes a multicast group.
    fn delete_multicast_group(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        let done = self.shared.call(py, |running| running.switch.replication_mut().destroy_group(id));
        done.map_err(|error| raised::WriteError::new_err(error.to_string()))
    }

    /// The multicast groups by id: lists of (port, replica number).
    #[getter]
    fn multicast_groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let groups = self.shared.call(py, |running| {
            let all = running.switch.replication();
            all.groups().map(|(id, _)| (id, all.copies(id).unwrap_or_default())).collect()
        });
        replication::groups(py, groups)
    }

    /// Makes a clone session or replaces it: copies to ports or (port, replica number), and to a multicast group if one is
    /// given. `truncate`: bytes that a clone keeps at most.
    #[pyo3(signature = (id, copies = Vec::new(), *, group = None, truncate = None, class_of_service = 0))]
    fn set_clone_session(
        &self,
        py: Python<'_>,
        id: u32,
        copies: Vec<Bound<'_, PyAny>>,
        group: Option<u32>,
        truncate: Option<u32>,
        class_of_service: u8,
    ) -> PyResult<()> {
        let session = Session { copies: replication::copies(&copies)?, group, truncate, class_of_service };
        let set = self.shared.call(py, |running| running.switch.replication_mut().set_session(id, session));
        set.map_err(|error| raised::WriteError::new_err(error.to_string()))
    }

    /// Removes a clone session.
    fn delete_clone_session(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        let done = self.shared.call(py, |running| running.switch.replication_mut().delete_session(id));
        done.map_err(|error| raised::WriteError::new_err(error.to_string()))
    }

    /// The clone sessions by id.
    #[getter]
    fn clone_sessions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sessions = self.shared.call(py, |running| {
            running.switch.replication().sessions().map(|(id, session)| (id, session.clone())).collect()
        });
        replication::sessions(py, sessions)
    }

    /// Sets how many packets queues hold: of one class of one port, of one port, or of all.
    #[pyo3(signature = (packets, *, port = None, priority = None))]
    fn set_queue_depth(
        &self,
        py: Python<'_>,
        packets: u32,
        port: Option<PortId>,
        priority: Option<u8>,
    ) -> PyResult<()> {
        let set = self.shared.call(py, |running| running.switch.set_queue_depth(packets, port, priority));
        set.map_err(|error| raised::WriteError::new_err(error.to_string()))
    }

    /// Sets how many packets a second leave queues: of one class of one port, of one port, or of all; 0: no limit.
    #[pyo3(signature = (packets_per_second, *, port = None, priority = None))]
    fn set_queue_rate(
        &self,
        py: Python<'_>,
        packets_per_second: u64,
        port: Option<PortId>,
        priority: Option<u8>,
    ) -> PyResult<()> {
        let set =
            self.shared.call(py, |running| running.switch.set_queue_rate(packets_per_second, port, priority));
        set.map_err(|error| raised::WriteError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("<Switch {}>", self.program.name)
    }
}

impl Switch {
    fn start(py: Python<'_>, text: Text, config: SwitchConfig, entries: Option<PathBuf>) -> PyResult<Switch> {
        let started = text.start(py, config)?;
        let switch = Switch {
            shared: Shared::new(started.switch),
            program: started.program,
            p4info: started.p4info,
            warnings: started.warnings,
        };
        if let Some(path) = entries {
            switch.load_entries(py, path)?;
        }
        Ok(switch)
    }

    fn load(&self, py: Python<'_>, name: &str, text: &str) -> PyResult<String> {
        let loaded = self.shared.call(py, |running| entries::load(&mut running.switch, text));
        match loaded {
            Ok(loaded) => Ok(loaded.text),
            Err(refusals) => Err(command_error(py, name, text, &refusals)),
        }
    }

    /// An object by its name.
    fn object<I: Send, O: Send>(
        &self,
        py: Python<'_>,
        find: impl FnOnce(&State) -> Result<I, WriteError> + Send,
        make: impl FnOnce(Shared, &State, I) -> O + Send,
    ) -> PyResult<O> {
        let shared = self.shared.clone();
        let found = self.shared.call(py, |running| {
            let state = running.switch.state();
            find(state).map(|id| make(shared, state, id))
        });
        found.map_err(refused)
    }

    fn dropped<'py>(&self, py: Python<'py>, dropped: &Dropped) -> PyResult<Bound<'py, PyAny>> {
        let reason = dropped.reason.label(&self.program);
        records::make(py, "Drop", (reason, dropped.ingress_port, dropped.egress_port))
    }

    fn digest<'py>(&self, py: Python<'py>, message: &DigestMessage) -> PyResult<Bound<'py, PyAny>> {
        let digest = &self.program.digests[message.digest];
        let fields = PyDict::new(py);
        for ((name, _), value) in digest.members.iter().zip(&message.values) {
            fields.set_item(name, values::value(py, value)?)?;
        }
        records::make(py, "Digest", (&digest.name, fields))
    }
}

fn config(ports: Option<Vec<PortId>>, engine: &str, queues: u8, seed: u64) -> PyResult<SwitchConfig> {
    let engine = match engine {
        "auto" => EngineKind::Fastest,
        "jit" => EngineKind::Jit,
        "interp" => EngineKind::Interp,
        other => {
            let message = format!("engine is \"auto\", \"jit\" or \"interp\", not \"{other}\"");
            return Err(PyValueError::new_err(message));
        }
    };
    Ok(SwitchConfig {
        ports: ports.map_or(KnownPorts::Any, |ports| KnownPorts::Only(ports.into_iter().collect())),
        queues: QueueConfig { priorities: queues, ..QueueConfig::default() },
        engine,
        seed,
        ..SwitchConfig::default()
    })
}
