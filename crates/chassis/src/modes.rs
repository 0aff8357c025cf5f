//! The mode of a running switch: who sets it, which may follow which, and who hears of it.
//!
//! What a mode means is in one table ([`MODES`]); the data path enforces it. Here are the rules between modes: a switch becomes
//! operational when its configuration is valid, and passive when it is not; a mode follows only those that the table lets it follow;
//! programs and writes of clients are taken in modes that load, if the operator wants modes to be heeded at all.
//!
//! A program may have its own say: a table without a key named `switch_mode`, with an action of one number, gets the number of the mode
//! (0 `init`, 1 `operational`, 2 `maintenance`, 3 `passive`, 4 `quiet`) as its default. So a program can let a frame pass in some modes only.

use millrace_dataplane::{Control, MODES, Mode, RequestError, Switch};
use millrace_pipeline::{ActionCall, Bits, Program, TableId, Type};
use millrace_state::{TablesHandle, WriteError};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::{info, warn};

/// The table of a program that knows its mode.
const MODE_TABLE: &str = "switch_mode";

/// What a switch was configured with, as whoever made it names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Its part number.
    pub part_number: Option<String>,
    /// Its CRC-32.
    pub crc: Option<u32>,
    /// Why it is not valid.
    pub fault: Option<String>,
}

/// The mode of a switch, and how it came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeState {
    /// The mode.
    pub mode: Mode,
    /// The one before it.
    pub previous: Mode,
    /// When it began, in nanoseconds since 1970.
    pub since_ns: u64,
    /// How often it has changed.
    pub changes: u64,
}

/// Why a mode stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModeError {
    /// The other may not follow it.
    Order(Mode, Mode),
    /// The configuration is not valid.
    Configuration(String),
    /// The switch has ended.
    Ended,
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModeError::Order(from, to) => {
                let next: Vec<&str> = from.conduct().next.iter().map(|mode| mode.name()).collect();
                write!(
                    f,
                    "a switch that is {from} does not become {to}: {from} is followed by {}",
                    next.join(", ")
                )
            }
            ModeError::Configuration(fault) => write!(f, "the configuration is not valid: {fault}"),
            ModeError::Ended => RequestError.fmt(f),
        }
    }
}

impl std::error::Error for ModeError {}

/// Hears of changes: the mode until then, and the one from then on.
type Hears = Box<dyn Fn(Mode, Mode) + Send + Sync>;

/// The mode of one switch. Copies are of the same.
#[derive(Clone)]
pub struct Modes(Arc<Shared>);

struct Shared {
    /// Whether programs, and writes of clients, are taken in modes that load only.
    are_heeded: bool,
    configuration: Configuration,
    /// Held while the mode changes, so that changes are one after the other.
    state: Mutex<ModeState>,
    /// The switch, as soon as it runs.
    control: OnceLock<Control>,
    hears: Mutex<Vec<Hears>>,
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Modes").field(&self.now()).finish()
    }
}

impl Modes {
    /// Of a switch that does not run yet: it is in `init`, which the mode that it starts in follows. A switch whose configuration is not
    /// valid starts passive in place of operational.
    ///
    /// # Errors
    /// That mode does not follow `init`.
    pub fn new(start: Mode, are_heeded: bool, configuration: Configuration) -> Result<Modes, ModeError> {
        let start = match (start, &configuration.fault) {
            (Mode::Operational, Some(_)) => Mode::Passive,
            // It is checked already.
            (Mode::Init, fault) => checked(fault.is_none()),
            (start, _) => start,
        };
        // To work on a switch from the start on is to have it come up and go there.
        if !Mode::Init.may_become(start) && !Mode::Passive.may_become(start) {
            return Err(ModeError::Order(Mode::Init, start));
        }
        let state = ModeState { mode: start, previous: Mode::Init, since_ns: now_ns(), changes: 1 };
        Ok(Modes(Arc::new(Shared {
            are_heeded,
            configuration,
            state: Mutex::new(state),
            control: OnceLock::new(),
            hears: Mutex::default(),
        })))
    }

    /// Brings the mode to a switch that does not run yet, or is to take over from the one that does.
    pub fn set_up(&self, switch: &mut Switch) {
        let mode = self.now().mode;
        switch.set_mode(mode);
        tell_program(switch.program(), &switch.state().handle(), mode);
    }

    /// The switch runs, and is reached by that.
    pub fn runs(&self, control: Control) {
        // There is one.
        let _ = self.0.control.set(control);
    }

    /// Has somebody hear of changes, while they are made: it must not take long, nor ask for the mode.
    pub fn add_listener(&self, hears: impl Fn(Mode, Mode) + Send + Sync + 'static) {
        self.0.hears.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hears));
    }

    /// The mode now.
    pub fn now(&self) -> ModeState {
        *self.state()
    }

    /// The configuration.
    pub fn configuration(&self) -> &Configuration {
        &self.0.configuration
    }

    /// Whether a program may be loaded now.
    ///
    /// # Errors
    /// Why not, for whoever brings it.
    pub fn check_load(&self) -> Result<(), String> {
        self.check("takes no program")
    }

    /// Whether clients may write entries and other objects of the program now: they are part of the configuration.
    ///
    /// # Errors
    /// Why not, for whoever writes.
    pub fn check_write(&self) -> Result<(), String> {
        self.check("keeps its entries")
    }

    /// Whether the mode is one that loads, if modes are heeded.
    fn check(&self, what: &str) -> Result<(), String> {
        let mode = self.now().mode;
        match self.0.are_heeded && !mode.conduct().loads {
            true => {
                let loads = MODES.iter().filter(|conduct| conduct.loads).map(|conduct| conduct.name);
                let loads = loads.collect::<Vec<_>>().join(" or ");
                Err(format!(
                    "the switch is {mode} and {what}: that may change when it is {loads} (`millrace mode set`)"
                ))
            }
            false => Ok(()),
        }
    }

    /// Has the switch go on in another mode; to `init` follows at once what its configuration is good for.
    ///
    /// # Errors
    /// [`ModeError`]; the mode stays.
    pub fn set(&self, to: Mode) -> Result<ModeState, ModeError> {
        let mut state = self.state();
        self.change(&mut state, to)?;
        if to == Mode::Init {
            self.change(&mut state, checked(self.0.configuration.fault.is_none()))?;
        }
        Ok(*state)
    }

    fn state(&self) -> MutexGuard<'_, ModeState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, state: &mut ModeState, to: Mode) -> Result<(), ModeError> {
        let from = state.mode;
        if from == to {
            return Ok(());
        }
        if !from.may_become(to) {
            return Err(ModeError::Order(from, to));
        }
        if let (true, Some(fault)) = (to == Mode::Operational, &self.0.configuration.fault) {
            return Err(ModeError::Configuration(fault.clone()));
        }
        if let Some(control) = self.0.control.get() {
            control.set_mode(to).map_err(|RequestError| ModeError::Ended)?;
            let running =
                control.ask(millrace_dataplane::Request::Look).map_err(|RequestError| ModeError::Ended)?;
            tell_program(&running.program, &running.tables, to);
        }
        *state = ModeState { mode: to, previous: from, since_ns: now_ns(), changes: state.changes + 1 };
        info!(mode = to.name(), previous = from.name(), "mode");
        self.0.hears.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|hears| hears(from, to));
        Ok(())
    }
}

/// What follows `init`.
fn checked(is_valid: bool) -> Mode {
    if is_valid { Mode::Operational } else { Mode::Passive }
}

/// Tells a program its mode, if it wants to know.
fn tell_program(program: &Program, tables: &TablesHandle, mode: Mode) {
    let Some((table, action, width)) = mode_table(program) else { return };
    let call = ActionCall { action, args: vec![Bits::new(width, mode as u128)] };
    let done: Result<(), WriteError> = tables.lock().set_default(table, &call);
    if let Err(error) = done {
        warn!(program = program.name, %error, "the program is not told its mode");
    }
}

/// The table of a program that knows its mode: which it is, its action, and the bits of the action's number.
fn mode_table(program: &Program) -> Option<(TableId, usize, u32)> {
    let mut named = program.tables.iter().filter(|(_, table)| {
        let name = table.name.rsplit('.').next().unwrap_or_default();
        name == MODE_TABLE && table.keys.is_empty() && !table.const_default
    });
    let (id, table) = named.next()?;
    let takes_number = table.actions.iter().enumerate().find_map(|(at, action)| {
        let [number] = program.actions[action.action].params[..] else { return None };
        match program.slots[number].ty {
            Type::Bits(width) if width >= MODE_BITS => Some((at, width)),
            _ => None,
        }
    });
    takes_number.map(|(action, width)| (id, action, width))
}

/// The bits that the number of a mode takes.
const MODE_BITS: u32 = usize::BITS - (MODES.len() - 1).leading_zeros();

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(start: Mode, fault: Option<&str>) -> Modes {
        let configuration = Configuration { fault: fault.map(str::to_owned), ..Configuration::default() };
        Modes::new(start, true, configuration).unwrap()
    }

    #[test]
    fn a_switch_starts_as_its_configuration_lets_it() {
        for (start, fault, is) in [
            (Mode::Operational, None, Mode::Operational),
            (Mode::Operational, Some("CRC"), Mode::Passive),
            (Mode::Init, None, Mode::Operational),
            (Mode::Init, Some("CRC"), Mode::Passive),
            (Mode::Passive, None, Mode::Passive),
            (Mode::Maintenance, Some("CRC"), Mode::Maintenance),
            (Mode::Quiet, None, Mode::Quiet),
        ] {
            let state = modes(start, fault).now();
            assert_eq!((state.mode, state.previous, state.changes), (is, Mode::Init, 1), "{start} {fault:?}");
        }
    }

    #[test]
    fn modes_follow_by_the_table_alone_and_are_told() {
        let modes = modes(Mode::Operational, None);
        let told = Arc::<Mutex<Vec<(Mode, Mode)>>>::default();
        let hears = Arc::clone(&told);
        modes.add_listener(move |from, to| hears.lock().unwrap().push((from, to)));
        assert!(
            modes
                .check_load()
                .unwrap_err()
                .contains("takes no program: that may change when it is init or maintenance")
        );
        assert!(modes.check_write().unwrap_err().contains("operational and keeps its entries"));
        // Nothing changes, and nobody hears of it.
        assert_eq!(modes.set(Mode::Operational).unwrap().changes, 1);
        assert_eq!(modes.set(Mode::Passive).unwrap().mode, Mode::Passive);
        let refused = modes.set(Mode::Operational).unwrap_err();
        assert_eq!(refused, ModeError::Order(Mode::Passive, Mode::Operational));
        assert!(refused.to_string().contains("passive is followed by init, maintenance, quiet"), "{refused}");
        modes.set(Mode::Maintenance).unwrap();
        assert_eq!((modes.check_load(), modes.check_write()), (Ok(()), Ok(())));
        modes.set(Mode::Quiet).unwrap();
        assert_eq!(modes.set(Mode::Maintenance), Err(ModeError::Order(Mode::Quiet, Mode::Maintenance)));
        // What follows `init` follows at once.
        let state = modes.set(Mode::Init).unwrap();
        assert_eq!((state.mode, state.previous, state.changes), (Mode::Operational, Mode::Init, 6));
        let wanted = [
            (Mode::Operational, Mode::Passive),
            (Mode::Passive, Mode::Maintenance),
            (Mode::Maintenance, Mode::Quiet),
            (Mode::Quiet, Mode::Init),
            (Mode::Init, Mode::Operational),
        ];
        assert_eq!(*told.lock().unwrap(), wanted);
    }

    #[test]
    fn without_a_valid_configuration_no_switch_is_operational() {
        let modes = modes(Mode::Maintenance, Some("the CRC is wrong"));
        let refused = modes.set(Mode::Operational).unwrap_err();
        assert!(refused.to_string().contains("the CRC is wrong"), "{refused}");
        assert_eq!(modes.set(Mode::Init).unwrap().mode, Mode::Passive);
    }
}
