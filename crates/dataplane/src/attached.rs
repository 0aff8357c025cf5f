//! A whole hardware device in place of a switch's engines and traffic manager: simulated, on a host link, or mapped into memory.
//!
//! ```text
//!  ports of the worker -> send --> device --> take -> ports of the worker
//!  tables, objects, groups <- read back, write -> registers of the device
//! ```
//!
//! What control has written goes to the device before the next frame, and before the next request is answered; what frames have made of
//! counters, meters and registers is the state's before a request is answered. A device that is not to be reached is looked for again and
//! again, and is brought to the whole state when it is there.

mod counts;
mod link;

use crate::switch::{Switch, SwitchError};
use crate::{Clock, DropReason, PortId, Replication, ReplicationError};
use counts::{count, counted};
use link::Link;
use millrace_link::{Device, Event, Place};
use millrace_pipeline::{Bits, Program};
use millrace_rtl::device::{Counted, OWNER};
use millrace_rtl::map::{Field, RegisterDevice};
use millrace_rtl::{
    Capacities, DeviceOptions, Driver, DriverError, GROUPS, Groups, Hardware, NODES, Objects, Options,
    OutsideReport, SESSIONS, Session, Sessions, TooMany,
};
use millrace_state::State;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks at what control has written while nothing else happens.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// The hardware of programs, where some runs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HardwareConfig {
    /// What units of tables hold.
    pub capacities: Arc<Capacities>,
    /// The hardware device in place of engine and traffic manager; none: these.
    pub device: Option<Attachment>,
}

/// A hardware device that a switch is to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Where it is.
    pub place: Place,
    /// What it is like.
    pub options: DeviceOptions,
}

/// A switch's hardware device at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMoment {
    /// Why it cannot be reached, if it cannot: it goes on with what it has.
    pub unreachable: Option<String>,
    /// Until when it is known which entries were hit, in nanoseconds of the switch's time.
    pub hits_until_ns: u64,
}

/// The device of a program that runs.
pub(crate) struct Attached {
    design: Arc<millrace_rtl::Device>,
    driver: Driver,
    link: Link,
    /// The groups that the driver has, by [`crate::replicator::Replicator::revision`].
    groups: Option<u64>,
    /// What the state has is more than the device holds, and whether that was said.
    full: Option<(String, bool)>,
    /// Frames may have changed what is to be read back.
    is_touched: bool,
    /// Until when it is known which entries were hit.
    hits_until_ns: u64,
    /// What the device had counted of lookups and drops, as far as the switch has it, in the order of [`millrace_rtl::Device::counted`].
    counted: Vec<u64>,
    /// What the device has as its owner when it holds what the driver knows.
    owner: u32,
    /// Whether that was written.
    is_owned: bool,
    /// What was lost on the way from the device that the switch has counted.
    lost: u64,
    looked: Instant,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("link", &self.link).finish_non_exhaustive()
    }
}

/// The registers of a device.
type Registers = RegisterDevice<Box<dyn Device>>;

impl Attached {
    /// For a verified program, whose tables take no more entries than the device holds. A device elsewhere is only asked whether it is
    /// of this program.
    pub(crate) fn new(
        program: &Arc<Program>,
        state: &State,
        to: &Attachment,
        capacities: &Capacities,
    ) -> Result<Attached, SwitchError> {
        let refused = |refusal: &dyn std::fmt::Display| SwitchError::Engine(refusal.to_string());
        let hardware = Hardware::new(
            Arc::clone(program),
            Options { capacities: capacities.clone(), ..to.options.stages() },
        );
        let hardware = hardware.map_err(|refusal| refused(&refusal))?;
        if let Some(OutsideReport { object, why, .. }) = hardware.outside().iter().find(|of| !of.is_empty) {
            // Nothing at its ports would do what frames ask for.
            return Err(refused(&format_args!("a device has no unit for {object}: {why}")));
        }
        let design = millrace_rtl::Device::new(&hardware, to.options.clone());
        let design = Arc::new(design.map_err(|refusal| refused(&refusal))?);
        let mut tables = state.tables();
        for (table, entries) in hardware.capacities() {
            tables.set_capacity(table, u32::try_from(entries).unwrap_or(u32::MAX));
        }
        for (profile, places) in hardware.places() {
            tables.set_places(profile, u32::try_from(places).unwrap_or(u32::MAX));
        }
        drop(tables);
        let link = Link::to(&to.place, &design).map_err(|why| refused(&why))?;
        let driver = design.driver();
        Ok(Attached {
            design,
            driver,
            link,
            groups: None,
            full: None,
            is_touched: true,
            hits_until_ns: 0,
            counted: Vec::new(),
            owner: RandomState::new().build_hasher().finish() as u32 | 1,
            is_owned: false,
            lost: 0,
            looked: Instant::now(),
        })
    }

    /// What polls readable when it has something to say.
    pub(crate) fn poll_fd(&mut self) -> Option<RawFd> {
        self.link.up().and_then(|registers| registers.access().poll_fd())
    }

    /// Whether frames go to it and come from it here; those of one of which only registers are reached go by its own ports.
    pub(crate) fn has_frames(&self) -> bool {
        self.link.has_frames
    }

    /// Has it be reached now, and holds what the state has.
    pub(crate) fn reach(&mut self, state: &State, groups: (&Replication, u64)) -> Result<(), String> {
        self.link.reach(&self.design)?;
        self.look_for_it();
        self.update(state, groups);
        let full = self.full.as_ref().map(|(full, _)| full.clone());
        self.link.trouble().or(full).map_or(Ok(()), Err)
    }

    /// Takes up a device that is there again.
    fn look_for_it(&mut self) {
        let Some(device) = self.link.came(&self.design) else { return };
        let queues = self.design.register_map().queues().count() as u32;
        let enabled = u32::MAX.checked_shr(32 - queues).unwrap_or(0);
        let begun =
            RegisterDevice::attach(self.design.register_map().clone(), device).and_then(|mut registers| {
                if registers.access().tells() {
                    let write = registers.access().write(Field::Enabled.offset(), enabled);
                    write.map_err(millrace_rtl::map::MapError::Access)?;
                }
                let counted = counted(&self.design, &mut registers)?;
                let owner = match registers.map().find(OWNER) {
                    Some((port, address)) => registers.read_word(port, address)?.to_u64_saturating(),
                    None => 0,
                };
                Ok((registers, counted, owner))
            });
        match begun {
            Ok((registers, counted, owner)) => {
                let is_known = self.is_owned && owner == u64::from(self.owner);
                match (self.link.is_simulated(), is_known) {
                    // It has had a reset.
                    (true, _) => (self.driver, self.groups) = (self.design.driver(), None),
                    // What it has counted while it was not reached stays, and is read.
                    (false, true) => self.driver.resume(),
                    (false, false) => self.driver.forget(),
                }
                if !is_known {
                    (self.counted, self.is_owned) = (counted, false);
                }
                (self.lost, self.is_touched) = (0, true);
                self.link.is_up(registers);
            }
            Err(error) => self.link.cut(&error),
        }
    }

    /// Writes what control has changed; what changed in tables and groups, between two frames.
    pub(crate) fn update(&mut self, state: &State, (groups, revision): (&Replication, u64)) {
        self.looked = Instant::now();
        let Some(registers) = self.link.up() else { return };
        if self.groups != Some(revision) {
            match replicate(&mut self.driver, groups) {
                Ok(()) => self.groups = Some(revision),
                Err(error) => return self.is_full(&error),
            }
        }
        match self.driver.update(state, registers) {
            Ok(_) => {
                self.full = None;
                self.own();
            }
            Err(DriverError::Full(full)) => self.is_full(&full),
            Err(DriverError::Device(error)) => self.link.cut(&error),
        }
    }

    /// Notes in the device that it holds what the driver knows.
    fn own(&mut self) {
        if self.is_owned {
            return;
        }
        let word = self.design.register_map().find(OWNER);
        let (Some((port, address)), Some(registers)) = (word, self.link.up()) else { return };
        match registers.write_word(port, address, &Bits::new(32, self.owner.into())) {
            Ok(()) => self.is_owned = true,
            Err(error) => self.link.cut(&error),
        }
    }

    /// What there is does not fit: a program has taken over that keeps more.
    fn is_full(&mut self, what: &dyn std::fmt::Display) {
        self.full.get_or_insert_with(|| {
            (format!("the device goes on with the tables that it has: {what}"), false)
        });
    }

    /// What is to be said of it in the log, once.
    fn take_line(&mut self) -> Option<String> {
        let (line, is_said) = self.full.as_mut()?;
        (!std::mem::replace(is_said, true)).then(|| line.clone())
    }

    /// Brings what frames have made of counters, meters and registers to the state; gives what was counted since the last time.
    fn read_back(&mut self, objects: &mut Objects<'_>, clock: &Clock) -> Vec<(Counted, u64)> {
        let Some(registers) = self.link.up() else { return Vec::new() };
        let from_ns = objects.now_ns;
        if !matches!(clock, Clock::Simulated(_)) {
            self.driver.hit_unseen(objects);
        }
        if !self.is_touched {
            self.hits_until_ns = from_ns;
            return Vec::new();
        }
        // Frames that are in it, or come by wires of its own, go on to change something.
        self.is_touched =
            registers.access().is_busy() || !registers.access().tells() || registers.access().is_shared();
        let mut read = || {
            self.driver.read_back(objects, registers, &|| clock.now_ns())?;
            match registers.access().tells() {
                true => self.driver.take_lost(objects, registers)?,
                false => self.driver.take_messages(objects, registers)?,
            }
            counted(&self.design, registers)
        };
        match read() {
            Ok(now) => {
                self.hits_until_ns = from_ns;
                let more = now.iter().zip(&self.counted).map(|(now, before)| now.wrapping_sub(*before));
                let more = self.design.counted().zip(more).map(|((what, _), more)| (what, more)).collect();
                self.counted = now;
                more
            }
            Err(error) => {
                self.link.cut(&error);
                Vec::new()
            }
        }
    }

    /// Has a frame come in by a port; why it does not.
    fn send(&mut self, port: PortId, bytes: &[u8]) -> Result<(), DropReason> {
        let number = self.design.options().port(port).and_then(|number| u16::try_from(number).ok());
        let number = number.ok_or(DropReason::UnknownPort)?;
        let registers = self.link.up().ok_or(DropReason::Device)?;
        self.is_touched = true;
        registers.access().send(number, bytes).map_err(|_| DropReason::Device)
    }

    /// What it has to say: now, or with `all` until no frame is in one that is simulated.
    fn said(&mut self, all: bool) -> Vec<Event> {
        let mut said = Vec::new();
        let Some(registers) = self.link.up() else { return said };
        let device = registers.access();
        let heard = match all {
            true => device.settle(&mut |event| said.push(event)),
            false => device.poll(&mut |event| said.push(event)),
        };
        self.is_touched |= !said.is_empty();
        if let Err(error) = heard {
            self.link.cut(&error);
        }
        said
    }
}

/// Multicast groups as a device has them.
pub fn device_groups(groups: &Replication) -> Groups {
    let of = |id: u32| groups.copies(id).unwrap_or_default();
    groups.groups().map(|(id, _)| (id, of(id).iter().map(|copy| (copy.port, copy.rid)).collect())).collect()
}

/// Clone sessions as a device has them.
pub fn device_sessions(groups: &Replication) -> Sessions {
    let session = |session: &crate::Session| Session {
        group: session.group,
        copies: session.copies.iter().map(|copy| (copy.port, copy.rid)).collect(),
        truncate: session.truncate,
        class: session.class_of_service,
    };
    groups.sessions().map(|(number, of)| (number, session(of))).collect()
}

/// Says what multicast groups and clone sessions a device is to have.
fn replicate(driver: &mut Driver, groups: &Replication) -> Result<(), TooMany> {
    driver.set_replication(&device_groups(groups), &device_sessions(groups))
}

/// Why a device does not hold them.
fn refusal(too_many: TooMany) -> ReplicationError {
    let (what, limit) = match too_many {
        TooMany::Group(_) => ("numbers of multicast groups in the device", GROUPS - 1),
        TooMany::Copies(_) => ("copies in multicast groups and clone sessions of the device", NODES),
        TooMany::Session(..) => ("numbers of clone sessions in the device", SESSIONS),
    };
    ReplicationError::TooMany { what, limit: limit as usize }
}

/// Does something with the device, if there is one, and the rest of the switch.
fn with_device<R>(switch: &mut Switch, work: impl FnOnce(&mut Switch, &mut Attached) -> R) -> Option<R> {
    let mut device = switch.forwarder.device.take()?;
    let result = work(switch, &mut device);
    switch.forwarder.device = Some(device);
    Some(result)
}

/// Has the hardware device be there, and hold what the state has, before packets come. Nothing for a switch without one.
///
/// # Errors
/// It cannot be reached, or does not hold that.
pub(crate) fn reach(switch: &mut Switch) -> Result<(), SwitchError> {
    let reached = with_device(switch, |switch, device| {
        device.reach(switch.state(), (switch.replicator.groups(), switch.replicator.revision()))
    });
    reached.unwrap_or(Ok(())).map_err(SwitchError::Engine)
}

/// Whether the time of the switch is that of its hardware device, if there is one.
pub(crate) fn has_this_time(switch: &Switch) -> bool {
    switch.forwarder.device.as_ref().is_none_or(|device| device.link.is_simulated())
}

/// What control is told of the hardware device, if there is one.
pub(crate) fn moment(switch: &Switch) -> Option<DeviceMoment> {
    let device = switch.forwarder.device.as_ref()?;
    Some(DeviceMoment { unreachable: device.link.trouble(), hits_until_ns: device.hits_until_ns })
}

/// Goes on with the device of the switch whose program has run until now, if that is where the one of the next program is; else takes
/// up one that is there.
pub(crate) fn inherit(switch: &mut Switch, before: &mut Switch) {
    if let (Some(next), Some(before)) = (&mut switch.forwarder.device, &mut before.forwarder.device) {
        next.link.inherit(&mut before.link);
    }
    if let Some(next) = &mut switch.forwarder.device {
        next.link.wait(&next.design);
    }
    settle(switch);
}

/// Writes to multicast groups and clone sessions, if a hardware device holds what then is there.
pub(crate) fn write_groups<R>(
    switch: &mut Switch,
    write: impl FnOnce(&mut Replication) -> Result<R, ReplicationError>,
) -> Result<R, ReplicationError> {
    if !switch.has_device() {
        return write(switch.replicator.groups_mut());
    }
    switch.replicator.note();
    let written = write(switch.replicator.groups_mut());
    let fits = written.and_then(|done| {
        let held =
            with_device(switch, |switch, device| replicate(&mut device.driver, switch.replicator.groups()));
        held.unwrap_or(Ok(())).map(|()| done).map_err(refusal)
    });
    match fits.is_ok() {
        true => switch.replicator.keep(),
        false => switch.replicator.undo(),
    }
    fits
}

/// Takes up a device that is there again, and brings what control has written to it.
fn bring(switch: &Switch, device: &mut Attached) {
    device.look_for_it();
    device.update(switch.state(), (switch.replicator.groups(), switch.replicator.revision()));
}

/// Brings what control has written to the hardware device, and what frames have changed to the state. A worker does so before it
/// answers a request.
pub(crate) fn settle(switch: &mut Switch) {
    let counted = with_device(switch, |switch, device| {
        bring(switch, device);
        let now_ns = switch.clock.now_ns();
        let (state, effects) = (&mut switch.forwarder.state, &mut switch.forwarder.effects);
        device.read_back(&mut Objects { state, now_ns, effects }, &switch.clock)
    });
    for (what, more) in counted.into_iter().flatten() {
        count(switch, what, more);
    }
}

/// Has packets come in by the device that meets what control has written; they leave later, or of simulated time now. Says whether
/// there is a device.
pub(crate) fn send(
    switch: &mut Switch,
    packets: &mut dyn Iterator<Item = (PortId, &[u8], Option<u64>)>,
) -> bool {
    let is_simulated = matches!(switch.clock, crate::Clock::Simulated(_));
    let sent = with_device(switch, |switch, device| {
        switch.now_ns = switch.clock.now_ns();
        bring(switch, device);
        if let Some(registers) = device.link.up() {
            registers.access().set_time(switch.now_ns);
        }
        for (port, bytes, _) in packets {
            let origin = switch.origin(port, switch.now_ns, None);
            if let Some(reason) = switch.ports.closed(port, &mut switch.ledger.counters) {
                switch.drop_packet(reason, &origin, None);
                continue;
            }
            switch.ledger.counters.received(port, bytes.len());
            if let Err(reason) = device.send(port, bytes) {
                switch.drop_packet(reason, &origin, None);
            }
        }
        if is_simulated {
            take_said(switch, device, true);
        }
    });
    sent.is_some()
}

/// Takes what the device has to say; whether there was anything, or there will be at once.
pub(crate) fn take(switch: &mut Switch, all: bool) -> bool {
    let busy = with_device(switch, |switch, device| {
        if device.looked.elapsed() >= LOOK {
            bring(switch, device);
            take_waiting(switch, device);
        }
        take_said(switch, device, all)
    });
    busy.unwrap_or(false)
}

/// Takes the messages of a device that does not tell of them, so that who listens for digests hears of them without asking for anything.
fn take_waiting(switch: &mut Switch, device: &mut Attached) {
    let Some(registers) = device.link.up() else { return };
    if registers.access().tells() {
        return;
    }
    switch.now_ns = switch.clock.now_ns();
    let (now_ns, state, effects) =
        (switch.now_ns, &mut switch.forwarder.state, &mut switch.forwarder.effects);
    let objects = &mut Objects { state, now_ns, effects };
    let taken = registers.has_messages().and_then(|has| match has {
        true => device.driver.take_messages(objects, registers),
        false => Ok(()),
    });
    if let Err(error) = taken {
        device.link.cut(&error);
    }
}

/// Takes what a device has to say; whether there was anything, or there will be at once.
fn take_said(switch: &mut Switch, device: &mut Attached, all: bool) -> bool {
    switch.now_ns = switch.clock.now_ns();
    if let Some(registers) = device.link.up() {
        registers.access().set_time(switch.now_ns);
    }
    let said = device.said(all);
    let busy = !said.is_empty();
    for event in said {
        match event {
            Event::Frame { port, bytes } => {
                let port = device.design.options().number(port.into());
                // Which port it came in by, the device does not tell.
                let origin = switch.origin(port, switch.now_ns, None);
                switch.transmit(port, bytes, &origin);
            }
            Event::Message { kind, bytes } => {
                let port = kind as usize;
                let Some(of) = device.design.register_map().ports.get(port) else { continue };
                let word = Bits::from_bytes(of.width, &bytes);
                let now_ns = switch.now_ns;
                let (state, effects) = (&mut switch.forwarder.state, &mut switch.forwarder.effects);
                device.driver.take_message(port, &word, &mut Objects { state, now_ns, effects });
            }
        }
    }
    device.take_line().into_iter().for_each(|line| switch.forwarder.effects.say(line));
    let Some(registers) = device.link.up() else { return busy };
    let lost = registers.access().lost();
    let busy = busy || registers.access().is_busy();
    let more = lost.saturating_sub(std::mem::replace(&mut device.lost, lost));
    switch.ledger.counters.dropped_elsewhere(DropReason::Device, more);
    busy
}
