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

/// A simulated device has the registers of the design that is written, under the same names.
#[test]
fn a_simulated_device_is_reached_by_the_names_of_its_map() {
    let folder = Folder::new("host-link-simulated");
    let program = "programs/l2_switch.p4";
    let (build, shape) = (folder.path("build"), ["--ports", "2", "--width", "256"]);
    let made = millrace(&[&["rtl", program, "--device", "-o", &build][..], &shape].concat());
    assert_eq!(made.code, 0, "{}", made.err);
    let map = format!("{build}/registers.json");
    let serve = ["link", "serve", "--simulate", program, "--listen", "0"];
    let mut server = Live::start(&[&serve[..], &shape].concat());
    let address = server.hears("host link: ").unwrap();
    let link = |args: &[&str]| -> Said {
        millrace(&[&["link"], args, &["--server", &address, "--map", &map]].concat())
    };
    assert_eq!(link(&["read", "ports_up"]).out, "ports_up: 0x3\n");
    assert_eq!(link(&["write", "port1.discipline=2", "ports_up=0x1"]).code, 0);
    assert_eq!(link(&["read", "port1.discipline"]).out, "port1.discipline: 0x2\n");
    let dump = link(&["dump"]).out;
    assert!(dump.contains("ports_up: 0x1\n") && dump.contains("drops.queue_full: 0x0\n"), "{dump}");
    assert_eq!(link(&["read", "settings[0]", "--json"]).json()["words"]["ports_up"], "0x1");
    for (args, why) in [
        (&["read", "port2.discipline"][..], "has no register port2.discipline"),
        (&["write", "ports_up=1", "drops.assert=1"], "is not for software to write"),
        (&["write", "ports_up=0x1ffffffff"], "no number of 32 bits"),
    ] {
        let said = link(args);
        assert!(said.code != 0 && said.err.contains(why), "{}", said.err);
    }
    // Another design has other registers.
    let other = millrace(&["rtl", program, "--device", "-o", &build]);
    assert_eq!(other.code, 0);
    assert!(link(&["read", "ports_up"]).err.contains("another program"));
    assert_eq!(millrace(&["link", "serve", "--uio", &map, "--ports", "2"]).code, 2);
    assert_eq!(millrace(&["rtl", program, "--width", "128"]).code, 2);
}

/// A device with MACs on GMII has the clock of GMII, and is served with their registers; `--phy` writes what is around it.
#[test]
fn a_device_has_macs_on_gmii_and_a_wrapper() {
    let folder = Folder::new("rtl-gmii");
    let build = folder.path("build");
    let program = "programs/l2_switch.p4";
    let shape = ["--link", "gmii", "--ports", "2", "--slots", "4", "--depth", "4"];
    let rtl = |more: &[&str]| millrace(&[&["rtl", program, "--device"][..], &shape, more].concat());
    let made = rtl(&["-o", &build, "--target", "ecp5", "--phy", "rgmii-id", "--json"]).json();
    assert_eq!((&made["period_ps"], &made["target"]), (&8000.into(), &"ecp5".into()));
    let names: Vec<String> = (made["files"].as_array().unwrap().iter())
        .filter_map(|file| file.as_str()?.rsplit('/').next().map(str::to_owned))
        .collect();
    for name in [
        "device.sv",
        "device_phy.sv",
        "rgmii_ecp5.sv",
        "gmii_elastic.sv",
        "device_phy.lpf",
        "device_phy_nextpnr.sh",
    ] {
        assert!(names.iter().any(|file| file == name), "{name} of {names:?}");
    }
    assert!(!names.iter().any(|file| file == "device.lpf"), "{names:?}");
    let map = std::fs::read_to_string(format!("{build}/registers.md")).unwrap();
    assert!(map.contains("port1.rx_mac_bad_check") && map.contains("port1.tx_mac_underrun"));
    let report = std::fs::read_to_string(format!("{build}/report.txt")).unwrap();
    assert!(report.contains("GMII to GMII"), "{report}");
    for (more, code, why) in [
        (&["-o", &build, "--phy", "rgmii-id"][..], 1, "so it is for ecp5 or xc7, not generic"),
        (
            &["-o", &build, "--phy", "xilinx-pcs-pma", "--target", "xc7"],
            1,
            "is for ports with XGMII, not GMII",
        ),
        (&["--period", "8001"], 1, "cycles of 8001 ps with a link of GMII, whose cycles have 8000 ps"),
        (&["--phy", "gmii"], 2, "--output"),
    ] {
        let said = rtl(more);
        assert!(said.code == code && said.err.contains(why), "{more:?}: {}", said.err);
    }
    let serve = ["link", "serve", "--simulate", program, "--listen", "0"];
    let mut server = Live::start(&[&serve[..], &shape].concat());
    let address = server.hears("host link: ").unwrap();
    let map = format!("{build}/registers.json");
    let said = millrace(&["link", "read", "port1.promiscuous", "--server", &address, "--map", &map]);
    assert_eq!(said.out, "port1.promiscuous: 0x1\n", "{}", said.err);
}
