//! The four calls of gNMI.

use crate::proto::g_nmi_server::{GNmi, GNmiServer};
use crate::proto::{
    CapabilityRequest, CapabilityResponse, Encoding, GetRequest, GetResponse, ModelData, SetRequest,
    SetResponse, SubscribeRequest, SubscribeResponse,
};
use crate::subscribe::{self, MAX_SUBSCRIBERS};
use crate::target::Target;
use crate::tree::leaves;
use crate::{get, set};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::info;

/// The definitions of the messages and of the service, as a set of file descriptors.
pub const DEFINITIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/definitions.bin"));
/// The version of gNMI.
pub const GNMI_VERSION: &str = "0.10.0";
/// Largest message of a client, in bytes.
pub const MAX_MESSAGE: usize = 256 << 10;
/// Messages that wait for one stream.
const QUEUE: usize = 8;
/// The models whose paths there are: name and version.
const MODELS: [(&str, &str); 4] = [
    ("openconfig-interfaces", "2.4.3"),
    ("openconfig-if-ethernet", "2.8.1"),
    ("openconfig-platform", "0.12.2"),
    ("openconfig-p4rt", "1.0.0"),
];

/// The calls, of one switch.
#[derive(Clone)]
pub struct Service {
    target: Arc<dyn Target>,
    streams: Arc<Semaphore>,
    aside: Aside,
    /// Held while a client changes something, so that requests are made one after the other.
    setting: Arc<Mutex<()>>,
}

/// Where requests are worked on, one at a time: not on the thread that also answers the other clients of its server.
#[derive(Clone)]
pub(crate) struct Aside(Arc<Semaphore>);

impl Aside {
    pub(crate) fn new() -> Aside {
        Aside(Arc::new(Semaphore::new(1)))
    }

    /// Does some work.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Status> {
        let failed = || Status::internal("the request failed");
        let turn = Arc::clone(&self.0).acquire_owned().await.map_err(|_| failed())?;
        let done = tokio::task::spawn_blocking(move || {
            // Whoever asked may have gone: the next one waits all the same.
            let _turn = turn;
            work()
        });
        done.await.map_err(|_| failed())
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

/// The service for a server.
pub fn server(target: Arc<dyn Target>) -> GNmiServer<Service> {
    let streams = Arc::new(Semaphore::new(MAX_SUBSCRIBERS));
    GNmiServer::new(Service { target, streams, aside: Aside::new(), setting: Arc::default() })
        .max_decoding_message_size(MAX_MESSAGE)
}

/// Nanoseconds since the epoch.
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn models() -> impl Iterator<Item = ModelData> {
    MODELS.into_iter().map(|(name, version)| ModelData {
        name: name.to_owned(),
        organization: "OpenConfig working group".to_owned(),
        version: version.to_owned(),
    })
}

/// Refuses models that there are not.
pub(crate) fn check_models(asked: &[ModelData]) -> Result<(), Status> {
    match asked.iter().find(|asked| !MODELS.iter().any(|(name, _)| *name == asked.name)) {
        None => Ok(()),
        Some(model) => {
            let name: String = model.name.chars().take(64).collect();
            Err(Status::unimplemented(format!("there is no model `{name}`")))
        }
    }
}

#[tonic::async_trait]
impl GNmi for Service {
    async fn capabilities(
        &self,
        _: Request<CapabilityRequest>,
    ) -> Result<Response<CapabilityResponse>, Status> {
        let encodings = [Encoding::Json, Encoding::JsonIetf, Encoding::Proto];
        Ok(Response::new(CapabilityResponse {
            supported_models: models().collect(),
            supported_encodings: encodings.map(|encoding| encoding as i32).to_vec(),
            g_nmi_version: GNMI_VERSION.to_owned(),
            ..CapabilityResponse::default()
        }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let request = request.into_inner();
        check_models(&request.use_models)?;
        let snapshot = self.target.snapshot().await?;
        self.aside.run(move || get::get(&request, &leaves(&snapshot), now_ns())).await?.map(Response::new)
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetResponse>, Status> {
        let request = request.into_inner();
        let service = self.clone();
        // In a task of its own: what was begun is done to its end.
        let done = tokio::spawn(async move {
            let _one = service.setting.lock().await;
            let snapshot = service.target.snapshot().await?;
            let read = move || set::set(&request, &snapshot, &leaves(&snapshot), now_ns());
            let (changes, response) = service.aside.run(read).await??;
            for change in &changes {
                info!(port = change.port, setting = ?change.setting, "gNMI set");
            }
            service.target.apply(changes).await?;
            Ok(Response::new(response))
        });
        done.await.unwrap_or_else(|_| Err(Status::internal("the request failed")))
    }

    type SubscribeStream = ReceiverStream<Result<SubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        let place = place.map_err(|_| {
            Status::resource_exhausted(format!("there are at most {MAX_SUBSCRIBERS} subscribers"))
        })?;
        let (out, answers) = mpsc::channel(QUEUE);
        let (target, aside) = (Arc::clone(&self.target), self.aside.clone());
        tokio::spawn(async move {
            let _place = place;
            subscribe::serve(target, aside, request.into_inner(), out).await;
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[tokio::test]
    async fn who_works_keeps_those_waiting_alone_who_want_work_done() {
        let aside = Aside::new();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (go_on, may_go_on) = channel::<()>();
        let of_first = aside.clone();
        let first = tokio::spawn(async move {
            let work = move || {
                begun.send(()).unwrap();
                may_go_on.recv().unwrap();
            };
            of_first.run(work).await
        });
        // The one thread of this test goes on, also when the client goes.
        has_begun.await.unwrap();
        first.abort();
        let (done, is_done) = channel();
        let second = tokio::spawn(async move { aside.run(move || done.send(()).unwrap()).await });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(is_done.try_recv().is_err());
        go_on.send(()).unwrap();
        second.await.unwrap().unwrap();
        is_done.recv().unwrap();
    }
}
