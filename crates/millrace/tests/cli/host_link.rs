//! `millrace link`: a file stands for the registers of a device.

use crate::common::{Folder, Said, millrace};
use crate::live::Live;

#[test]
fn registers_of_a_served_file_are_read_and_written() {
    let folder = Folder::new("host-link");
    let registers = folder.path("registers");
    std::fs::write(&registers, [0; 64]).unwrap();
    let mut server = Live::start(&["link", "serve", "--uio", &registers, "--listen", "0"]);
    let address = server.hears("host link: ").unwrap();
    let link = |args: &[&str]| -> Said { millrace(&[&["link"], args, &["--server", &address]].concat()) };
    assert_eq!(link(&["write", "0x10=1", "20=0xdeadbeef"]).code, 0);
    assert_eq!(link(&["read", "16", "2"]).out, "00000010: 00000001 deadbeef\n");
    assert_eq!(link(&["dump"]).out.lines().count(), 4);
    let dump = link(&["dump", "--json"]).json();
    assert_eq!((dump["words"].as_array().unwrap().len(), &dump["words"][5]), (16, &0xdead_beef_u32.into()));
    // The registers are those of the file.
    assert_eq!(std::fs::read(&registers).unwrap()[16..24], [1, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde]);
    for (args, why) in [
        (&["read", "0x3e"][..], "0x3e is no register"),
        (&["read", "0x3c", "2"], "the registers end at 0x40"),
        (&["write", "0=1", "0x40=1"], "0x40 is no register"),
    ] {
        let said = link(args);
        assert_eq!(said.code, 1);
        assert!(said.err.contains(why), "{}", said.err);
    }
    assert_eq!(std::fs::read(&registers).unwrap()[..4], [0; 4]);
    assert_eq!(link(&["write", "0"]).code, 2);
}

#[test]
fn a_device_is_served_to_this_machine_alone_unless_an_option_says_otherwise() {
    let folder = Folder::new("host-link-open");
    let registers = folder.path("registers");
    std::fs::write(&registers, [0; 4]).unwrap();
    let serve = ["link", "serve", "--uio", &registers, "--listen", "0.0.0.0:0"];
    let said = millrace(&serve);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--link-allow-remote"), "{}", said.err);
    let mut open = Live::start(&[&serve[..], &["--link-allow-remote"]].concat());
    assert!(open.hears("warning: ").unwrap().contains("write the registers of the device"));
    assert!(millrace(&["link", "serve", "--uio", &folder.path("none")]).err.contains("cannot open"));
    let nobody = millrace(&["link", "read", "0", "--server", "127.0.0.1:1"]);
    assert!(nobody.err.contains("no server of the host link"), "{}", nobody.err);
}
