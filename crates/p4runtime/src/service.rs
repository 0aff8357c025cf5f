//! The six calls of P4Runtime.

use crate::arbitration::ClientId;
use crate::budget::Held;
use crate::device::{Device, Event};
use crate::forwarding::{self, Forwarding, Loaded, Target};
use crate::p4info::check_compatible;
use crate::peers::Peer;
use crate::read::{Answers, Queue, Reader, STALL, Stop, queue};
use crate::reconcile::reconcile;
use crate::refusal::Refusal;
use crate::role_config::RoleConfig;
use crate::status::{USUAL_METADATA, batch_status};
use crate::streams::{Answer, End, STREAM_QUEUE, StreamAnswers};
use crate::write;
use millrace_chassis::Orders;
use millrace_dataplane::{Cancel, Keep, Request as Ask};
use millrace_p4runtime_api::v1::p4_runtime_server::P4Runtime;
use millrace_p4runtime_api::v1::{
    CapabilitiesRequest, CapabilitiesResponse, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamMessageRequest, WriteRequest, WriteResponse,
    get_forwarding_pipeline_config_request::ResponseType, set_forwarding_pipeline_config_request::Action,
    stream_message_request::Update, write_request::Atomicity,
};
use millrace_p4runtime_api::{API_VERSION, KEEP_KEY, REPORT_KEY};
use millrace_swap_report::Report;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Request, Response, Status, Streaming};
use tracing::{info, warn};

/// A stream says who its client is after so long.
pub const ARBITRATION_TIME: Duration = Duration::from_secs(10);

/// The calls, of one device.
#[derive(Clone)]
pub struct Service(pub(crate) Arc<Device>);

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let (held, metadata) = (held(&request), metadata(&request));
        let request = request.into_inner();
        self.0.check_write(request.device_id, &request.role, request.election_id.as_ref())?;
        if let Some(config) = self.0.role_config(&request.role) {
            config
                .check(&request.role, request.updates.iter().filter_map(|update| update.entity.as_ref()))?;
        }
        let device = Arc::clone(&self.0);
        // In a task of its own: a batch is not left half-way when its client goes.
        to_the_end(async move {
            let _held = held;
            let mut forwarding = device.forwarding.write().await;
            let atomicity = Atomicity::try_from(request.atomicity)
                .map_err(|_| Status::invalid_argument("there is no such atomicity"))?;
            has_memory(HEADROOM + HEADROOM_OF_UPDATE * request.updates.len())?;
            let saved = forwarding.saved.is_some();
            let loaded = forwarding.current_mut()?;
            let digests = request.updates.iter().any(|update| {
                use millrace_p4runtime_api::v1::entity::Entity;
                let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
                matches!(entity, Some(Entity::DigestEntry(_)))
            });
            loaded.is_written = true;
            let results =
                write::write(loaded, &device.ports, &request.role, request.updates, atomicity).await?;
            if digests && !saved {
                let _ = device.events.send(Event::Configure(loaded.shadow.digests.clone())).await;
            }
            batch_status(&results, "Write failure.", metadata)?;
            Ok(Response::new(WriteResponse {}))
        })
        .await
    }

    type ReadStream = Answers;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let (held, metadata) = (held(&request), metadata(&request));
        let request = request.into_inner();
        self.0.check_device(request.device_id)?;
        let config = self.0.role_config(&request.role);
        if let Some(config) = &config {
            config.check(&request.role, request.entities.iter())?;
        }
        let device = Arc::clone(&self.0);
        let (out, answers) = queue(held.as_ref().map(Held::another));
        tokio::spawn(async move {
            let _held = held;
            let done = read_all(&device, request, config.as_deref(), &out).await;
            match done {
                Ok(results) => out.finish(batch_status(&results, "Read failure.", metadata).err()).await,
                Err(status) => out.fail(status),
            }
        });
        Ok(Response::new(answers))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let (keep, held) = (keep(request.metadata())?, held(&request));
        let request = request.into_inner();
        self.0.check_write(request.device_id, &request.role, request.election_id.as_ref())?;
        if self.0.role_config(&request.role).is_some_and(|config| !config.sets_pipeline()) {
            return Err(Status::permission_denied(format!(
                "role `{}` may not set the program",
                request.role
            )));
        }
        let device = Arc::clone(&self.0);
        // Its deadline passes, or the client goes: a program that nobody waits for is not made.
        let cancel = Cancel::default();
        let _waiting = cancel.on_drop();
        to_the_end(async move {
            let _held = held;
            has_memory(HEADROOM_OF_PROGRAM)?;
            let done = set_pipeline(&device, request, keep, cancel).await;
            let report = done.inspect_err(|status| warn!(reason = status.message(), "program refused"))?;
            let mut response = Response::new(SetForwardingPipelineConfigResponse {});
            if let Some(report) = report {
                let json = MetadataValue::from_bytes(&report.to_json());
                response.metadata_mut().insert_bin(REPORT_KEY, json);
            }
            Ok(response)
        })
        .await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let held = held(&request);
        let request = request.into_inner();
        self.0.check_device(request.device_id)?;
        let wanted = ResponseType::try_from(request.response_type)
            .map_err(|_| Status::invalid_argument("there is no such response type"))?;
        let forwarding = self.0.forwarding.read().await;
        let config = forwarding.current().ok().map(|loaded| {
            let config = &loaded.config;
            let p4info = matches!(wanted, ResponseType::All | ResponseType::P4infoAndCookie);
            let device_config = matches!(wanted, ResponseType::All | ResponseType::DeviceConfigAndCookie);
            ForwardingPipelineConfig {
                p4info: config.p4info.as_ref().filter(|_| p4info).cloned(),
                p4_device_config: match device_config {
                    true => config.p4_device_config.clone(),
                    false => Default::default(),
                },
                cookie: config.cookie,
            }
        });
        if let (Some(held), Some(config)) = (held, &config) {
            // Until the client has taken it.
            held.take(config.encoded_len())?;
        }
        Ok(Response::new(GetForwardingPipelineConfigResponse { config }))
    }

    type StreamChannelStream = StreamAnswers;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let peer = Peer::of(request.extensions()).unwrap_or_else(Peer::local);
        let (answers, outgoing) = mpsc::channel(STREAM_QUEUE);
        let device = Arc::clone(&self.0);
        let held = held(&request).map(|held| held.another());
        let (client, end, outgoing) = device.join(peer, held, answers.clone(), outgoing)?;
        tokio::spawn(session(device, client, end, request.into_inner(), answers));
        Ok(Response::new(outgoing))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.0.check_device(device_id)?;
        }
        let p4runtime_api_version = API_VERSION.to_owned();
        Ok(Response::new(CapabilitiesResponse { p4runtime_api_version, experimental: None }))
    }
}

/// Memory that is there before a request is worked on, in bytes: what is asked for in small pieces is not refused then,
/// which would end the switch.
const HEADROOM: usize = 32 << 20;
/// What an update may need of it.
const HEADROOM_OF_UPDATE: usize = 1 << 10;
/// As much for a program that is compiled.
const HEADROOM_OF_PROGRAM: usize = 256 << 20;

fn has_memory(bytes: usize) -> Result<(), Status> {
    millrace_state::headroom(bytes).map_err(|error| Status::resource_exhausted(error.to_string()))
}

/// What counts the bytes of a request. To be kept for as long as there is something of it.
fn held<T>(request: &Request<T>) -> Option<Held> {
    request.extensions().get().cloned()
}

/// How much metadata the client takes. With TLS what it says is not known.
fn metadata<T>(request: &Request<T>) -> u32 {
    Peer::of(request.extensions()).map_or(USUAL_METADATA, |peer| peer.metadata.bytes())
}

/// Does something to its end, whether or not somebody still waits for it.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Status::internal("the request failed")))
}

/// Makes the answer of a read. It shows one state: nobody writes meanwhile.
async fn read_all(
    device: &Device,
    request: ReadRequest,
    config: Option<&RoleConfig>,
    out: &Queue,
) -> Result<Vec<Result<(), Refusal>>, Status> {
    let (_permit, forwarding) = device.forwarding.read_long().await;
    has_memory(HEADROOM)?;
    let loaded = forwarding.current()?;
    let (ports, role, lock) = (&device.ports, &request.role, &device.forwarding);
    let reader = Reader { loaded, ports, role, config, out, lock };
    let mut results = Vec::with_capacity(request.entities.len());
    for entity in request.entities {
        match reader.entity(entity).await {
            Ok(()) => results.push(Ok(())),
            Err(Stop::Refused(refusal)) => results.push(Err(refusal)),
            Err(Stop::Ended(status)) => return Err(status),
        }
    }
    Ok(results)
}

/// One stream, from its first message to its end.
async fn session(
    device: Arc<Device>,
    client: ClientId,
    end: Arc<End>,
    mut messages: Streaming<StreamMessageRequest>,
    answers: mpsc::Sender<Answer>,
) {
    let mut known = false;
    let mut silence = Box::pin(tokio::time::sleep(ARBITRATION_TIME));
    let last = loop {
        let message = tokio::select! {
            message = messages.message() => message,
            () = answers.closed() => break None,
            status = end.told() => break Some(status),
            () = &mut silence, if !known => break Some(Status::deadline_exceeded(format!(
                "the first message of a stream comes within {} seconds", ARBITRATION_TIME.as_secs()
            ))),
        };
        match message {
            Ok(Some(message)) => {
                if let Err(status) = take(&device, client, &mut known, message).await {
                    break Some(status);
                }
            }
            Ok(None) => break None,
            Err(status) => break Some(status),
        }
    };
    device.leave(client);
    if let Some(status) = last {
        let _ = tokio::time::timeout(STALL, answers.send(Err(status))).await;
    }
}

/// Takes a message of a stream; an error ends it.
async fn take(
    device: &Device,
    client: ClientId,
    known: &mut bool,
    message: StreamMessageRequest,
) -> Result<(), Status> {
    match message.update {
        Some(Update::Arbitration(arbitration)) => {
            device.arbitrate(client, &arbitration).await?;
            *known = true;
        }
        _ if !*known => {
            return Err(Status::failed_precondition(
                "the first message of a stream is an arbitration update",
            ));
        }
        Some(Update::Packet(packet)) => device.packet_out(client, packet),
        Some(Update::DigestAck(ack)) => device.acknowledge(client, ack),
        Some(Update::Other(other)) => device.refuse_other(client, other),
        None => return Err(Status::invalid_argument("the message is empty")),
    }
    Ok(())
}

/// What is to go on under a new program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    Objects(Keep),
}

/// What a client asks to be kept, other than the specification has it.
fn keep(metadata: &MetadataMap) -> Result<Option<Kept>, Status> {
    let Some(asked) = metadata.get(KEEP_KEY) else { return Ok(None) };
    match asked.as_bytes() {
        b"everything" => Ok(Some(Kept::Objects(Keep::Everything))),
        b"compatible" => Ok(Some(Kept::Objects(Keep::Compatible))),
        b"nothing" => Ok(Some(Kept::Nothing)),
        _ => Err(Status::invalid_argument(format!("{KEEP_KEY} is `everything`, `compatible` or `nothing`"))),
    }
}

async fn set_pipeline(
    device: &Device,
    request: SetForwardingPipelineConfigRequest,
    asked: Option<Kept>,
    cancel: Cancel,
) -> Result<Option<Report>, Status> {
    let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
    if action == Action::Unspecified {
        return Err(Status::invalid_argument("the action is missing"));
    }
    if action == Action::Commit {
        if request.config.is_some() {
            return Err(Status::invalid_argument("COMMIT takes the config that was saved, not another one"));
        }
        let mut forwarding = device.forwarding.write().await;
        let mut saved =
            forwarding.saved.take().ok_or_else(|| Status::not_found("no config has been saved"))?;
        let committed = match asked.unwrap_or(Kept::Nothing) {
            Kept::Objects(_) if saved.is_written => Err(Status::failed_precondition(
                "the saved config has been written to: it cannot take what was written to the other one",
            )),
            keep => commit(device, &mut forwarding, &mut saved, keep).await,
        };
        match (&committed, &saved.target) {
            (Err(_), Target::Waiting(_)) => forwarding.saved = Some(saved),
            (Err(_), _) => {}
            (Ok(_), _) => forwarding.active = Some(saved),
        }
        return committed;
    }
    let config = request.config.ok_or_else(|| Status::invalid_argument("the config is missing"))?;
    let ForwardingPipelineConfig { p4info, p4_device_config, cookie } = config;
    let keep = asked.unwrap_or(match action {
        Action::ReconcileAndCommit => Kept::Objects(Keep::Everything),
        _ => Kept::Nothing,
    });
    let at_once = keep != Kept::Nothing && !matches!(action, Action::Verify | Action::VerifyAndSave);
    let (making, turns) = (device.making.clone(), device.turns.clone());
    let running = forwarding::request(&device.control, Ask::Look).await?;
    // Compiling takes milliseconds, for which nobody else should wait but those who bring programs.
    let turn = turns.taken(&cancel).await.map_err(Refusal::from)?;
    let made = tokio::task::spawn_blocking(move || {
        let pipeline = making.pipeline(&p4_device_config, &cancel)?;
        if let Some(given) = &p4info {
            check_compatible(given, &pipeline.p4info)?;
        }
        let mut switch = making.switch(&pipeline, &running, at_once, &cancel)?;
        if action == Action::VerifyAndSave {
            // There is time until it is committed. Code that fits less well is right too.
            let _ = switch.prepare_best_code(&running.tables);
        }
        let loaded = Loaded::waiting(pipeline, p4info, cookie, switch);
        match cancel.settle() {
            true => Ok((loaded, turn)),
            false => Err(Refusal::new(Code::Cancelled, "nobody waits for the program any more")),
        }
    });
    // The next one waits until this one forwards, so that there are few at a time.
    let (mut loaded, _turn) = made.await.map_err(|_| Status::internal("the compiler failed"))??;
    match action {
        Action::Verify => Ok(None),
        Action::VerifyAndSave => {
            let mut forwarding = device.forwarding.write().await;
            loaded.shadow.down.clone_from(&forwarding.down);
            forwarding.saved = Some(loaded);
            Ok(None)
        }
        _ => install(device, loaded, keep).await,
    }
}

/// Lets a new program forward; one that was saved is forgotten.
pub(crate) async fn install(
    device: &Device,
    mut loaded: Loaded,
    keep: Kept,
) -> Result<Option<Report>, Status> {
    let mut forwarding = device.forwarding.write().await;
    loaded.shadow.down.clone_from(&forwarding.down);
    let report = commit(device, &mut forwarding, &mut loaded, keep).await?;
    forwarding.saved = None;
    forwarding.active = Some(loaded);
    Ok(report)
}

/// Lets a program forward.
async fn commit(
    device: &Device,
    forwarding: &mut Forwarding,
    loaded: &mut Loaded,
    keep: Kept,
) -> Result<Option<Report>, Status> {
    let report = match (&forwarding.active, keep) {
        (Some(active), Kept::Objects(keep)) => Some(reconcile(&device.control, active, loaded, keep).await?),
        _ => {
            loaded.start(&device.control).await?;
            None
        }
    };
    info!(program = loaded.catalog.program.name, "program set");
    device.runs(&loaded.catalog).await;
    let _ = device.events.send(Event::Configure(loaded.shadow.digests.clone())).await;
    Ok(report)
}

/// Takes the programs that others bring, as if a client had.
pub(crate) async fn take_orders(device: Arc<Device>, mut orders: Orders) {
    while let Some(order) = orders.recv().await {
        let (candidate, keep, answer) = order.into_parts();
        let (pipeline, switch) = candidate.into_parts();
        let loaded = Loaded::waiting(pipeline, None, None, switch);
        let done = install(&device, loaded, keep.map_or(Kept::Nothing, Kept::Objects)).await;
        answer.give(done.map(Option::unwrap_or_default).map_err(|status| status.message().to_owned()));
    }
}
