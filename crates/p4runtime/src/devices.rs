//! The devices of a server, which come and go while it runs: each is found by its id, by those who may see it.

use crate::arbitration::unknown_device;
use crate::caller::Caller;
use crate::device::Device;
use crate::opened::{DeviceConfig, Feed, Opened};
use crate::peers::Peers;
use crate::requests::{NAME, Usage};
use millrace_access::{AccessList, AuditLog, AuditRecord, Refusal, Resource, Right, Tenant};
use millrace_chassis::{Modes, Programs};
use millrace_dataplane::Control;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tonic::Status;
use tracing::info;

/// Most devices of one server.
pub const MAX_DEVICES: usize = 4096;
/// Threads of a server for what takes longer.
pub(crate) const SLOW_THREADS: usize = 4;
/// Most programs that are made at a time for all devices: a thread is left for those that take over.
const MAX_MAKING: usize = SLOW_THREADS - 1;

/// What a device has of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Whose it is; without one it is the operator's alone.
    pub tenant: Option<Tenant>,
    /// Most calls and messages of streams for it in a second; without one there is no limit.
    pub requests_per_second: Option<NonZeroU32>,
}

/// Who may use a server.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Who may do what; without a list everybody who reaches the server may do everything. With one a client may come
    /// without a certificate, since a token is as good.
    pub access: Option<Arc<AccessList>>,
    /// Where changes and refused requests are recorded.
    pub audit: Option<AuditLog>,
}

/// A device that is served.
#[derive(Debug)]
pub struct Served {
    /// Brings the server what the switch tells.
    pub feed: Feed,
    /// Brings the switch programs that do not come from a client.
    pub programs: Programs,
}

/// Why a device cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddError {
    /// There is one of this id.
    Taken(u64),
    /// There are [`MAX_DEVICES`].
    TooMany,
    /// Its program cannot be described to controllers.
    Pipeline(String),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddError::Taken(id) => write!(f, "there is a device {id} already"),
            AddError::TooMany => write!(f, "a server has at most {MAX_DEVICES} devices"),
            AddError::Pipeline(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for AddError {}

/// The devices of a server. Clones are of the same ones.
#[derive(Clone)]
pub struct Devices(Arc<Shared>);

struct Shared {
    /// Where what devices do by themselves goes on.
    runtime: Handle,
    peers: Arc<Peers>,
    access: RwLock<Option<Arc<AccessList>>>,
    audit: Option<AuditLog>,
    making: Arc<Semaphore>,
    by_id: RwLock<BTreeMap<u64, Arc<Device>>>,
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_id().keys()).finish()
    }
}

impl Devices {
    pub(crate) fn new(runtime: Handle, policy: Policy) -> Devices {
        let Policy { access, audit } = policy;
        let (peers, making) = (Arc::new(Peers::new()), Arc::new(Semaphore::new(MAX_MAKING)));
        let (access, by_id) = (RwLock::new(access), RwLock::default());
        Devices(Arc::new(Shared { runtime, peers, access, audit, making, by_id }))
    }

    /// Serves a device more, whose worker `control` reaches.
    ///
    /// # Errors
    /// [`AddError`].
    pub fn add(&self, config: DeviceConfig, control: Control, share: Share) -> Result<Served, AddError> {
        self.open(config, control, share).map(|(_, served)| served)
    }

    pub(crate) fn open(
        &self,
        config: DeviceConfig,
        control: Control,
        share: Share,
    ) -> Result<(Arc<Device>, Served), AddError> {
        let id = config.device_id;
        self.check_new(&self.by_id(), id)?;
        // A description takes milliseconds, for which nobody else should wait.
        let opened = Opened::new(config, control, share, &self.0.making).map_err(AddError::Pipeline)?;
        let served = Served { feed: opened.feed(), programs: opened.programs() };
        let mut by_id = self.0.by_id.write().unwrap_or_else(PoisonError::into_inner);
        self.check_new(&by_id, id)?;
        let device = opened.run(&self.0.runtime);
        by_id.insert(id, Arc::clone(&device));
        self.0.peers.share_among(by_id.len());
        Ok((device, served))
    }

    fn check_new(&self, by_id: &BTreeMap<u64, Arc<Device>>, id: u64) -> Result<(), AddError> {
        match by_id.contains_key(&id) {
            true => Err(AddError::Taken(id)),
            false if by_id.len() >= MAX_DEVICES => Err(AddError::TooMany),
            false => Ok(()),
        }
    }

    /// Serves a device no more, if there is one of this id: its streams end with `NOT_FOUND`, as requests for it do from now
    /// on. A request that was begun is done to its end, if the switch still answers.
    pub fn remove(&self, id: u64) -> bool {
        let mut by_id = self.0.by_id.write().unwrap_or_else(PoisonError::into_inner);
        let Some(device) = by_id.remove(&id) else { return false };
        self.0.peers.share_among(by_id.len());
        drop(by_id);
        info!(device = id, "device removed");
        device.close();
        true
    }

    /// How many requests a device has had, if there is one of this id.
    pub fn usage(&self, id: u64) -> Option<Usage> {
        self.by_id().get(&id).map(|device| device.requests.usage())
    }

    /// Another access list counts from now on. Streams whose clients may not read their device any more end.
    pub fn set_access(&self, access: Arc<AccessList>) {
        *self.0.access.write().unwrap_or_else(PoisonError::into_inner) = Some(access);
        let devices: Vec<Arc<Device>> = self.by_id().values().cloned().collect();
        devices.iter().for_each(|device| self.end_forbidden_streams(device));
    }

    /// A device has another share of the server from now on, if there is one of this id. Streams of clients that may not read it any
    /// more end.
    pub fn set_share(&self, id: u64, share: Share) -> bool {
        let Some(device) = self.by_id().get(&id).cloned() else { return false };
        device.set_share(share);
        self.end_forbidden_streams(&device);
        true
    }

    fn end_forbidden_streams(&self, device: &Device) {
        device.end_streams(|caller| self.allows(caller, &[Right::Read], device.id, Some(device)).err());
    }

    /// The device of a request that needs one of these rights.
    pub(crate) fn enter(&self, caller: &Caller, id: u64, rights: &[Right]) -> Result<Arc<Device>, Status> {
        let device = self.by_id().get(&id).cloned();
        self.allows(caller, rights, id, device.as_deref())?;
        let device = device.ok_or_else(|| unknown_device(id))?;
        device.count_request()?;
        if rights == [Right::Write] {
            device.check_mode()?;
        }
        Ok(device)
    }

    /// Whether somebody has one of these rights on a device, which may not be there.
    fn allows(
        &self,
        caller: &Caller,
        rights: &[Right],
        id: u64,
        device: Option<&Device>,
    ) -> Result<(), Status> {
        let access = self.0.access.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(access) = access else { return Ok(()) };
        let tenant = device.and_then(Device::tenant);
        let resource = device.map_or(Resource::NoDevice, |_| Resource::Device(tenant.as_ref()));
        let mut refused = None;
        for right in rights {
            match access.may(&caller.who, *right, resource) {
                Ok(()) => return Ok(()),
                // What is told is what the first one lacks.
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        Err(match refused {
            Some(refusal @ Refusal::Unknown) => Status::unauthenticated(refusal.to_string()),
            Some(refusal @ Refusal::Forbidden(_)) => Status::permission_denied(refusal.to_string()),
            Some(Refusal::Hidden) | None => unknown_device(id),
        })
    }

    /// Records what somebody asked for, and what came of it.
    pub(crate) fn record(&self, caller: &Caller, id: u64, what: &str, result: Result<(), &Status>) {
        let Some(audit) = &self.0.audit else { return };
        let access = self.0.access.read().unwrap_or_else(PoisonError::into_inner).clone();
        let listed = access.as_ref().and_then(|access| access.name(&caller.who)).map(str::to_owned);
        let who = listed.or_else(|| Some(format!("certificate {}", caller.who.certificate.as_ref()?)));
        let refused = result.map_err(|status| format!("{:?}: {}", status.code(), status.message()));
        let result = refused.as_ref().copied().map_err(String::as_str);
        audit.record(AuditRecord::now(who.as_deref(), &caller.from(), Some(id), what, result));
    }

    /// The connections of the server.
    pub(crate) fn peers(&self) -> &Arc<Peers> {
        &self.0.peers
    }

    fn by_id(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Arc<Device>>> {
        self.0.by_id.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    /// Whether the mode of the switch lets clients write.
    fn check_mode(&self) -> Result<(), Status> {
        self.making.modes.as_ref().map_or(Ok(()), Modes::check_write).map_err(Status::failed_precondition)
    }

    /// One request more, if the quota has room for it.
    pub(crate) fn count_request(&self) -> Result<(), Status> {
        self.requests.take(Instant::now()).map_err(|per_second| {
            Status::resource_exhausted(format!(
                "the quota `{NAME}` of device {} is used up: {per_second} requests a second",
                self.id
            ))
        })
    }
}
