//! The device, as others reach it: what is done to it and what is seen of it, one after the other.

use crate::clients::{self, Client, Clients};
use crate::doing::Preparing;
use crate::failure::Failure;
use crate::installed::Installed;
use crate::links::Watched;
use crate::physical::{OpenPorts, Physical};
use crate::published::{self, Published};
use crate::remote::Remote;
use crate::room::Room;
use crate::uploads;
use millrace_access::AuditLog;
use millrace_backplane::{Backplane, Setting};
use millrace_chassis::Making;
use millrace_ctl_api::DEFINITIONS;
use millrace_dataplane::EngineKind;
use millrace_device_file::{Change, Changes, DeviceFile, MAX_PACKETS_OF_WORKER, changes};
use millrace_frames::{MAX_REGION, SlotLayout};
use millrace_listen::{Address, Admission, P4RUNTIME, P4RUNTIME_OF_DEVICE, THRIFT_OF_SWITCH, exposure};
use millrace_observe::{DEVICE, Server};
use millrace_p4runtime::{Another, Listen, Policy, SharedServer, StartError, Tls};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::{info, warn};

// A worker's part of the packet buffers fits a region.
const _: () = assert!(MAX_PACKETS_OF_WORKER as usize * SlotLayout::DEFAULT.size <= MAX_REGION);

/// A device that runs. It ends when this is dropped.
pub struct Device {
    name: String,
    pub(crate) clients: Arc<Clients>,
    /// Of requests and answers, over the socket and over gRPC.
    pub(crate) room: Arc<Room>,
    /// Before the rest: nobody looks at what ends.
    http: Option<Server>,
    /// Held by whoever changes the model that he has read: nothing is lost of what two clients change at once.
    editing: Mutex<()>,
    running: Mutex<Running>,
    /// After the rest, which has records until it ends.
    _records: Records,
}

/// The log of changes. It is whole when this is dropped, also where a client's thread that has not ended yet has it too.
struct Records(Option<AuditLog>);

impl Drop for Records {
    fn drop(&mut self) {
        self.0.iter().for_each(AuditLog::finish);
    }
}

/// What was done, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Changes, in words.
    pub done: Vec<String>,
    /// What stays.
    pub kept: Vec<String>,
}

/// The device from inside.
pub(crate) struct Running {
    /// What it is now.
    pub(crate) file: DeviceFile,
    pub(crate) backplane: Arc<Backplane>,
    pub(crate) physical: BTreeMap<String, Physical>,
    /// Their links.
    pub(crate) links: Watched,
    pub(crate) installed: BTreeMap<String, Installed>,
    pub(crate) server: Option<SharedServer>,
    pub(crate) clients: Arc<Clients>,
    /// How programs are made, of switches that do not say otherwise.
    pub(crate) making: Making,
    /// Whether frames have to go to other places than they do.
    pub(crate) are_routes_old: bool,
    /// What the HTTP server shows.
    pub(crate) published: Arc<Published>,
}

impl Device {
    /// Starts a device as a file says, with those of its ports that are open already.
    ///
    /// # Errors
    /// What of it cannot be; then nothing runs.
    pub fn start(file: &DeviceFile, ports: OpenPorts) -> Result<Arc<Device>, Failure> {
        Device::start_with(file, ports, EngineKind::Fastest)
    }

    /// As [`Device::start`]; `engine` runs the programs of switches that do not say.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(
        file: &DeviceFile,
        mut ports: OpenPorts,
        engine: EngineKind,
    ) -> Result<Arc<Device>, Failure> {
        let clients = Arc::new(Clients::new(file)?);
        let setting = Setting {
            lanes: usize::from(file.device.workers),
            processors: file.device.processors.iter().map(|processor| usize::from(*processor)).collect(),
            packets: file.device.packets as usize,
            layout: SlotLayout::DEFAULT,
            hops: u8::try_from(file.device.hops).unwrap_or(u8::MAX),
        };
        let backplane = Arc::new(Backplane::start(&setting).map_err(Failure::failed)?);
        let published = Published::new(&file.device.name, Arc::clone(&clients), &backplane);
        let remote = file.device.grpc_ctl.then(|| Remote::new(&clients));
        let server = serve(file, &clients, remote.as_ref())?;
        let empty = DeviceFile {
            device: file.device.clone(),
            tenants: Vec::new(),
            ports: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            classify: None,
        };
        let mut running = Running {
            file: empty,
            links: Watched::start(&backplane)?,
            backplane,
            clients: Arc::clone(&clients),
            // Lookups are counted for whoever can read the counts.
            making: Making { engine, count_lookups: file.device.http.is_some(), ..Making::default() },
            physical: BTreeMap::new(),
            installed: BTreeMap::new(),
            server,
            are_routes_old: false,
            published: Arc::new(published),
        };
        running.become_as(file, Foreign::Go, &mut ports)?;
        let http = published::serve(file, &running.published)?;
        info!(device = file.device.name, switches = file.switches.len(), "start");
        let device = Arc::new(Device {
            name: file.device.name.clone(),
            _records: Records(clients.audit()),
            clients,
            room: Arc::default(),
            http,
            editing: Mutex::default(),
            running: Mutex::new(running),
        });
        if let Some(remote) = &remote {
            remote.serve(&device);
        }
        Ok(device)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where P4Runtime is served.
    pub fn p4runtime(&self) -> Option<SocketAddr> {
        self.running().server.as_ref().map(SharedServer::address)
    }

    /// Where Thrift of a switch is served.
    pub fn thrift(&self, switch: &str) -> Option<SocketAddr> {
        self.running().get(switch).ok()?.thrift()
    }

    /// Where metrics and captures are served.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Server::address)
    }

    /// What an operator should know of who reaches its servers.
    pub fn exposures(&self) -> Vec<String> {
        let running = self.running();
        let knows_its_clients = clients::are_known(&running.file);
        let p4runtime = running.server.as_ref().map(|server| {
            let device = &running.file.device;
            let admission = match (device.grpc_cert.is_some(), knows_its_clients) {
                (true, is_known) if is_known || device.grpc_client_ca.is_some() => Admission::Known,
                (true, _) => Admission::AnybodyEncrypted,
                (false, true) => Admission::WithToken,
                (false, false) => Admission::Anybody,
            };
            (&P4RUNTIME_OF_DEVICE, server.address(), admission)
        });
        let http = self.http.as_ref().map(|server| {
            let admission = if knows_its_clients { Admission::WithToken } else { Admission::Anybody };
            (&DEVICE, server.address(), admission)
        });
        let thrift = running.installed.values().filter_map(Installed::thrift);
        let thrift = thrift.map(|address| (&THRIFT_OF_SWITCH, address, Admission::Anybody));
        let servers = p4runtime.into_iter().chain(http).chain(thrift);
        servers.filter_map(|(service, address, admission)| exposure(service, address, admission)).collect()
    }

    /// Records what the device does by itself.
    pub fn record_by_itself(&self, switch: &str, what: &str, result: Result<(), &str>) {
        let device = self.running().file.switch(switch).map(|model| model.device_id);
        self.clients.record(&Client::Itself, device, what, result);
    }

    /// Whoever has it is the only one that changes the file of the device.
    pub(crate) fn edit_alone(&self) -> MutexGuard<'_, ()> {
        self.editing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of the device as it is now.
    pub fn file(&self) -> DeviceFile {
        self.running().file.clone()
    }

    /// Has the device become as a file says by the smallest changes, or only says them.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn apply(&self, file: &DeviceFile, is_dry_run: bool) -> Result<Done, Failure> {
        let _alone = self.edit_alone();
        self.apply_alone(file, Foreign::Go, is_dry_run)
    }

    /// Has the device become as a file says, or only says how, by whoever has [`Device::edit_alone`].
    pub(crate) fn apply_alone(
        &self,
        file: &DeviceFile,
        foreign: Foreign,
        is_dry_run: bool,
    ) -> Result<Done, Failure> {
        let mut running = self.running();
        if is_dry_run {
            let changes = running.changes_to(file, foreign);
            check_restart(&changes.list)?;
            return Ok(words(&changes));
        }
        let list = Arc::new(clients::list(file)?);
        if clients::are_known(file) {
            self.clients.close();
        }
        let before = running.file.clone();
        let foreign_before = running.foreign();
        let done = running.become_as(file, foreign, &mut OpenPorts::default());
        let done = done.map_err(|failure| running.take_back(&before, &foreign_before, failure));
        // Even after a failure: a tenant whose switches are gone is not to see others.
        let now = if done.is_ok() { list } else { Arc::new(clients::list(&running.file)?) };
        self.clients.set(Arc::clone(&now));
        if let Some(server) = &running.server
            && clients::are_known(&running.file)
        {
            server.devices().set_access(now);
        }
        uploads::sweep(&running.file);
        done
    }
}

/// What becomes of programs that were set over the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// They stay: what changes is something else.
    Stay,
    /// They give way to those of the file, which is applied.
    Go,
}

/// Changes and what stays, in words.
fn words(all: &Changes) -> Done {
    let (done, kept) = (all.list.iter().map(ToString::to_string), all.kept.iter().map(ToString::to_string));
    Done { done: done.collect(), kept: kept.collect() }
}

impl Running {
    /// Makes the smallest changes that lead to a file.
    fn become_as(
        &mut self,
        file: &DeviceFile,
        foreign: Foreign,
        ports: &mut OpenPorts,
    ) -> Result<Done, Failure> {
        let done = self.make_changes(&self.changes_to(file, foreign), ports);
        // Also after a failure: some changes may have been made.
        self.publish();
        done
    }

    fn make_changes(&mut self, changes: &Changes, ports: &mut OpenPorts) -> Result<Done, Failure> {
        check_restart(&changes.list)?;
        let mut preparing = Preparing::new(self, &changes.list, ports)?;
        for (at, change) in changes.list.iter().enumerate() {
            if let Err(failure) = self.carry_out(change, &mut preparing) {
                // Those that were done stay, and their routes are right.
                let _ = self.set_routes();
                let reason = format!("{change}: {failure}");
                let done = changes.list[..at].iter().map(ToString::to_string).collect();
                return Err(Failure::Failed { reason, done });
            }
        }
        self.set_routes()?;
        Ok(words(changes))
    }

    /// Switches whose programs were set over the socket.
    fn foreign(&self) -> BTreeSet<String> {
        let foreign = self.installed.iter().filter(|(_, installed)| installed.is_foreign);
        foreign.map(|(name, _)| name.clone()).collect()
    }

    /// Has the device become again as it was before changes of which one failed: what it cannot do any more is told.
    fn take_back(
        &mut self,
        before: &DeviceFile,
        foreign_before: &BTreeSet<String>,
        failure: Failure,
    ) -> Failure {
        let back = changes(&self.file, before);
        if back.list.is_empty() {
            return failure;
        }
        let done = self.make_changes(&back, &mut OpenPorts::default());
        self.publish();
        if let Err(second) = done {
            warn!(%failure, %second, "changes could not be taken back");
            return failure;
        }
        // In the order of before: what went and came again is last now.
        self.file.clone_from(before);
        let mut reason = match failure {
            Failure::Failed { reason, .. } => reason,
            other => other.to_string(),
        };
        reason.push_str("; what was done before it is taken back");
        let again = back.list.iter().filter_map(|change| match change {
            Change::AddSwitch(model) => Some(model.name.as_str()),
            _ => None,
        });
        let again: Vec<&str> = again.collect();
        if !again.is_empty() {
            reason.push_str(&format!(", and these switches have started again: {}", again.join(", ")));
        }
        let now = self.foreign();
        let lost: Vec<&str> = foreign_before.difference(&now).map(String::as_str).collect();
        if !lost.is_empty() {
            reason.push_str(&format!(", and these run the programs of the file: {}", lost.join(", ")));
        }
        Failure::failed(reason)
    }

    /// The smallest changes that lead to a file.
    fn changes_to(&self, file: &DeviceFile, foreign: Foreign) -> Changes {
        let mut changes = changes(&self.file, file);
        if foreign == Foreign::Go {
            self.bring_programs_back(file, &mut changes.list);
        }
        changes
    }

    /// Programs that were set over the socket give way to those of the file.
    fn bring_programs_back(&self, file: &DeviceFile, list: &mut Vec<Change>) {
        let foreign = self.installed.iter().filter(|(_, installed)| installed.is_foreign);
        for (name, _) in foreign {
            let is_there = |change: &Change| match change {
                Change::SwapProgram { switch, .. } => switch == name,
                Change::RemoveSwitch { name: gone, .. } => gone == name,
                _ => false,
            };
            let Some(model) = file.switch(name).filter(|_| !list.iter().any(is_there)) else { continue };
            // Entries are those of the next program.
            let sets_entries =
                |change: &Change| matches!(change, Change::SetEntries { switch, .. } if switch == name);
            let at = list.iter().position(sets_entries).unwrap_or(list.len());
            let swap = Change::SwapProgram {
                switch: name.clone(),
                source: model.source.clone(),
                engine: model.engine,
            };
            list.insert(at, swap);
        }
    }
}

/// Some changes take a new start.
pub(crate) fn check_restart(list: &[Change]) -> Result<(), Failure> {
    match list
        .iter()
        .find_map(|change| if let Change::Restart { keys, .. } = change { Some(keys) } else { None })
    {
        None => Ok(()),
        Some(keys) => Err(Failure::Invalid(format!(
            "the device has to start again for {} of [device]; nothing is changed",
            keys.join(", ")
        ))),
    }
}

/// Starts the P4Runtime server, if the file asks for one.
fn serve(
    file: &DeviceFile,
    clients: &Clients,
    remote: Option<&Remote>,
) -> Result<Option<SharedServer>, Failure> {
    let device = &file.device;
    let Some(address) = &device.grpc else { return Ok(None) };
    let address: Address = address.parse().map_err(Failure::failed)?;
    let address = address.resolve(P4RUNTIME.default_port).map_err(Failure::failed)?;
    let tls = match (&device.grpc_cert, &device.grpc_key) {
        (Some(certificate), Some(key)) => {
            let authority = device.grpc_client_ca.as_deref().map(Path::new);
            let tls = Tls::read(Path::new(certificate), Path::new(key), authority);
            Some(tls.map_err(Failure::failed)?)
        }
        _ => None,
    };
    let listen = Listen { address, tls, allow_plaintext: device.grpc_allow_plaintext };
    let access = clients::are_known(file).then(|| clients.list());
    let policy = Policy { access, audit: clients.audit() };
    let ctl = remote.map(|remote| Another::new(remote.service(), DEFINITIONS));
    SharedServer::start_with(&listen, policy, ctl).map(Some).map_err(|error| match error {
        StartError::Listen(error) => Failure::failed(error.of(&P4RUNTIME_OF_DEVICE)),
        error => Failure::failed(error),
    })
}
