//! With little memory, as under `ulimit -v`: what a controller asks for and cannot be had is an error for it, and the switch
//! goes on. In a process of its own, for which the limit is.

#[path = "rpc/common.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod common;

use common::{ALL, Client, Device};
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::v1::{self, CapabilitiesRequest, P4Data, Update, p4_data};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tonic::Code;

/// What the process may ask for beyond what it has: enough to compile, and well below the 2 GiB that the smallest of the
/// programs takes, since the stack of a compilation that has just ended may still count as what it has.
const ROOM: u64 = 1024 << 20;

fn limit_memory() {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let now = pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096;
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(now + ROOM), maximum }).unwrap();
}

/// A program with that many arrays of that declaration.
fn arrays(count: usize, declaration: &str) -> String {
    let arrays: String = (0..count).map(|number| format!("    {declaration} a{number};\n")).collect();
    let ingress = "control I(inout headers h, inout meta m, inout standard_metadata_t s) {\n";
    format!(
        "#include <core.p4>
#include <v1model.p4>
struct headers {{ }}
struct meta {{}}
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
control V(inout headers h, inout meta m) {{ apply {{}} }}
{ingress}{arrays}    apply {{}}
}}
control E(inout headers h, inout meta m, inout standard_metadata_t s) {{ apply {{}} }}
control C(inout headers h, inout meta m) {{ apply {{}} }}
control D(packet_out p, in headers h) {{ apply {{}} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

#[tokio::test]
async fn what_cannot_be_had_is_an_error_and_the_switch_goes_on() {
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    client.set(Action::VerifyAndCommit, ALL).await.unwrap();
    limit_memory();
    for declaration in [
        "register<bit<32>>(67108864)",
        "register<bit<4096>>(2097152)",
        "counter(67108864, CounterType.packets_and_bytes)",
        "meter(7340032, MeterType.bytes)",
    ] {
        // Each array is below its limit, and so are they together; the system has no memory for them.
        let status = client.set(Action::VerifyAndSave, &arrays(4, declaration)).await.unwrap_err();
        assert!(
            [Code::InvalidArgument, Code::ResourceExhausted].contains(&status.code()),
            "{declaration}: {status:?}"
        );
        assert!(status.message().contains("memory"), "{declaration}: {status:?}");
        // More than any program may have has a limit by name.
        let status = client.set(Action::VerifyAndSave, &arrays(40, declaration)).await.unwrap_err();
        assert!(status.message().contains("limit"), "{declaration}: {status:?}");
        client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap();
    }
    // Batches that are large once they are decoded, and values of many bytes.
    let request = |updates| v1::WriteRequest {
        device_id: common::DEVICE,
        election_id: Some(common::election(1)),
        updates,
        ..v1::WriteRequest::default()
    };
    let status = client.calls.write(request(vec![Update::default(); 500_000])).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let data = Some(P4Data { data: Some(p4_data::Data::Bitstring(vec![1; 20 << 20].into())) });
    let register =
        v1::entity::Entity::RegisterEntry(v1::RegisterEntry { data, ..v1::RegisterEntry::default() });
    let status = client.calls.write(request(vec![common::update(v1::update::Type::Modify, register)])).await;
    assert!(status.is_err());
    // And all is as it was.
    client.set(Action::VerifyAndCommit, ALL).await.unwrap();
    let route = client.route([10, 0, 0, 0], 8, 1);
    client.insert(v1::entity::Entity::TableEntry(route)).await.unwrap();
}
