//! The port drivers that a file can name are those of the switch.

use millrace_device_file::DeviceFile;
use millrace_drivers::{DRIVERS, InterfaceSpec};

fn read(device: &str) -> Result<String, String> {
    let text = format!("[[port]]\nname = \"p0\"\ndevice = {device:?}\n");
    DeviceFile::parse("a.toml", &text)
        .map(|file| file.ports[0].device.clone())
        .map_err(|problems| problems.to_string())
}

#[test]
fn a_device_is_named_as_the_command_line_names_it() {
    for (_, name, _) in DRIVERS {
        let device = format!("{name}:x,y");
        assert_eq!(read(&device), Ok(device.clone()));
    }
    for text in ["veth0", "xdp:veth0,mode=copy", "dpdk:0000:03:00.0", "pcap:", "netmap:x"] {
        let spec = text.parse::<InterfaceSpec>();
        assert_eq!(read(text).ok(), spec.ok().map(|spec| spec.to_string()), "{text}");
    }
}
