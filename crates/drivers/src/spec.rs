//! How a port is named on the command line: `PORT@[DRIVER:]ARGS`.

use std::fmt;
use std::str::FromStr;

/// The drivers by name, with how their arguments look.
pub const DRIVERS: [(Driver, &str, &str); 8] = [
    (Driver::Dpdk, "dpdk", "dpdk:DEVICE[,mtu=N][,promisc=on|off][,allow=MAC[+MAC]...][,ARGUMENT]..."),
    (Driver::Es, "es", "es:FILE,NAME[,network=A|B][,time=real|virtual][,seconds=N][,KEY=VALUE]..."),
    (Driver::Null, "null", "null:TRACE[,passes=N][,kinds=on] or null:-"),
    (
        Driver::Packet,
        "packet",
        "packet:INTERFACE[,timestamps=auto|hardware|software][,fcs=check][,promisc=on|off][,allow=MAC[+MAC]...]",
    ),
    (Driver::Pcap, "pcap", "pcap:IN[,OUT]"),
    (Driver::Stream, "stream", "stream:IN[,OUT]"),
    (Driver::Tap, "tap", "tap:NAME[,promisc=on|off][,allow=MAC[+MAC]...]"),
    (
        Driver::Xdp,
        "xdp",
        "xdp:INTERFACE[,mode=native|generic|copy|zerocopy][,queue=N]...[,promisc=on|off][,allow=MAC[+MAC]...]",
    ),
];

/// A port driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// A device of DPDK, where the build has it.
    Dpdk,
    /// An end system of an AFDX network, in the same process.
    Es,
    /// A capture from memory, over and over.
    Null,
    /// Capture files.
    Pcap,
    /// A Linux interface through an AF_PACKET ring.
    Packet,
    /// Captures that are read as they are written, such as named pipes.
    Stream,
    /// A tap interface made for the purpose.
    Tap,
    /// A Linux interface that the switch takes for itself, through AF_XDP.
    Xdp,
}

impl Driver {
    /// The name before the colon.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Dpdk => "dpdk",
            Driver::Es => "es",
            Driver::Null => "null",
            Driver::Pcap => "pcap",
            Driver::Packet => "packet",
            Driver::Stream => "stream",
            Driver::Tap => "tap",
            Driver::Xdp => "xdp",
        }
    }

    /// The options that a port has once at most, by the names before their `=`. Others are a list (`queue` of `xdp`), a fault of
    /// an end system each, or for DPDK, which reads them itself.
    fn options(self) -> &'static [&'static str] {
        match self {
            Driver::Dpdk => &["mtu", "promisc", "allow"],
            Driver::Es => {
                &["network", "time", "seconds", "period", "bytes", "silent", "management", "seed", "report"]
            }
            Driver::Null => &["passes", "kinds"],
            Driver::Packet => &["timestamps", "fcs", "promisc", "allow"],
            Driver::Pcap | Driver::Stream => &["fcs"],
            Driver::Tap => &["promisc", "allow"],
            Driver::Xdp => &["mode", "promisc", "allow"],
        }
    }

    /// An option that the arguments have more than once: which of the two is meant nobody knows, also if they are equal.
    fn option_given_twice(self, args: &str) -> Option<&'static str> {
        let is = |word: &str, option: &str| {
            let Some((name, value)) = word.split_once('=') else { return false };
            // A fault is of the virtual link with that number.
            let is_fault = self == Driver::Es && value.starts_with(|c: char| c.is_ascii_digit());
            name == option && !(name == "network" && is_fault)
        };
        let given = |option: &str| args.split(',').filter(|word| is(word, option)).count();
        self.options().iter().copied().find(|option| given(option) > 1)
    }
}

/// What a port is connected to: a driver and its arguments, `[DRIVER:]ARGS`. A bare name is a Linux interface with the best
/// driver that leaves it to the kernel and its tools too: `packet`. `xdp`, which takes it from them, is asked for by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceSpec {
    /// The driver.
    pub driver: Driver,
    /// What the driver makes of it: an interface, files. Not empty.
    pub args: String,
}

/// A port with its number, `PORT@[DRIVER:]ARGS`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortSpec {
    /// The number of the port in the switch.
    pub port: u16,
    /// What it is connected to.
    pub interface: InterfaceSpec,
}

/// Why the name of a port is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// There is no `@`.
    NoAt(String),
    /// What is before the `@` is not a number up to 65535.
    BadPort(String),
    /// There is no driver of this name.
    UnknownDriver(String),
    /// Nothing follows the `@` or the driver's colon.
    NoArguments(Option<Driver>),
    /// An option that a port has once is there again.
    Twice(Driver, &'static str),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::NoAt(text) => {
                write!(f, "`{text}` does not name a port: PORT@INTERFACE is expected, as in 0@veth0")
            }
            SpecError::BadPort(text) => write!(f, "`{text}` is not a port number (0 to {})", u16::MAX),
            SpecError::UnknownDriver(name) => {
                write!(f, "there is no port driver `{name}`")?;
                if let Some(near) = nearest_driver(name) {
                    write!(f, ", did you mean `{near}`?")?;
                }
                f.write_str(" (known:")?;
                for (position, (_, known, _)) in DRIVERS.iter().enumerate() {
                    write!(f, "{} {known}", if position == 0 { "" } else { "," })?;
                }
                f.write_str(")")
            }
            SpecError::NoArguments(None) => f.write_str("nothing follows the `@`: an interface is expected"),
            SpecError::NoArguments(Some(driver)) => {
                let usage =
                    DRIVERS.iter().find(|(known, ..)| known == driver).map_or("", |(.., usage)| usage);
                write!(f, "nothing follows `{}:`: {usage} is expected", driver.name())
            }
            SpecError::Twice(driver, option) => {
                write!(f, "{}: `{option}=` is given twice: a port has it once", driver.name())
            }
        }
    }
}

impl std::error::Error for SpecError {}

impl InterfaceSpec {
    /// The Linux interface that it is or will be; none of what is no interface (capture files).
    pub fn link(&self) -> Option<&str> {
        match self.driver {
            Driver::Packet | Driver::Tap | Driver::Xdp => self.args.split(',').next(),
            Driver::Dpdk | Driver::Es | Driver::Null | Driver::Pcap | Driver::Stream => None,
        }
    }
}

impl FromStr for InterfaceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<InterfaceSpec, SpecError> {
        let (driver, args) = match text.split_once(':') {
            Some((name, args)) => {
                let known = DRIVERS.iter().find(|(_, known, _)| *known == name);
                let (driver, ..) = known.ok_or_else(|| SpecError::UnknownDriver(name.to_owned()))?;
                if args.is_empty() {
                    return Err(SpecError::NoArguments(Some(*driver)));
                }
                (*driver, args)
            }
            None if text.is_empty() => return Err(SpecError::NoArguments(None)),
            None => (Driver::Packet, text),
        };
        if let Some(option) = driver.option_given_twice(args) {
            return Err(SpecError::Twice(driver, option));
        }
        Ok(InterfaceSpec { driver, args: args.to_owned() })
    }
}

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<PortSpec, SpecError> {
        let (port, interface) = text.split_once('@').ok_or_else(|| SpecError::NoAt(text.to_owned()))?;
        // A plus sign would parse as a number too.
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SpecError::BadPort(port.to_owned()));
        }
        let port = port.parse().map_err(|_| SpecError::BadPort(port.to_owned()))?;
        Ok(PortSpec { port, interface: interface.parse()? })
    }
}

impl fmt::Display for InterfaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.driver.name(), self.args)
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.port, self.interface)
    }
}

/// The known driver that a name was probably meant to be.
fn nearest_driver(name: &str) -> Option<&'static str> {
    nearest(&name.to_lowercase(), DRIVERS.iter().map(|(_, known, _)| *known))
}

/// The known name that another one was probably meant to be: at most two letters are different, and not all.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distances = known.map(|known| (strsim::osa_distance(name, known), known));
    let near = distances.filter(|(distance, known)| *distance <= 2 && *distance < known.chars().count());
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(text: &str) -> Result<PortSpec, SpecError> {
        text.parse()
    }

    #[test]
    fn ports_name_a_number_a_driver_and_its_arguments() {
        let cases = [
            ("0@veth0", 0, Driver::Packet, "veth0"),
            ("511@packet:veth0", 511, Driver::Packet, "veth0"),
            ("65535@tap:mr0", 65535, Driver::Tap, "mr0"),
            ("1@pcap:in.pcap,out.pcap", 1, Driver::Pcap, "in.pcap,out.pcap"),
            ("2@xdp:veth0,mode=copy", 2, Driver::Xdp, "veth0,mode=copy"),
            ("3@dpdk:0000:03:00.0", 3, Driver::Dpdk, "0000:03:00.0"),
            ("1@pcap:a:b@c.pcap", 1, Driver::Pcap, "a:b@c.pcap"),
        ];
        for (text, number, driver, args) in cases {
            let interface = InterfaceSpec { driver, args: args.to_owned() };
            assert_eq!(port(text), Ok(PortSpec { port: number, interface }), "{text}");
        }
        assert_eq!(port("0@veth0").unwrap().to_string(), "0@packet:veth0");
        let link = |text| port(text).unwrap().interface.link().map(str::to_owned);
        assert_eq!(link("0@xdp:veth0,mode=copy").as_deref(), Some("veth0"));
        assert_eq!(link("0@tap:mr0,promisc=off").as_deref(), Some("mr0"));
        assert_eq!((link("0@veth0").as_deref(), link("0@pcap:veth0")), (Some("veth0"), None));
    }

    #[test]
    fn an_option_is_given_once() {
        for (text, option) in [
            ("0@packet:veth0,fcs=check,fcs=check", "packet: `fcs=`"),
            ("0@packet:veth0,timestamps=hardware,timestamps=software", "packet: `timestamps=`"),
            ("0@packet:veth0,promisc=off,promisc=on", "packet: `promisc=`"),
            ("0@tap:mr0,allow=multicast,promisc=off,allow=multicast", "tap: `allow=`"),
            ("0@xdp:veth0,mode=copy,queue=0,mode=native", "xdp: `mode=`"),
            ("0@dpdk:net_null0,mtu=100,mtu=200", "dpdk: `mtu=`"),
            ("0@pcap:in.pcap,fcs=check,out.pcap,fcs=check", "pcap: `fcs=`"),
            ("0@stream:in.pcap,fcs=check,fcs=check", "stream: `fcs=`"),
            ("0@null:in.pcap,passes=1,passes=2", "null: `passes=`"),
            ("0@null:in.pcap,kinds=on,kinds=on", "null: `kinds=`"),
            ("0@es:a.toml,ES1,seconds=1,seconds=2", "es: `seconds=`"),
            ("0@es:a.toml,ES1,network=A,network=1:2,network=B", "es: `network=`"),
            ("0@es:a.toml,ES1,management=on,management=off", "es: `management=`"),
        ] {
            let said = port(text).unwrap_err().to_string();
            assert_eq!(said, format!("{option} is given twice: a port has it once"), "{text}");
        }
        // Lists, faults, what DPDK reads, and files whose names have an equals sign.
        for text in [
            "0@xdp:veth0,queue=0,queue=1,queue=0",
            "0@es:a.toml,ES1,babble=1:100,babble=2:100",
            "0@es:a.toml,ES1,network=A,network=1:100,network=2:100",
            "0@dpdk:net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap",
            "0@pcap:n=1,n=2",
        ] {
            assert!(port(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn errors_help() {
        let message = |text| port(text).unwrap_err().to_string();
        assert_eq!(
            message("veth0"),
            "`veth0` does not name a port: PORT@INTERFACE is expected, as in 0@veth0"
        );
        assert_eq!(message("65536@veth0"), "`65536` is not a port number (0 to 65535)");
        assert_eq!(message("+1@veth0"), "`+1` is not a port number (0 to 65535)");
        assert_eq!(message("@veth0"), "`` is not a port number (0 to 65535)");
        assert_eq!(message("0@"), "nothing follows the `@`: an interface is expected");
        assert_eq!(message("0@pcap:"), "nothing follows `pcap:`: pcap:IN[,OUT] is expected");
        assert_eq!(
            message("0@Pacp:in.pcap"),
            "there is no port driver `Pacp`, did you mean `pcap`? (known: dpdk, es, null, packet, pcap, stream, tap, xdp)"
        );
        assert_eq!(
            message("0@netmap:x"),
            "there is no port driver `netmap` (known: dpdk, es, null, packet, pcap, stream, tap, xdp)"
        );
    }
}
