//! `millrace ctl` over gRPC, at the address of P4Runtime: the conversations of the socket, in parts. Who asks shows a certificate or a token
//! that the file of the device knows; nobody is the operator for where they are.

use crate::clients::{Client, Clients};
use crate::conversation::Conversation;
use crate::device::Device;
use crate::places::Places;
use millrace_access::{Refusal, Resource, Right};
use millrace_ctl_api::RefusalKind;
use millrace_ctl_api::parts::{MAX_PART_MESSAGE, PartWriter, WAITING_PARTS, pump};
use millrace_ctl_api::proto::Part;
use millrace_ctl_api::proto::ctl_server::{Ctl, CtlServer};
use millrace_p4runtime::RemoteCaller;
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{info, warn};

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Remote(Arc<Shared>);

struct Shared {
    clients: Arc<Clients>,
    /// Once it runs.
    device: OnceLock<Weak<Device>>,
    places: Arc<Places>,
}

impl Remote {
    /// For a device that is about to run.
    pub(crate) fn new(clients: &Arc<Clients>) -> Remote {
        let (clients, places) = (Arc::clone(clients), Arc::default());
        Remote(Arc::new(Shared { clients, device: OnceLock::new(), places }))
    }

    /// The device runs.
    pub(crate) fn serve(&self, device: &Arc<Device>) {
        // There is one.
        let _ = self.0.device.set(Arc::downgrade(device));
    }

    pub(crate) fn service(&self) -> CtlServer<Remote> {
        CtlServer::new(self.clone()).max_decoding_message_size(MAX_PART_MESSAGE)
    }

    /// Who calls, if they are known and nobody else listens to them.
    fn client(&self, caller: RemoteCaller) -> Result<Client, Status> {
        let RemoteCaller { who, address, is_encrypted } = caller;
        let from = address.ok_or_else(|| Status::permission_denied("`millrace ctl` takes a connection"))?;
        let client = Client::Remote { who, from };
        if !is_encrypted && !from.is_loopback() {
            let reason =
                "`millrace ctl` is answered to other machines over TLS only (`grpc-cert`, `grpc-key`)";
            self.0.clients.record(&client, None, "ctl", Err(reason));
            return Err(Status::permission_denied(reason));
        }
        // Nobody who is not known gets as far as a first line.
        match self.0.clients.may(&client, Right::Read, Resource::NoDevice) {
            Err(refusal @ Refusal::Unknown) => {
                warn!(%from, "an unknown client of ctl over gRPC");
                self.0.clients.record(&client, None, "ctl", Err(&refusal.to_string()));
                Err(Status::unauthenticated(refusal.to_string()))
            }
            _ => Ok(client),
        }
    }
}

#[tonic::async_trait]
impl Ctl for Remote {
    type ConverseStream = ReceiverStream<Result<Part, Status>>;

    async fn converse(
        &self,
        request: Request<Streaming<Part>>,
    ) -> Result<Response<Self::ConverseStream>, Status> {
        let client = self.client(RemoteCaller::of(&request))?;
        let weak = self.0.device.get().cloned().unwrap_or_default();
        let device = weak.upgrade().ok_or_else(|| Status::unavailable("the device does not run"))?;
        let mut place = self.0.places.take().map_err(Status::resource_exhausted)?;
        place.give_to(self.0.clients.tenant(&client)).map_err(Status::resource_exhausted)?;
        let (to, said) = mpsc::channel(WAITING_PARTS);
        let (come, from) = pump();
        tokio::spawn(come.run(request.into_inner()));
        let mut conversation = Conversation::new(from, PartWriter::new(to, Ok), &device.room);
        drop(device);
        // On a thread of its own: an answer may take minutes, and a task of the runtime must not block, nor drop the last reference to the device.
        let talk = move || {
            let _place = place;
            let Some(hello) = conversation.greeting() else { return };
            if hello.token.is_some() {
                let message = "over gRPC the token is in the metadata of the call, as `authorization`";
                return conversation.refuse(RefusalKind::Malformed, message.into());
            }
            info!(?client, "ctl over gRPC");
            conversation.go_on(&weak, &client, || false);
        };
        let thread = std::thread::Builder::new().name("ctl call".into()).spawn(talk);
        thread.map_err(|error| Status::resource_exhausted(format!("there is no thread: {error}")))?;
        Ok(Response::new(ReceiverStream::new(said)))
    }
}
