//! An interface as a device: the best mode that works is found, and each queue pair gets its sockets.

use super::DRIVER;
use super::arguments::{Arguments, MAX_SOCKETS, Mode};
use super::channel::{Channel, Traits};
use super::interface::{ETHERNET_HEADER, Interface};
use super::memory::{Part, layout_for, longest_frame};
use super::program::{AttachError, Hold, Hook, Program};
use super::queue::{Parts, XdpQueue, any_of};
use super::socket::{Placing, Socket};
use crate::addresses::Addresses;
use crate::device::Device;
use crate::offload::VLAN_TAG;
use crate::port::{PortError, QueuePair};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Fewest entries of a ring.
const MIN_RING: usize = 64;

/// So long a socket that is closed may keep its queue and its locked memory: the kernel frees them when it finds the time.
const FREE_TIME: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A Linux interface that the switch takes for itself.
pub struct XdpDevice {
    /// `xdp:` and the arguments.
    name: String,
    arguments: Arguments,
    /// Ports of the switch, which share the memory for frames.
    ports: usize,
    addresses: Option<Addresses>,
}

const PERMISSION_HINT: &str = " (run as root, or give the executable the capabilities: setcap \
     cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep FILE)";

/// Drivers of interfaces whose other end may be on the same machine, by the names that they have for ethtool.
const LOCAL: [&str; 3] = ["veth", "tun", "virtio_net"];

/// The sockets of one queue pair, with the entries of their rings.
type Sockets = Vec<(u32, Socket)>;

/// A mode that works.
struct Found {
    program: Program,
    placing: Placing,
    hook: Hook,
    /// Of each queue pair.
    sockets: Vec<Sockets>,
}

impl XdpDevice {
    /// The interface of these arguments, for a switch with so many ports, which share the memory for frames.
    ///
    /// # Errors
    /// [`PortError::Arguments`].
    pub fn new(args: &str, ports: usize) -> Result<XdpDevice, PortError> {
        let arguments = Arguments::parse(args)?;
        Ok(XdpDevice { name: format!("{DRIVER}:{args}"), arguments, ports, addresses: None })
    }

    /// The same for frames to these addresses next to its own, or to all (none).
    pub(crate) fn for_addresses(self, addresses: Option<Addresses>) -> XdpDevice {
        XdpDevice { addresses, ..self }
    }

    /// Opens to so many queue pairs, which divide the receive queues of the interface among them.
    pub(crate) fn queues(&self, pairs: usize) -> Result<Vec<XdpQueue>, PortError> {
        let link = &self.arguments.link;
        let interface = Interface::find(link)?;
        let numbers = self.numbers().map_err(|error| interface.error("ask", error))?;
        if let Ok(Some(count)) = link.receive_queues()
            && let Some(absent) = numbers.iter().find(|number| **number >= count)
        {
            let reason = format!("it has no receive queue {absent}, but 0 to {}", count.saturating_sub(1));
            return Err(self.refused(reason));
        }
        if numbers.len() > MAX_SOCKETS {
            return Err(self.refused(format!(
                "it has {} receive queues, and a port takes at most {MAX_SOCKETS}: `ethtool -L {} combined \
                 {MAX_SOCKETS}`, or name some with queue=N",
                numbers.len(),
                link.as_str()
            )));
        }
        if !(1..=numbers.len()).contains(&pairs) {
            let device = self.name.clone();
            return Err(PortError::Queues { device, asked: pairs, limit: numbers.len() });
        }
        let layout = layout_for(interface.longest()).ok_or_else(|| {
            let most = longest_frame() - ETHERNET_HEADER - VLAN_TAG;
            let mtu = interface.longest() - ETHERNET_HEADER - VLAN_TAG;
            self.refused(format!("its MTU is {mtu}, and frames of more than {most} do not fit a page"))
        })?;
        let sockets = numbers.len().div_ceil(pairs);
        let share = self.ports.saturating_mul(pairs);
        let parts = (0..pairs).map(|_| Part::take(layout, share, sockets)).collect::<Result<Vec<_>, _>>()?;
        let divided: Vec<Vec<u32>> =
            (0..pairs).map(|pair| numbers.iter().copied().skip(pair).step_by(pairs).collect()).collect();
        let mut refusals = Vec::new();
        let found = self.find_mode(&interface, &divided, &parts, &mut refusals)?;
        let Some(Found { program, placing, hook, sockets }) = found else {
            return Err(self.refused(refusals.join("; ")));
        };
        let is_local = link.driver_name().is_ok_and(|driver| LOCAL.contains(&driver.as_str()));
        let remark = self.remark(hook, placing, is_local, &refusals);
        for (queue, (_, socket)) in divided.iter().flatten().zip(sockets.iter().flatten()) {
            program
                .put_socket(*queue, socket.descriptor())
                .map_err(|error| interface.error("take", error))?;
        }
        let addresses = interface
            .hold_addresses(self.addresses.as_ref())
            .map_err(|error| interface.error("set the address filter of", error))?;
        let hold = Arc::new(Hold::new(program, addresses));
        let mut opened = Vec::with_capacity(pairs);
        for (part, sockets) in parts.into_iter().zip(sockets) {
            let any = match sockets.len() {
                1 => None,
                _ => {
                    let all: Vec<_> = sockets.iter().map(|(_, socket)| socket.descriptor()).collect();
                    Some(any_of(&all).map_err(|error| interface.error("wait for", error))?)
                }
            };
            let number = part.piece.parts();
            let traits = Traits { is_zero_copy: placing == Placing::ZeroCopy, is_local };
            let channel = |(entries, socket)| Channel::new(socket, entries, number, traits);
            opened.push(XdpQueue::new(Parts {
                interface: Interface::find(link)?,
                channels: sockets.into_iter().map(channel).collect(),
                part,
                any,
                remark: remark.clone(),
                hold: Arc::clone(&hold),
            }));
        }
        Ok(opened)
    }

    /// The receive queues that are taken.
    fn numbers(&self) -> io::Result<Vec<u32>> {
        let Arguments { link, queues, .. } = &self.arguments;
        if queues.is_empty() {
            Ok((0..link.receive_queues()?.unwrap_or(1)).collect())
        } else {
            Ok(queues.clone())
        }
    }

    /// The best mode that works, with its program and sockets; why others do not is added to the refusals.
    fn find_mode(
        &self,
        interface: &Interface,
        divided: &[Vec<u32>],
        parts: &[Part],
        refusals: &mut Vec<String>,
    ) -> Result<Option<Found>, PortError> {
        let both = [Placing::ZeroCopy, Placing::Copy];
        let tried: &[(Hook, &[Placing])] = match self.arguments.mode {
            Mode::Best => &[(Hook::Native, &both), (Hook::Generic, &both[1..])],
            Mode::Native => &[(Hook::Native, &both)],
            Mode::Copy => &[(Hook::Native, &both[1..])],
            Mode::ZeroCopy => &[(Hook::Native, &both[..1])],
            Mode::Generic => &[(Hook::Generic, &both[1..])],
        };
        let numbers = divided.iter().flatten().max().map_or(1, |last| last.saturating_add(1));
        // Used again for the next mode: what the kernel has locked for a socket that is closed counts for a while.
        let mut prepared = None;
        for (hook, placings) in tried {
            let program = match Program::attach(interface.index(), *hook, numbers) {
                Ok(program) => program,
                // No other mode is better off.
                Err(error) if matches!(error, AttachError::Taken(_)) || error.is_permission() => {
                    let hint = if error.is_permission() { PERMISSION_HINT } else { "" };
                    return Err(self.refused(format!("{error}{hint}")));
                }
                Err(error) => {
                    refusals.push(format!("{}: {error}", hook_name(*hook)));
                    continue;
                }
            };
            for placing in *placings {
                let sockets = match prepared.take() {
                    Some(sockets) => sockets,
                    None => self.prepare(divided, parts)?,
                };
                match bind_all(interface, divided, &sockets, *placing) {
                    Ok(()) => return Ok(Some(Found { program, placing: *placing, hook: *hook, sockets })),
                    Err((bound, error)) => {
                        let name = match placing {
                            Placing::ZeroCopy => "zero copy",
                            Placing::Copy => hook_name(*hook),
                        };
                        refusals.push(format!("{name}: cannot bind to it: {error}"));
                        // A socket is bound once.
                        prepared = (bound == 0).then_some(sockets);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Opens the sockets of all queue pairs. They do nothing yet.
    fn prepare(&self, divided: &[Vec<u32>], parts: &[Part]) -> Result<Vec<Sockets>, PortError> {
        let pair = |(numbers, part): (&Vec<u32>, &Part)| -> io::Result<Sockets> {
            // A half of the slots is for frames to come, the other for those on their way.
            let share = (part.slots() / 2 / numbers.len().max(1)).max(MIN_RING);
            let entries = 1u32 << share.ilog2();
            let open = |_| Ok((entries, patiently(libc::ENOBUFS, || Socket::prepare(&part.piece, entries))?));
            numbers.iter().map(open).collect()
        };
        divided.iter().zip(parts).map(pair).collect::<io::Result<_>>().map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EPERM) => PERMISSION_HINT,
                Some(libc::ENOBUFS) => {
                    " (memory for frames is locked: `ulimit -l` is too low, or give cap_ipc_lock too)"
                }
                _ => "",
            };
            self.refused(format!("no XDP socket for it: {error}{hint}"))
        })
    }

    /// How the interface was taken, and why not in a better mode.
    fn remark(&self, hook: Hook, placing: Placing, is_local: bool, refusals: &[String]) -> String {
        let name = self.arguments.link.as_str();
        let how = match placing {
            Placing::ZeroCopy => "without a copy of frames",
            Placing::Copy => "with one copy of each frame",
        };
        let mut remark = format!(
            "taken by XDP in {} mode, {how}; the kernel's own stack sees no frame of {name}",
            hook_name(hook)
        );
        if !refusals.is_empty() {
            remark.push_str(&format!(" (better modes do not work: {})", refusals.join("; ")));
        }
        if is_local && hook == Hook::Generic {
            remark.push_str(
                "; senders at the other end have to cut their segments: ethtool -K INTERFACE tx off",
            );
        }
        remark
    }

    fn refused(&self, reason: String) -> PortError {
        let name = self.arguments.link.as_str();
        PortError::Arguments { driver: DRIVER, reason: format!("cannot take interface {name}: {reason}") }
    }
}

impl Device for XdpDevice {
    fn name(&self) -> &str {
        &self.name
    }

    /// As many as it has receive queues. One that is not there is refused when it is opened.
    fn max_queues(&self) -> usize {
        self.numbers().map_or(1, |numbers| numbers.len().clamp(1, MAX_SOCKETS))
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        let opened = self.queues(queues)?;
        Ok(opened.into_iter().map(|queue| Box::new(queue) as Box<dyn QueuePair>).collect())
    }
}

fn hook_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Native => "native",
        Hook::Generic => "generic",
    }
}

/// Binds the sockets of all queue pairs; an error has how many are bound.
fn bind_all(
    interface: &Interface,
    divided: &[Vec<u32>],
    sockets: &[Sockets],
    placing: Placing,
) -> Result<(), (usize, io::Error)> {
    let numbers = divided.iter().flatten();
    for (bound, (queue, (_, socket))) in numbers.zip(sockets.iter().flatten()).enumerate() {
        patiently(libc::EBUSY, || socket.bind(interface.index(), *queue, placing))
            .map_err(|error| (bound, error))?;
    }
    Ok(())
}

/// Tries something again for a while that a socket may keep from working which is closed.
fn patiently<T>(code: i32, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + FREE_TIME;
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(code) && Instant::now() < deadline => {
                std::thread::sleep(LOOK_AGAIN);
            }
            done => return done,
        }
    }
}
