//! A client that brings a switch another program: `millrace swap`.

use crate::v1::p4_runtime_client::P4RuntimeClient;
use crate::v1::{
    ForwardingPipelineConfig, MasterArbitrationUpdate, SetForwardingPipelineConfigRequest,
    StreamMessageRequest, StreamMessageResponse, set_forwarding_pipeline_config_request::Action,
    stream_message_request, stream_message_response,
};
use crate::{KEEP_KEY, REPORT_KEY, election};
use millrace_swap_report::Report;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

/// How long to wait for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The election id of a client that nobody stands in the way of.
const FIRST_ELECTION: u128 = 1;

/// The switch that is to run another program.
#[derive(Clone, Debug)]
pub struct Device {
    /// Where its server listens.
    pub address: SocketAddr,
    /// Its id.
    pub device_id: u64,
    /// The election id of the primary controller, in whose place the program is set; none when there is no controller.
    pub election_id: Option<u128>,
    /// TLS, if the server has it.
    pub tls: Option<ClientTls>,
}

/// TLS of a client, all in PEM.
#[derive(Clone)]
pub struct ClientTls {
    /// The authority that signed the server's certificate.
    pub authority: Vec<u8>,
    /// The name in the server's certificate.
    pub name: String,
    /// The client's own certificate and key, when the server wants one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for ClientTls {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Has a switch go on with another program, an image or the text of one; `keep` is a value of [`KEEP_KEY`]. Says what became
/// of what was written to the program until then.
///
/// # Errors
/// Why it goes on with the one that it has.
pub fn swap(device: &Device, program: Vec<u8>, keep: &str) -> Result<Report, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the client: {error}"))?;
    runtime.block_on(swap_program(device, program, keep))
}

async fn swap_program(device: &Device, program: Vec<u8>, keep: &str) -> Result<Report, String> {
    let unreachable = |error: tonic::transport::Error| {
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        let reason = reason.unwrap_or_else(|| error.to_string());
        format!(
            "no switch has its P4Runtime server at {}: {reason} (`millrace run --grpc` starts one; --grpc names another \
             address, --thrift a switch without P4Runtime)",
            device.address
        )
    };
    let endpoint = endpoint(device.address, device.tls.as_ref()).map_err(unreachable)?;
    let channel = endpoint.connect().await.map_err(unreachable)?;
    let mut client = P4RuntimeClient::new(channel);
    // The role of the primary lasts as long as its stream.
    let (election, _stream) = match device.election_id {
        Some(election) => (election, None),
        None => (FIRST_ELECTION, Some(become_primary(&mut client, device.device_id).await?)),
    };
    let mut request = Request::new(SetForwardingPipelineConfigRequest {
        device_id: device.device_id,
        election_id: Some(election::message(election)),
        action: Action::ReconcileAndCommit.into(),
        config: Some(ForwardingPipelineConfig {
            p4_device_config: program.into(),
            ..ForwardingPipelineConfig::default()
        }),
        ..SetForwardingPipelineConfigRequest::default()
    });
    let keep = keep.parse().map_err(|_| format!("`{keep}` is nothing to keep"))?;
    request.metadata_mut().insert(KEEP_KEY, keep);
    let answer = client.set_forwarding_pipeline_config(request).await.map_err(|status| refused(&status))?;
    let report = answer.metadata().get_bin(REPORT_KEY).map(MetadataValue::to_bytes);
    match report {
        None => Ok(Report::default()),
        Some(bytes) => bytes
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| "the program runs, and what the switch says of the change is no report".into()),
    }
}

/// How the gRPC server of a switch is reached.
///
/// # Errors
/// Certificates and key are none, or do not fit.
pub fn endpoint(address: SocketAddr, tls: Option<&ClientTls>) -> Result<Endpoint, tonic::transport::Error> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Channel::from_shared(format!("{scheme}://{address}"))
        // An address and a scheme are always a URI.
        .unwrap_or_else(|_| Endpoint::from_static("http://127.0.0.1:9559"))
        .connect_timeout(CONNECT_TIME);
    let Some(tls) = tls else { return Ok(endpoint) };
    let config = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(&tls.authority))
        .domain_name(tls.name.clone());
    endpoint.tls_config(match &tls.identity {
        Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
        None => config,
    })
}

/// Becomes the primary client, if nobody is it, for as long as the stream is kept.
async fn become_primary(
    client: &mut P4RuntimeClient<Channel>,
    device_id: u64,
) -> Result<(mpsc::Sender<StreamMessageRequest>, tonic::Streaming<StreamMessageResponse>), String> {
    let (sender, messages) = mpsc::channel(1);
    let update = MasterArbitrationUpdate {
        device_id,
        election_id: Some(election::message(FIRST_ELECTION)),
        ..MasterArbitrationUpdate::default()
    };
    let first = StreamMessageRequest { update: Some(stream_message_request::Update::Arbitration(update)) };
    // There is room for one.
    let _ = sender.try_send(first);
    let stream = client.stream_channel(ReceiverStream::new(messages)).await;
    let mut stream = stream.map_err(|status| refused(&status))?.into_inner();
    while let Some(message) = stream.message().await.map_err(|status| arbitration_refused(&status))? {
        let Some(stream_message_response::Update::Arbitration(update)) = message.update else { continue };
        let is_primary = update.status.as_ref().is_none_or(|status| status.code == Code::Ok as i32);
        if is_primary {
            return Ok((sender, stream));
        }
        let election = update.election_id.as_ref().map_or(FIRST_ELECTION, election::number);
        return Err(in_the_way(election));
    }
    Err("the switch ended the stream".into())
}

fn in_the_way(election: u128) -> String {
    format!(
        "a controller with election id {election} controls the switch: `--election-id {election}` sets the \
         program in its place"
    )
}

/// A server refuses an election id that another client has.
fn arbitration_refused(status: &Status) -> String {
    match status.code() {
        Code::InvalidArgument => in_the_way(FIRST_ELECTION),
        _ => refused(status),
    }
}

fn refused(status: &Status) -> String {
    match status.code() {
        Code::PermissionDenied => format!("the switch refuses: {} (--election-id)", status.message()),
        _ => status.message().to_owned(),
    }
}
