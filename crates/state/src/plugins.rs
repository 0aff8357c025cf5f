//! Plugins that a program calls: what runs them is brought by the switch, one side of it for each worker.

use crate::BuildError;
use crate::state::State;
use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::{Plugin, PluginId};
use std::fmt;
use std::sync::Arc;

/// Runs plugins for all workers of a process.
pub trait PluginHost: fmt::Debug + Send + Sync {
    /// One worker's side of a plugin. There need not be one of that name yet.
    ///
    /// # Errors
    /// Why there cannot be.
    fn bind(&self, plugin: &Plugin) -> Result<Box<dyn PluginCaller>, String>;
}

/// Calls one plugin for one worker.
pub trait PluginCaller: fmt::Debug + Send {
    /// Calls the plugin with words and a payload. Results that it does not give are 0.
    fn call(&mut self, args: &[u64], results: &mut [u64], payload: &[u8]) -> PluginAnswer<'_>;
}

/// What a call gives besides its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginAnswer<'a> {
    /// Whether the packet is to be dropped.
    pub drop: bool,
    /// So many bytes at the start of the payload, no more than there are, become these.
    pub payload: Option<(usize, &'a [u8])>,
    /// A packet that goes to the port which the packet came in on.
    pub reply: Option<&'a [u8]>,
}

/// A worker's sides of the plugins of its program; none without a host.
pub(crate) type Callers = PrimaryMap<PluginId, Box<dyn PluginCaller>>;

impl State {
    /// Has the plugins of the program, and of programs that are made to take over from it, be run by that. Without it they are
    /// missing.
    ///
    /// # Errors
    /// [`BuildError::Plugin`]; then nothing has changed.
    pub fn set_plugins(&mut self, host: &Arc<dyn PluginHost>) -> Result<(), BuildError> {
        let bind = |plugin: &Plugin| {
            let failed = |why| BuildError::Plugin { plugin: plugin.name.clone(), why };
            host.bind(plugin).map_err(failed)
        };
        let callers: Vec<_> = self.program().plugins.values().map(bind).collect::<Result<_, _>>()?;
        self.own.plugins = callers.into_iter().collect();
        self.handle.lock().plugins = Some(Arc::clone(host));
        Ok(())
    }

    /// Calls a plugin; see [`millrace_pipeline::Inst::Call`].
    #[inline]
    pub fn call_plugin(
        &mut self,
        id: PluginId,
        args: &[u64],
        results: &mut [u64],
        payload: &[u8],
    ) -> PluginAnswer<'_> {
        let plugin = &self.schema.program.plugins[id];
        let Some(caller) = self.own.plugins.get_mut(id) else {
            results.fill(0);
            return PluginAnswer { drop: !plugin.passes, ..PluginAnswer::default() };
        };
        let answer = caller.call(args, results, payload);
        let fits = |(replaced, _): &(usize, &[u8])| plugin.rewrites && *replaced <= payload.len();
        PluginAnswer { payload: answer.payload.filter(fits), ..answer }
    }
}
