//! A call of the gRPC service of a device, on a thread of its own.

use crate::client::{ClientError, of_status};
use crate::parts::{PartReader, PartWriter, WAITING_PARTS, pump};
use crate::proto::{Part, ctl_client::CtlClient};
use std::sync::mpsc as threads;
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// A call that is under way. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) from: PartReader,
    pub(crate) to: PartWriter<Part>,
}

/// Begins a call within a time.
pub(crate) fn call(endpoint: Endpoint, token: Option<&str>, time: Duration) -> Result<Call, ClientError> {
    let bearer = token.map(|token| format!("Bearer {token}").parse()).transpose();
    let bearer = bearer.map_err(|_| ClientError::Unreachable("the token is no text for a header".into()))?;
    let (to, parts) = mpsc::channel(WAITING_PARTS);
    let (into, from) = pump();
    let (begun, begins) = threads::channel();
    let failed =
        |error: std::io::Error| ClientError::Unreachable(format!("cannot start the client: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let talk = async move {
        let address = endpoint.uri().clone();
        let opened = tokio::time::timeout(time, open(endpoint, bearer, parts)).await;
        let opened = opened.unwrap_or_else(|_| {
            Err(ClientError::Unreachable(format!(
                "no device answers at {address} within {} seconds",
                time.as_secs_f32()
            )))
        });
        match opened {
            Ok(parts) => {
                // Whoever asked waits for it.
                let _ = begun.send(Ok(()));
                into.run(parts).await;
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    };
    let thread = thread::Builder::new().name("ctl call".to_owned());
    thread.spawn(move || runtime.block_on(talk)).map_err(failed)?;
    begins.recv().map_err(|_| ClientError::Closed)??;
    Ok(Call { from, to: PartWriter::new(to, |part| part) })
}

async fn open(
    endpoint: Endpoint,
    bearer: Option<MetadataValue<tonic::metadata::Ascii>>,
    parts: mpsc::Receiver<Part>,
) -> Result<Streaming<Part>, ClientError> {
    let address = endpoint.uri().clone();
    let unreachable = |error: tonic::transport::Error| {
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        let reason = reason.unwrap_or_else(|| error.to_string());
        ClientError::Unreachable(format!("no device is reached at {address}: {reason}"))
    };
    let channel: Channel = endpoint.connect().await.map_err(unreachable)?;
    let mut request = Request::new(ReceiverStream::new(parts));
    if let Some(bearer) = bearer {
        request.metadata_mut().insert("authorization", bearer);
    }
    let answer =
        CtlClient::new(channel).converse(request).await.map_err(|status: Status| of_status(&status))?;
    Ok(answer.into_inner())
}
