//! The plugins by their names: what control loads, replaces, switches off and lists.

use crate::caller::{Caller, Seat};
use crate::code::{Code, LoadError, engine};
use crate::instance::Instance;
use crate::{Counts, Grants, MAX_NAME, MAX_PLUGINS, Policy, Settings};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use wasmtime::Engine;

/// Whether a plugin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A program calls it, and nothing was loaded under its name.
    Missing,
    /// It answers.
    On,
    /// Control has switched it off.
    Off,
    /// It has failed too often.
    Failed,
}

impl State {
    /// As users are told.
    pub fn name(self) -> &'static str {
        match self {
            State::Missing => "missing",
            State::On => "on",
            State::Off => "off",
            State::Failed => "failed",
        }
    }
}

/// A plugin as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Whether it answers.
    pub state: State,
    /// How often something was loaded under its name.
    pub loads: u64,
    /// Failures since it was loaded.
    pub failures: u64,
    /// The workers that call it, in all programs.
    pub callers: usize,
    /// Of whatever was loaded under its name.
    pub counts: Counts,
    /// What bounds it, once something was loaded.
    pub settings: Option<Settings>,
}

/// What all who have to do with a plugin share.
#[derive(Debug)]
pub(crate) struct Plugin {
    name: String,
    /// Changes when workers have to look into their mail.
    pub(crate) generation: AtomicU64,
    /// A [`Policy`] of its settings: 0 none, 1 pass, 2 drop.
    policy: AtomicU8,
    failing: Mutex<Failing>,
    inner: Mutex<Inner>,
}

/// How often the code has failed that is loaded now. Held for a few instructions only, since workers wait for it when their
/// plugin has failed.
#[derive(Debug, Default)]
struct Failing {
    failures: u64,
    too_often: bool,
}

#[derive(Debug, Default)]
struct Inner {
    code: Option<Code>,
    loads: u64,
    is_off: bool,
    seats: Vec<Weak<Seat>>,
    /// Of workers that are gone.
    counted: Counts,
}

impl Plugin {
    fn new(name: &str) -> Plugin {
        Plugin {
            name: name.to_owned(),
            generation: AtomicU64::new(0),
            policy: AtomicU8::new(0),
            failing: Mutex::default(),
            inner: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What its settings say.
    pub(crate) fn policy(&self) -> Option<Policy> {
        match self.policy.load(Acquire) {
            0 => None,
            1 => Some(Policy::Pass),
            _ => Some(Policy::Drop),
        }
    }

    fn set_policy(&self, policy: Option<Policy>) {
        let number = match policy {
            None => 0,
            Some(Policy::Pass) => 1,
            Some(Policy::Drop) => 2,
        };
        self.policy.store(number, Release);
    }

    /// Code of a generation has failed; answers whether it may go on. Who fails with older code counts nothing.
    pub(crate) fn note_failure(&self, generation: u64, most: u64) -> bool {
        let mut failing = self.failing();
        if self.generation.load(Acquire) != generation {
            return false;
        }
        failing.failures += 1;
        failing.too_often = failing.failures >= most;
        if failing.too_often {
            // All workers look, and find that there is nothing for them.
            self.generation.fetch_add(1, AcqRel);
        }
        !failing.too_often
    }

    /// Whether the code that is loaded has failed too often.
    pub(crate) fn has_failed(&self) -> bool {
        self.failing().too_often
    }

    fn failing(&self) -> MutexGuard<'_, Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker is gone.
    pub(crate) fn leave(&self, seat: &Arc<Seat>) {
        let mut inner = self.lock();
        inner.seats.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(seat)));
        inner.counted.add(seat.counters.read());
    }

    /// Gives each worker an instance, or none of the code; where one cannot be made nothing changes.
    fn hand_out(&self, inner: &mut Inner, code: Option<&Code>) -> Result<(), LoadError> {
        let seats: Vec<Arc<Seat>> = inner.seats.iter().filter_map(Weak::upgrade).collect();
        let made = seats.iter().map(|_| code.map(Instance::new).transpose());
        let made = made.collect::<Result<Vec<_>, LoadError>>()?;
        // What a worker finds there, and what it gave back, is freed here.
        for (seat, instance) in seats.iter().zip(made) {
            let mut mail = seat.mail.lock().unwrap_or_else(PoisonError::into_inner);
            let before = (mail.coming.replace(instance), mail.gone.take());
            drop(mail);
            drop(before);
        }
        let mut failing = self.failing();
        *failing = Failing::default();
        self.generation.fetch_add(1, AcqRel);
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let inner = self.lock();
        let mut counts = inner.counted;
        let seats: Vec<Arc<Seat>> = inner.seats.iter().filter_map(Weak::upgrade).collect();
        seats.iter().for_each(|seat| counts.add(seat.counters.read()));
        let (failures, has_failed) = {
            let failing = self.failing();
            (failing.failures, failing.too_often)
        };
        let state = match &inner.code {
            None => State::Missing,
            Some(_) if inner.is_off => State::Off,
            Some(_) if has_failed => State::Failed,
            Some(_) => State::On,
        };
        Snapshot {
            name: self.name.clone(),
            state,
            loads: inner.loads,
            failures,
            callers: seats.len(),
            counts,
            settings: inner.code.as_ref().map(|code| code.settings.clone()),
        }
    }
}

/// The plugins that programs of one process may call.
#[derive(Debug)]
pub struct Registry {
    engine: Engine,
    plugins: Mutex<BTreeMap<String, Arc<Plugin>>>,
}

impl Registry {
    /// None so far.
    ///
    /// # Errors
    /// The machine has no code generator.
    pub fn new() -> Result<Registry, LoadError> {
        Ok(Registry { engine: engine()?, plugins: Mutex::default() })
    }

    /// Loads a module under a name, in the place of what was there. Workers that call it go on with the old code until their
    /// next call.
    ///
    /// # Errors
    /// [`LoadError`]; then nothing has changed.
    pub fn load(&self, name: &str, module: &[u8], settings: Settings) -> Result<(), LoadError> {
        check_name(name)?;
        let code = Code::new(&self.engine, module, settings)?;
        // Also where nobody calls it yet a module has to be right.
        drop(Instance::new(&code)?);
        let plugin = self.plugin(name)?;
        let mut inner = plugin.lock();
        plugin.hand_out(&mut inner, Some(&code))?;
        plugin.set_policy(code.settings.policy);
        inner.code = Some(code);
        inner.loads += 1;
        inner.is_off = false;
        Ok(())
    }

    /// Switches a plugin off, or on again as it was loaded.
    ///
    /// # Errors
    /// Nothing was loaded under the name, or no instance can be made; then nothing has changed.
    pub fn switch(&self, name: &str, on: bool) -> Result<(), LoadError> {
        let plugin = self.plugins().get(name).cloned();
        let unknown = || LoadError::Unknown(name.to_owned());
        let plugin = plugin.ok_or_else(unknown)?;
        let mut inner = plugin.lock();
        let code = inner.code.clone().ok_or_else(unknown)?;
        plugin.hand_out(&mut inner, on.then_some(&code))?;
        inner.is_off = !on;
        Ok(())
    }

    /// A worker's side of a plugin that its program calls. Nothing has to be loaded yet.
    ///
    /// # Errors
    /// The name is none, there are too many, or no instance can be made.
    pub fn bind(&self, name: &str, policy: Policy, grants: Grants) -> Result<Caller, LoadError> {
        check_name(name)?;
        let plugin = self.plugin(name)?;
        let seat = Arc::new(Seat::default());
        let mut inner = plugin.lock();
        if let (Some(code), false) = (&inner.code, inner.is_off) {
            let instance = Instance::new(code)?;
            seat.mail.lock().unwrap_or_else(PoisonError::into_inner).coming = Some(Some(instance));
        }
        inner.seats.push(Arc::downgrade(&seat));
        drop(inner);
        Ok(Caller::new(plugin, seat, policy, grants))
    }

    /// All plugins, by name.
    pub fn list(&self) -> Vec<Snapshot> {
        let plugins: Vec<Arc<Plugin>> = self.plugins().values().cloned().collect();
        plugins.iter().map(|plugin| plugin.snapshot()).collect()
    }

    fn plugins(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Plugin>>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That of a name, which may be new.
    fn plugin(&self, name: &str) -> Result<Arc<Plugin>, LoadError> {
        let mut plugins = self.plugins();
        if let Some(plugin) = plugins.get(name) {
            return Ok(Arc::clone(plugin));
        }
        if plugins.len() >= MAX_PLUGINS {
            return Err(LoadError::TooMany);
        }
        let plugin = Arc::new(Plugin::new(name));
        plugins.insert(name.to_owned(), Arc::clone(&plugin));
        Ok(plugin)
    }
}

/// A name that files, metrics and command lines can have.
fn check_name(name: &str) -> Result<(), LoadError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_fine) {
        true => Ok(()),
        false => Err(LoadError::Name(name.to_owned())),
    }
}
