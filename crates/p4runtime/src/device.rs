//! The device that the server shows: its streams, and what is sent on them.

use crate::arbitration::ClientId;
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::cpu_port::{CpuSender, SendError};
use crate::devices::Share;
use crate::forwarding::{Forwarding, Lock};
use crate::interfaces::Interfaces;
use crate::line::Line;
use crate::packets;
use crate::refusal::{Refusal, echo};
use crate::requests::Requests;
use crate::role_config::RoleConfig;
use crate::streams::Streams;
use crate::write::Ports;
use millrace_access::Tenant;
use millrace_chassis::{Making, Turns};
use millrace_dataplane::{Control, DigestMessage, PortId};
use millrace_p4runtime_api::election::number;
use millrace_p4runtime_api::v1::{
    DigestListAck, DigestListAckError, MasterArbitrationUpdate, PacketOut, PacketOutError, StreamOtherError,
    stream_error, stream_message_response,
};
use millrace_pipeline::{DigestId, Program};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tonic::{Code, Status};
use tracing::{debug, info};

/// How long the end of a stream may take to be known. A controller that ends one and opens the next with the same election
/// id at once is no second controller.
const HANDOVER: Duration = Duration::from_millis(200);
/// Between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// What the device hears of, in order.
#[derive(Debug)]
pub(crate) enum Event {
    /// A program sent a digest message.
    Digest(Arc<Program>, DigestMessage),
    /// A client acknowledges a list.
    Acknowledge(ClientId, DigestListAck),
    /// These digests are enabled now.
    Configure(HashMap<DigestId, millrace_p4runtime_api::v1::digest_entry::Config>),
    /// Another program runs now.
    Program(Arc<Catalog>),
    /// A port is in another state.
    Port(PortId, PortState),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortState {
    Up,
    /// It may come up again.
    Down,
    /// It is down for good.
    Failed,
    /// There is such a port from now on.
    Added,
    /// There is no such port any more.
    Removed,
    /// It was switched on or off.
    Configured,
}

pub(crate) struct Device {
    pub(crate) id: u64,
    /// Whose it is.
    tenant: RwLock<Option<Tenant>>,
    pub(crate) requests: Requests,
    pub(crate) making: Making,
    pub(crate) turns: Turns,
    /// Places of those who make programs for any device of the server.
    pub(crate) making_places: Arc<Semaphore>,
    pub(crate) ports: Ports,
    pub(crate) interfaces: Arc<Interfaces>,
    pub(crate) control: Control,
    pub(crate) forwarding: Lock,
    pub(crate) events: mpsc::Sender<Event>,
    /// Told by whoever writes, while they have the lock, and when another program runs.
    pub(crate) changed: Notify,
    cpu: Option<CpuSender>,
    streams: Mutex<Streams>,
    /// The catalog of the program that runs.
    running: Mutex<Option<Arc<Catalog>>>,
    next_client: AtomicU64,
    /// Packet-ins and other messages that a full stream lost.
    lost: AtomicU64,
    /// Whether it is served no more.
    is_closed: watch::Sender<bool>,
}

impl Device {
    #[allow(clippy::too_many_arguments, reason = "the parts of a device, each once")]
    pub(crate) fn new(
        (id, share): (u64, Share),
        (making, turns, making_places): (Making, Turns, Arc<Semaphore>),
        ports: Ports,
        interfaces: Arc<Interfaces>,
        cpu: Option<CpuSender>,
        control: Control,
        forwarding: Forwarding,
        events: mpsc::Sender<Event>,
    ) -> Device {
        let running = forwarding.active.as_ref().map(|loaded| Arc::clone(&loaded.catalog));
        Device {
            id,
            tenant: RwLock::new(share.tenant),
            requests: Requests::new(share.requests_per_second, Instant::now()),
            making,
            turns,
            making_places,
            ports,
            interfaces,
            control,
            forwarding: Lock::new(forwarding),
            events,
            changed: Notify::new(),
            cpu,
            streams: Mutex::new(Streams::new(id)),
            running: Mutex::new(running),
            next_client: AtomicU64::new(1),
            lost: AtomicU64::new(0),
            is_closed: watch::Sender::new(false),
        }
    }

    /// Whose it is.
    pub(crate) fn tenant(&self) -> Option<Tenant> {
        self.tenant.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it has of the server from now on.
    pub(crate) fn set_share(&self, share: Share) {
        *self.tenant.write().unwrap_or_else(PoisonError::into_inner) = share.tenant;
        self.requests.set(share.requests_per_second);
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is served no more: its streams end, and what it does by itself.
    pub(crate) fn close(&self) {
        self.is_closed.send_replace(true);
        self.end_streams(|_| Some(removed(self.id)));
    }

    /// Waits until it is served no more.
    pub(crate) async fn closed(&self) {
        // It cannot fail while the device is there.
        let _ = self.is_closed.subscribe().wait_for(|is_closed| *is_closed).await;
    }

    /// Ends the streams for whose clients there is a reason.
    pub(crate) fn end_streams(&self, reason: impl Fn(&Caller) -> Option<Status>) {
        self.streams().end(reason);
    }

    /// A stream is for this device. It has no role before it says so.
    pub(crate) fn join(&self, line: Line) -> Result<ClientId, Status> {
        let mut streams = self.streams();
        // After that no stream is ended by `close`.
        if *self.is_closed.borrow() {
            return Err(removed(self.id));
        }
        let id = ClientId(self.next_client.fetch_add(1, Ordering::Relaxed));
        debug!(client = id.0, "stream opened");
        streams.join(id, line);
        Ok(id)
    }

    /// A stream has ended.
    pub(crate) fn leave(&self, client: ClientId) {
        if self.streams().leave(client) {
            info!(client = client.0, "controller gone");
        }
    }

    /// A client says who it is. The new primary is told when the writes that were under way have ended.
    pub(crate) async fn arbitrate(
        &self,
        client: ClientId,
        message: &MasterArbitrationUpdate,
    ) -> Result<(), Status> {
        let begun = Instant::now();
        while self.streams().arbitration.is_taken(client, message) && begun.elapsed() < HANDOVER {
            tokio::time::sleep(PAUSE).await;
        }
        let settled = {
            let mut streams = self.streams();
            let settled = streams.arbitrate(client, message)?;
            info!(
                client = client.0,
                role = message.role.as_ref().map_or("", |role| role.name.as_str()),
                election_id = message.election_id.as_ref().map(number),
                primary = streams.arbitration.is_primary(client),
                "controller"
            );
            settled
        };
        if !settled.is_empty() {
            drop(self.forwarding.write().await);
            let streams = self.streams();
            // Who became primary in between has told this client already.
            if streams.arbitration.is_primary(client) {
                streams.notify(settled);
            }
        }
        Ok(())
    }

    /// Whether the writer is the primary of its role.
    pub(crate) fn check_write(
        &self,
        role: &str,
        election: Option<&millrace_p4runtime_api::v1::Uint128>,
    ) -> Result<(), Status> {
        let checked = self.streams().arbitration.check_write(role, election);
        checked.inspect_err(|status| debug!(role, reason = status.message(), "write refused"))
    }

    /// What a role may do; none: everything.
    pub(crate) fn role_config(&self, role: &str) -> Option<Arc<RoleConfig>> {
        self.streams().arbitration.config(role).cloned()
    }

    pub(crate) fn is_primary(&self, client: ClientId) -> bool {
        self.streams().arbitration.is_primary(client)
    }

    /// Sends a message to the primaries of all roles that may see it. What a full stream cannot take is lost.
    pub(crate) fn tell_primaries(
        &self,
        message: &stream_message_response::Update,
        sees: impl Fn(&str, Option<&RoleConfig>) -> bool,
    ) {
        let streams = self.streams();
        for (role, config, client) in streams.arbitration.primaries() {
            if sees(role, config) && !streams.send(client, message.clone()) {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Tells a client what was wrong with a message of its stream.
    pub(crate) fn report(&self, client: ClientId, refusal: Refusal, details: stream_error::Details) {
        self.streams().send(client, refusal.of_stream(details));
    }

    /// A program runs in place of another.
    pub(crate) async fn runs(&self, catalog: &Arc<Catalog>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(catalog));
        self.changed.notify_one();
        // The receiver lives as long as the server.
        let _ = self.events.send(Event::Program(Arc::clone(catalog))).await;
    }

    pub(crate) fn running(&self) -> Option<Arc<Catalog>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A client sends a packet.
    pub(crate) fn packet_out(&self, client: ClientId, packet: PacketOut) {
        let sent = self.send_out(client, &packet);
        if let Err(refusal) = sent {
            debug!(client = client.0, reason = refusal.message, "packet-out refused");
            self.refuse_packet(client, packet, refusal);
        }
    }

    pub(crate) fn refuse_packet(&self, client: ClientId, packet: PacketOut, refusal: Refusal) {
        let details = PacketOutError { packet_out: echo(packet) };
        self.report(client, refusal, stream_error::Details::PacketOut(details));
    }

    fn send_out(&self, client: ClientId, packet: &PacketOut) -> Result<(), Refusal> {
        if !self.is_primary(client) {
            return Err(Refusal::denied("only the primary client may send packets"));
        }
        let cpu = self.cpu.as_ref().ok_or_else(|| Refusal::unimplemented("the switch has no CPU port"))?;
        let catalog = self.running().ok_or_else(|| {
            Refusal::new(Code::FailedPrecondition, "no forwarding pipeline config has been set")
        })?;
        let frame = packets::frame(&catalog, packet)?;
        cpu.send(frame).map_err(|error| match error {
            SendError::Full => Refusal::exhausted("too many packets wait for the switch"),
            SendError::TooLong => Refusal::invalid("the packet is longer than the switch takes"),
            SendError::Ended => Refusal::new(Code::Unavailable, "the switch has ended"),
        })
    }

    /// A client acknowledges a digest list.
    pub(crate) fn acknowledge(&self, client: ClientId, ack: DigestListAck) {
        // An acknowledgement that finds no room is lost, as the specification allows.
        let _ = self.events.try_send(Event::Acknowledge(client, ack));
    }

    pub(crate) fn refuse_ack(&self, client: ClientId, ack: DigestListAck, refusal: Refusal) {
        let details = DigestListAckError { digest_list_ack: Some(ack) };
        self.report(client, refusal, stream_error::Details::DigestListAck(details));
    }

    pub(crate) fn refuse_other(&self, client: ClientId, other: prost_types::Any) {
        let refusal = Refusal::unimplemented("no messages of architectures of their own");
        let details = StreamOtherError { other: Some(other) };
        self.report(client, refusal, stream_error::Details::Other(details));
    }
}

fn removed(id: u64) -> Status {
    Status::not_found(format!("device {id} was removed"))
}
