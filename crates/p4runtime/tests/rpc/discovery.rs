//! What clients that know nothing of the switch find: server reflection and health checks.

use crate::common::Device;
use prost::Message;
use tokio_stream::StreamExt;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

async fn channel(device: &Device) -> Channel {
    Endpoint::from_shared(device.address()).unwrap().connect().await.unwrap()
}

/// What reflection answers, in both of its versions, whose messages differ in their package alone.
macro_rules! ask {
    ($version:ident, $channel:expr, $question:expr) => {{
        use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::$version::{server_reflection_request::MessageRequest, *};
        let request = ServerReflectionRequest { host: String::new(), message_request: Some($question) };
        let mut client = ServerReflectionClient::new($channel);
        let asked = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
        let answer = asked.into_inner().next().await.unwrap().unwrap().message_response.unwrap();
        let _: fn(String) -> MessageRequest = MessageRequest::ListServices;
        answer
    }};
}

#[tokio::test]
async fn reflection_lists_the_services_and_defines_them() {
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let device = Device::start();
    let channel = channel(&device).await;
    let services = match ask!(v1, channel.clone(), MessageRequest::ListServices(String::new())) {
        MessageResponse::ListServicesResponse(list) => {
            list.service.into_iter().map(|service| service.name).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    for known in
        ["p4.v1.P4Runtime", "gnmi.gNMI", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"]
    {
        assert!(services.iter().any(|name| name == known), "{services:?}");
    }
    let symbol = MessageRequest::FileContainingSymbol("p4.v1.P4Runtime".into());
    let MessageResponse::FileDescriptorResponse(file) = ask!(v1, channel.clone(), symbol) else { panic!() };
    let file = prost_types::FileDescriptorProto::decode(&*file.file_descriptor_proto[0]).unwrap();
    assert_eq!(file.service[0].method.len(), 6);
    // All that it needs is there too, to the last file.
    let mut missing = file.dependency;
    while let Some(name) = missing.pop() {
        let question = MessageRequest::FileByFilename(name.clone());
        match ask!(v1, channel.clone(), question) {
            MessageResponse::FileDescriptorResponse(file) => {
                let file = prost_types::FileDescriptorProto::decode(&*file.file_descriptor_proto[0]).unwrap();
                missing.extend(file.dependency);
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn older_clients_of_reflection_are_answered() {
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse;
    let device = Device::start();
    let symbol = MessageRequest::FileContainingSymbol("p4.v1.WriteRequest".into());
    let answer = ask!(v1alpha, channel(&device).await, symbol);
    assert!(matches!(answer, MessageResponse::FileDescriptorResponse(_)), "{answer:?}");
}

#[tokio::test]
async fn health_is_told_of_the_server_and_of_each_service() {
    let device = Device::start();
    let mut health = HealthClient::new(channel(&device).await);
    for service in ["", "p4.v1.P4Runtime", "gnmi.gNMI"] {
        let request = HealthCheckRequest { service: service.into() };
        let status = health.check(request).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "`{service}`");
    }
    let unknown = health.check(HealthCheckRequest { service: "p4.v2.P4Runtime".into() }).await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn requests_to_other_services_and_long_ones_are_refused() {
    use millrace_p4runtime::MAX_SMALL_MESSAGE;
    let device = Device::start();
    let mut health = HealthClient::new(channel(&device).await);
    let long = HealthCheckRequest { service: "x".repeat(MAX_SMALL_MESSAGE) };
    assert_eq!(health.check(long).await.unwrap_err().code(), Code::OutOfRange);
    let mut client = tonic::client::Grpc::new(channel(&device).await);
    client.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<HealthCheckRequest, HealthCheckRequest>::default();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/p4.v2.P4Runtime/Write");
    let refused = client.unary(tonic::Request::new(HealthCheckRequest::default()), path, codec).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unimplemented);
}
