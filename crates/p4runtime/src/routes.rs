//! The services of the port: P4Runtime, and those that any gRPC client may ask what there is and whether it works.
//!
//! A request goes to the service that the first part of its path names; the services stay as they were generated.

use crate::budget::{Budget, Counted};
use millrace_messages::DEFINITIONS;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_reflection::server::Builder;

/// Largest message of a client to a service other than P4Runtime, in bytes.
pub const MAX_SMALL_MESSAGE: usize = 64 << 10;

type Answer = BoxFuture<http::Response<Body>, Infallible>;

/// A service by itself, which is ready for a request at all times, as generated ones are.
trait Route: Send + Sync {
    fn call(&self, request: http::Request<Body>) -> Answer;
}

impl<S> Route for S
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future = Answer>,
    S: Clone + Send + Sync,
{
    fn call(&self, request: http::Request<Body>) -> Answer {
        Service::call(&mut self.clone(), request)
    }
}

/// The services by name.
#[derive(Clone)]
pub(crate) struct Routes(Arc<BTreeMap<&'static str, Box<dyn Route>>>);

/// Collects services before they are served.
#[derive(Default)]
pub(crate) struct Listed {
    services: BTreeMap<&'static str, Box<dyn Route>>,
    /// Of services that are not P4Runtime's own.
    definitions: Vec<&'static [u8]>,
}

/// Adds a service to others.
type AddTo = dyn FnOnce(Listed, &Arc<Budget>) -> Listed + Send;

/// A service that is served next to P4Runtime at the same address: with the same TLS, and with the same bounds of connections and of the
/// memory of messages. Who calls is [`crate::RemoteCaller`].
pub struct Another {
    add: Box<AddTo>,
    definitions: &'static [u8],
}

impl Another {
    /// A service with its definitions, encoded, for server reflection.
    pub fn new<S>(service: S, definitions: &'static [u8]) -> Another
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future = Answer>,
        S: NamedService + Clone + Send + Sync + 'static,
    {
        Another {
            add: Box::new(move |listed, budget| listed.with(Counted::new(service, budget))),
            definitions,
        }
    }

    /// The services with this one.
    pub(crate) fn add_to(self, listed: Listed, budget: &Arc<Budget>) -> Listed {
        let mut listed = (self.add)(listed, budget);
        listed.definitions.push(self.definitions);
        listed
    }
}

impl std::fmt::Debug for Another {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Another")
    }
}

impl Listed {
    /// One more service.
    pub(crate) fn with<S>(mut self, service: S) -> Listed
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future = Answer>,
        S: NamedService + Clone + Send + Sync + 'static,
    {
        self.services.insert(S::NAME, Box::new(service));
        self
    }

    /// Those, with what tells of them: gRPC's health checks and server reflection.
    ///
    /// # Errors
    /// None, unless the definitions are damaged.
    pub(crate) async fn described(self, budget: &Arc<Budget>) -> Result<Routes, String> {
        let (reporter, health) = tonic_health::server::health_reporter();
        for name in self.services.keys() {
            reporter.set_service_status(*name, ServingStatus::Serving).await;
        }
        let others = self.definitions.clone();
        let described = || {
            let known = Builder::configure()
                .register_encoded_file_descriptor_set(DEFINITIONS)
                .register_encoded_file_descriptor_set(millrace_gnmi::DEFINITIONS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
            others.iter().fold(known, |known, one| known.register_encoded_file_descriptor_set(one))
        };
        let failed = |error: tonic_reflection::server::Error| error.to_string();
        let v1 = described().build_v1().map_err(failed)?;
        let older = described().build_v1alpha().map_err(failed)?;
        let all = self
            .with(Counted::new(health.max_decoding_message_size(MAX_SMALL_MESSAGE), budget))
            .with(Counted::new(v1.max_decoding_message_size(MAX_SMALL_MESSAGE), budget))
            .with(Counted::new(older.max_decoding_message_size(MAX_SMALL_MESSAGE), budget));
        Ok(Routes(Arc::new(all.services)))
    }
}

impl Service<http::Request<Body>> for Routes {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let name = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
        match self.0.get(name) {
            Some(service) => service.call(request),
            None => Box::pin(std::future::ready(Ok(Status::unimplemented("no such service").into_http()))),
        }
    }
}
