//! The six calls of P4Runtime.

use crate::arbitration::ClientId;
use crate::budget::Held;
use crate::device::{Device, Event, STREAM_QUEUE};
use crate::forwarding::{self, Forwarding, Loaded, Target};
use crate::greeting::Metadata;
use crate::proto::v1::p4_runtime_server::P4Runtime;
use crate::proto::v1::{
    CapabilitiesRequest, CapabilitiesResponse, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, ReadResponse, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamMessageRequest, StreamMessageResponse, WriteRequest,
    WriteResponse, get_forwarding_pipeline_config_request::ResponseType,
    set_forwarding_pipeline_config_request::Action, stream_message_request::Update, write_request::Atomicity,
};
use crate::read::{Reader, STALL, Stop};
use crate::reconcile::reconcile;
use crate::refusal::Refusal;
use crate::report::{KEEP_KEY, REPORT_KEY, Report};
use crate::status::{USUAL_METADATA, batch_status};
use crate::{API_VERSION, write};
use millrace_switch::Keep;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status, Streaming};
use tracing::{info, warn};

/// Messages of a read that wait for its client.
const READ_QUEUE: usize = 4;

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
        let device = Arc::clone(&self.0);
        // In a task of its own: a batch is not left half-way when its client goes.
        to_the_end(async move {
            let _held = held;
            let mut forwarding = device.forwarding.write().await;
            let atomicity = Atomicity::try_from(request.atomicity)
                .map_err(|_| Status::invalid_argument("there is no such atomicity"))?;
            let saved = forwarding.saved.is_some();
            let loaded = forwarding.current_mut()?;
            let digests = request.updates.iter().any(|update| {
                use crate::proto::v1::entity::Entity;
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

    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let (held, metadata) = (held(&request), metadata(&request));
        let request = request.into_inner();
        self.0.check_device(request.device_id)?;
        let forwarding = Arc::clone(&self.0.forwarding).read_owned().await;
        forwarding.current()?;
        let (out, answers) = mpsc::channel(READ_QUEUE);
        let device = Arc::clone(&self.0);
        tokio::spawn(async move {
            let _held = held;
            let Ok(loaded) = forwarding.current() else { return };
            let reader = Reader { loaded, ports: &device.ports, role: &request.role, out: &out };
            let mut results = Vec::with_capacity(request.entities.len());
            for entity in request.entities {
                match reader.entity(entity).await {
                    Ok(()) => results.push(Ok(())),
                    Err(Stop::Refused(refusal)) => results.push(Err(refusal)),
                    Err(Stop::Ended(status)) => {
                        drop(forwarding);
                        let _ = tokio::time::timeout(STALL, out.send(Err(status))).await;
                        return;
                    }
                }
            }
            drop(forwarding);
            if let Err(status) = batch_status(&results, "Read failure.", metadata) {
                let _ = tokio::time::timeout(STALL, out.send(Err(status))).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let (keep, held) = (keep(request.metadata())?, held(&request));
        let request = request.into_inner();
        self.0.check_write(request.device_id, &request.role, request.election_id.as_ref())?;
        let device = Arc::clone(&self.0);
        to_the_end(async move {
            let _held = held;
            let done = set_pipeline(&device, request, keep).await;
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
        Ok(Response::new(GetForwardingPipelineConfigResponse { config }))
    }

    type StreamChannelStream = ReceiverStream<Result<StreamMessageResponse, Status>>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (answers, outgoing) = mpsc::channel(STREAM_QUEUE);
        let device = Arc::clone(&self.0);
        tokio::spawn(session(device, request.into_inner(), answers));
        Ok(Response::new(ReceiverStream::new(outgoing)))
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

/// What counts the bytes of a request. To be kept for as long as there is something of it.
fn held<T>(request: &Request<T>) -> Option<Held> {
    request.extensions().get().cloned()
}

/// How much metadata the client takes. With TLS what it says is not known.
fn metadata<T>(request: &Request<T>) -> u32 {
    request.extensions().get().map_or(USUAL_METADATA, Metadata::bytes)
}

/// Does something to its end, whether or not somebody still waits for it.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Status::internal("the request failed")))
}

/// One stream, from its first message to its end.
async fn session(
    device: Arc<Device>,
    mut messages: Streaming<StreamMessageRequest>,
    answers: mpsc::Sender<Result<StreamMessageResponse, Status>>,
) {
    let (client, end) = device.join(answers.clone());
    let mut known = false;
    let last = loop {
        let message = tokio::select! {
            message = messages.message() => message,
            () = answers.closed() => break None,
            () = end.notified() => {
                break Some(Status::resource_exhausted("the client does not take its messages"));
            }
        };
        match message {
            Ok(Some(message)) => {
                if let Err(status) = take(&device, client, &mut known, message).await {
                    break Some(status);
                }
            }
            Ok(None) | Err(_) => break None,
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
    let making = device.making;
    let running = forwarding::request(&device.control, |switch| switch.state().handle()).await?;
    // Compiling takes milliseconds, for which nobody else should wait.
    let made = tokio::task::spawn_blocking(move || {
        let pipeline = making.pipeline(&p4_device_config, p4info.as_ref())?;
        let mut switch = making.switch(&pipeline, &running, at_once)?;
        if action == Action::VerifyAndSave {
            // There is time until it is committed. Code that fits less well is right too.
            let _ = switch.prepare_best_code(&running);
        }
        Ok::<_, Refusal>(Loaded::waiting(pipeline, p4info, cookie, switch))
    });
    let mut loaded = made.await.map_err(|_| Status::internal("the compiler failed"))??;
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
