//! Programs on probation: the program before comes back by itself if the new one drops too much.

use crate::device::Device;
use crate::entered::Entered;
use crate::failure::Failure;
use crate::seen;
use millrace_ctl_api::{Probation, SwitchStats};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Longest probation, in seconds.
pub const MAX_PROBATION: u32 = 86_400;
/// All packets, in millionths.
const WHOLE: u64 = 1_000_000;
/// Fewer packets than these say nothing before the time is over.
const FEWEST: u64 = 1_000;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Whether there can be such a probation, before anything is changed.
pub(crate) fn check(Probation { seconds, max_drops }: Probation) -> Result<(), Failure> {
    if (1..=MAX_PROBATION).contains(&seconds) && u64::from(max_drops) <= WHOLE {
        return Ok(());
    }
    Err(Failure::Invalid(format!(
        "a probation takes 1 to {MAX_PROBATION} seconds (MAX_PROBATION) and at most all packets; nothing is changed"
    )))
}

/// Watches the program of that generation of a switch from now on. Gives what is told of it.
pub(crate) fn begin(
    device: &Arc<Device>,
    switch: &Entered,
    generation: u64,
    probation: Probation,
) -> Result<String, Failure> {
    let Probation { seconds, max_drops } = probation;
    let without = |reason: &dyn fmt::Display| {
        Failure::failed(format_args!("the program runs, and is not on probation: {reason}"))
    };
    let before = counts(device, &switch.name).map_err(|failure| without(&failure))?;
    let watched =
        Watched { device: Arc::downgrade(device), switch: switch.clone(), generation, probation, before };
    let thread = std::thread::Builder::new().name("probation".into());
    thread.spawn(move || watched.watch()).map_err(|error| without(&error))?;
    Ok(format!(
        "it is on probation for {seconds} s, with {} % of drops at most",
        f64::from(max_drops) / 10_000.0
    ))
}

struct Watched {
    /// A device that ends is not held up.
    device: Weak<Device>,
    switch: Entered,
    generation: u64,
    probation: Probation,
    before: (u64, u64),
}

/// Packets that a switch has received, and those that it has dropped.
fn counts(device: &Device, switch: &str) -> Result<(u64, u64), Failure> {
    let asked = {
        let running = device.running();
        let model = running.file.switch(switch).ok_or_else(|| Failure::no_switch(switch))?;
        running.to_ask_one(model)?
    };
    let counted = seen::ask(vec![asked], seen::PATIENCE).pop();
    match counted.ok_or_else(|| Failure::no_switch(switch))? {
        SwitchStats { silent: Some(reason), .. } => Err(Failure::failed(reason)),
        SwitchStats { ports, drops, .. } => {
            Ok((ports.iter().map(|port| port.rx_packets).sum(), drops.values().sum()))
        }
    }
}

impl Watched {
    fn watch(&self) {
        let Probation { seconds, max_drops } = self.probation;
        let end = Instant::now() + Duration::from_secs(seconds.into());
        loop {
            let is_over = Instant::now() >= end;
            let Some(device) = self.device.upgrade() else { return };
            let generation = device.running().entered(&self.switch).map(|installed| installed.generation);
            if generation.ok() != Some(self.generation) {
                return info!(switch = self.switch.name, "the program on probation has been replaced");
            }
            if let Ok((received, dropped)) = counts(&device, &self.switch.name) {
                let received = received.saturating_sub(self.before.0);
                let dropped = dropped.saturating_sub(self.before.1);
                let is_much =
                    u128::from(dropped) * u128::from(WHOLE) > u128::from(received) * u128::from(max_drops);
                if is_much && (is_over || received >= FEWEST) {
                    return self.go_back(&device, received, dropped);
                }
            }
            if is_over {
                return info!(switch = self.switch.name, "the program has passed its probation");
            }
            drop(device);
            std::thread::sleep(LOOK);
        }
    }

    fn go_back(&self, device: &Device, received: u64, dropped: u64) {
        let result = device.roll_back(&self.switch).map(drop).map_err(|failure| failure.to_string());
        match &result {
            Ok(()) => warn!(
                switch = self.switch.name,
                received, dropped, "the program before is back: too much was dropped"
            ),
            Err(error) => warn!(switch = self.switch.name, error, "the program before does not come back"),
        }
        device.record_by_itself(
            &self.switch.name,
            "rollback by probation",
            result.as_ref().copied().map_err(String::as_str),
        );
    }
}
