//! The six calls of P4Runtime.

use crate::budget::Held;
use crate::caller::Caller;
use crate::device::{Device, Event};
use crate::devices::Devices;
use crate::line::{Line, StreamAnswers};
use crate::peers::Peer;
use crate::programs::{Kept, keep, set_pipeline};
use crate::read::{Answers, MAKING_TIME, Queue, Reader, Stop, queue};
use crate::refusal::Refusal;
use crate::role_config::RoleConfig;
use crate::session::session;
use crate::status::{USUAL_METADATA, batch_status};
use crate::write;
use millrace_access::Right;
use millrace_dataplane::Cancel;
use millrace_p4runtime_api::v1::p4_runtime_server::P4Runtime;
use millrace_p4runtime_api::v1::{
    CapabilitiesRequest, CapabilitiesResponse, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, SetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigResponse, StreamMessageRequest, WriteRequest, WriteResponse,
    get_forwarding_pipeline_config_request::ResponseType, write_request::Atomicity,
};
use millrace_p4runtime_api::{API_VERSION, REPORT_KEY};
use prost::Message;
use std::sync::Arc;
use std::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

/// The calls, each for the device that it names.
#[derive(Clone)]
pub struct Service(pub(crate) Devices);

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let (held, metadata, caller) = (held(&request), metadata(&request), Caller::of(&request));
        let request = request.into_inner();
        let (devices, id) = (self.0.clone(), request.device_id);
        let what = format!("write of {} updates{}", request.updates.len(), of_role(&request.role));
        // In a task of its own: a batch is not left half-way when its client goes.
        to_the_end(async move {
            let _held = held;
            let done = match devices.enter(&caller, id, &[Right::Write]) {
                Ok(device) => write_all(&device, request, metadata).await,
                Err(status) => Err(status),
            };
            devices.record(&caller, id, &what, done.as_ref().map(drop));
            done.map(|()| Response::new(WriteResponse {}))
        })
        .await
    }

    type ReadStream = Answers;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let (held, metadata, caller) = (held(&request), metadata(&request), Caller::of(&request));
        let request = request.into_inner();
        let device = self.enter_to_read(&caller, request.device_id, "read")?;
        let config = device.role_config(&request.role);
        if let Some(config) = &config {
            config.check(&request.role, request.entities.iter())?;
        }
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
        let (keep, held, caller) = (keep(request.metadata())?, held(&request), Caller::of(&request));
        let request = request.into_inner();
        let (devices, id) = (self.0.clone(), request.device_id);
        let what = format!("set pipeline {}{}", request.action().as_str_name(), of_role(&request.role));
        // Its deadline passes, or the client goes: a program that nobody waits for is not made.
        let cancel = Cancel::default();
        let _waiting = cancel.on_drop();
        to_the_end(async move {
            let _held = held;
            let done = match devices.enter(&caller, id, &[Right::Swap]) {
                Ok(device) => set_program(&device, request, keep, cancel).await,
                Err(status) => Err(status),
            };
            devices.record(&caller, id, &what, done.as_ref().map(drop));
            done
        })
        .await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let (held, caller) = (held(&request), Caller::of(&request));
        let request = request.into_inner();
        let device = self.enter_to_read(&caller, request.device_id, "get pipeline")?;
        let wanted = ResponseType::try_from(request.response_type)
            .map_err(|_| Status::invalid_argument("there is no such response type"))?;
        let forwarding = device.forwarding.read().await;
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
        let held = held(&request).map(|held| held.another());
        let (line, answers, place) = Line::open(Caller::of(&request), held)?;
        tokio::spawn(session(self.0.clone(), line, place, request.into_inner()));
        Ok(Response::new(answers))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let caller = Caller::of(&request);
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.enter_to_read(&caller, device_id, "capabilities")?;
        }
        let p4runtime_api_version = API_VERSION.to_owned();
        Ok(Response::new(CapabilitiesResponse { p4runtime_api_version, experimental: None }))
    }
}

impl Service {
    /// The device of a request that changes nothing. It is recorded if it is refused.
    fn enter_to_read(&self, caller: &Caller, id: u64, what: &str) -> Result<Arc<Device>, Status> {
        let entered = self.0.enter(caller, id, &[Right::Read]);
        entered.inspect_err(|status| self.0.record(caller, id, what, Err(status)))
    }
}

fn of_role(role: &str) -> String {
    if role.is_empty() { String::new() } else { format!(" as role `{role}`") }
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

/// Writes a batch.
async fn write_all(device: &Device, request: WriteRequest, metadata: u32) -> Result<(), Status> {
    device.check_write(&request.role, request.election_id.as_ref())?;
    if let Some(config) = device.role_config(&request.role) {
        config.check(&request.role, request.updates.iter().filter_map(|update| update.entity.as_ref()))?;
    }
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
    loaded.target.settle_write().await?;
    loaded.is_written = true;
    device.changed.notify_one();
    let results = write::write(loaded, &device.ports, &request.role, request.updates, atomicity).await?;
    if digests && !saved {
        let _ = device.events.send(Event::Configure(loaded.shadow.digests.clone())).await;
    }
    batch_status(&results, "Write failure.", metadata)?;
    loaded.target.settle_write().await.map_err(|status| {
        Status::unavailable(format!("written, for when the device is reached: {}", status.message()))
    })
}

/// Does what a client asks to be done with a program, if its role may.
async fn set_program(
    device: &Device,
    request: SetForwardingPipelineConfigRequest,
    keep: Option<Kept>,
    cancel: Cancel,
) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
    device.check_write(&request.role, request.election_id.as_ref())?;
    if device.role_config(&request.role).is_some_and(|config| !config.sets_pipeline()) {
        return Err(Status::permission_denied(format!("role `{}` may not set the program", request.role)));
    }
    has_memory(HEADROOM_OF_PROGRAM)?;
    let done = set_pipeline(device, request, keep, cancel).await;
    let report = done.inspect_err(|status| warn!(reason = status.message(), "program refused"))?;
    let mut response = Response::new(SetForwardingPipelineConfigResponse {});
    if let Some(report) = report {
        let json = MetadataValue::from_bytes(&report.to_json());
        response.metadata_mut().insert_bin(REPORT_KEY, json);
    }
    Ok(response)
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
    // Of a device that is gone what was known last is read.
    let _ = loaded.target.settle().await;
    let (ports, role, lock) = (&device.ports, &request.role, &device.forwarding);
    let until = Instant::now() + MAKING_TIME;
    let reader = Reader { loaded, ports, role, config, out, lock, until };
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
