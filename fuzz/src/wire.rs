//! A Thrift server on loopback, and what is said to it.

use millrace_chassis::{Making, Programs};
use millrace_dataplane::EngineKind;
use millrace_quiet::Quiet;
use millrace_thrift::{DeviceConfig, Server, serve};
use millrace_thrift_api::Client;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

/// What an input may take.
const TIME: Duration = Duration::from_secs(2);
const MEMORY: u64 = 512 << 20;

struct Device {
    server: Server,
    _quiet: Quiet,
}

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    let quiet = Quiet::start();
    let making = Making { engine: EngineKind::Interp, ..Making::default() };
    let programs = Programs::new(making, quiet.control.clone());
    let config = DeviceConfig {
        programs,
        device_id: 1,
        ports: Vec::new(),
        maker: None,
        json: None,
        notifications: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    Device { server: serve(listener, config).expect("a server"), _quiet: quiet }
});

/// Calls that are nearly right: the first byte of the input chooses the name of one, and the rest are its arguments.
const CALLS: &[&str] = &[
    "bm_mt_add_entry",
    "bm_mt_modify_entry",
    "bm_mt_set_default_action",
    "bm_mt_get_entry_from_key",
    "bm_meter_set_rates",
    "bm_register_write_range",
    "bm_load_new_config",
    "simple_pre_lag:bm_mc_node_create",
    "simple_switch:mirroring_session_add",
    "bm_parse_vset_add",
];

/// Says this on a connection, and waits until the server has done with it.
///
/// # Panics
/// It takes too long or too much, or the server does not answer afterwards.
pub fn say(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mut bytes = Vec::new();
    if let Some(name) = CALLS.get(usize::from(*first)) {
        bytes.extend([0x80, 1, 0, 1, 0, 0, 0, name.len() as u8]);
        bytes.extend(name.as_bytes());
        bytes.extend([0, 0, 0, 1]);
    }
    bytes.extend(rest);
    // Of the whole process, since threads of the server do the work. libFuzzer's time limit is for what waits for nothing.
    let (begun, before) = (processor_time(), resident());
    let mut stream = TcpStream::connect(DEVICE.server.address()).expect("the server accepts");
    // The server may have closed it already.
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = [0; 4096];
    while matches!(stream.read(&mut answer), Ok(1..)) {}
    let grown = resident().saturating_sub(before);
    let took = processor_time().saturating_sub(begun);
    assert!(took < TIME, "{took:?} for {} bytes", bytes.len());
    assert!(grown < MEMORY, "{grown} bytes of memory for {}", bytes.len());
    let mut client = Client::connect(DEVICE.server.address()).expect("the server accepts");
    client.bm_get_config_md5().expect("the server answers");
}

/// Processor time of this process.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Bytes of memory of this process.
pub fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
