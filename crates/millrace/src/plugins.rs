//! Plugins that programs call: `--plugin` of `millrace run`, `millrace plugin`, and what a switch shows of
//! them. A build without the feature `plugins` has none: then programs meet the policy of a missing plugin.

use crate::findings::Failure;
use crate::output::note_line;
use clap::Args;
use millrace_observe::Plugins;
use millrace_observe_api::PluginStatus;
use millrace_pipeline::Program;
use millrace_state::PluginHost;
use std::fmt::Write;
use std::sync::Arc;
use tracing::warn;

/// The plugins that there are from the start.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Plugins")]
pub(crate) struct PluginArgs {
    /// A WebAssembly module that the program calls as plugin NAME: match=match.wasm,policy=drop,fuel=100000,failures=3,memory=4
    #[arg(long, value_name = "NAME=FILE[,SETTING=VALUE]...")]
    pub(crate) plugin: Vec<String>,
}

/// Largest file of a plugin that is read, in bytes: more than any plugin may have.
pub(crate) const MAX_MODULE_FILE: u64 = 64 << 20;

/// A plugin of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) file: String,
    /// As users write them: `policy=drop,fuel=100000`.
    pub(crate) settings: String,
}

/// The plugins of a switch.
#[derive(Clone)]
pub(crate) struct Loaded {
    /// What runs them; none in a build without them.
    pub(crate) host: Option<Arc<dyn PluginHost>>,
    /// What is shown of them, and changed.
    pub(crate) shown: Arc<dyn Plugins>,
}

impl PluginArgs {
    /// What was given.
    pub(crate) fn given(&self) -> Result<Vec<Given>, Failure> {
        self.plugin.iter().map(|text| given(text)).collect()
    }
}

/// `NAME=FILE[,SETTING=VALUE]...`
fn given(text: &str) -> Result<Given, Failure> {
    let wrong =
        || Failure::Usage(format!("`{text}` is no plugin: NAME=FILE is expected, as in match=match.wasm"));
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (file, settings) = rest.split_once(',').unwrap_or((rest, ""));
    if name.is_empty() || file.is_empty() {
        return Err(wrong());
    }
    Ok(Given { name: name.to_owned(), file: file.to_owned(), settings: settings.to_owned() })
}

/// Loads the plugins of the command line, whose modules `read` reads, and says which ones the program misses.
pub(crate) fn load(
    args: &PluginArgs,
    program: &Program,
    read: impl Fn(&str) -> Result<Vec<u8>, Failure>,
) -> Result<Loaded, Failure> {
    let loaded = registry()?;
    for Given { name, file, settings } in args.given()? {
        let module = read(&file)?;
        let failed = |why| Failure::Failed(format!("plugin {name}: {file}: {why}"));
        loaded.shown.load(&name, &settings, &module).map_err(failed)?;
    }
    let names: Vec<String> = loaded.shown.list().into_iter().map(|plugin| plugin.name).collect();
    for plugin in program.plugins.values().filter(|plugin| !names.contains(&plugin.name)) {
        let what = if plugin.passes { "go on" } else { "are dropped" };
        warn!(plugin = plugin.name, "missing: packets {what}");
        note_line(format_args!("plugin {} is missing: packets that call it {what}", plugin.name));
    }
    Ok(loaded)
}

/// What plugins counted, as text.
pub(crate) fn text(plugins: &[PluginStatus]) -> String {
    let mut text = String::new();
    for plugin in plugins {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(plugin));
    }
    text
}

/// `plugin match: on, 10 calls, 1234 fuel, 0.001 ms, 0 traps, 0 over budget, 0 unanswered, 1 dropped, 0 rewritten, 1 replies`
pub(crate) fn line(plugin: &PluginStatus) -> String {
    let PluginStatus { name, state, calls, fuel, traps, over_budget, unanswered, drops, .. } = plugin;
    let (rewrites, replies, loads) = (plugin.rewrites, plugin.replies, plugin.loads);
    let milliseconds = plugin.nanoseconds as f64 / 1e6;
    format!(
        "plugin {name}: {state}, loaded {loads} times, {calls} calls, {fuel} fuel, {milliseconds:.3} ms, {traps} traps, \
         {over_budget} over budget, {unanswered} unanswered, {drops} dropped, {rewrites} rewritten, {replies} replies"
    )
}

#[cfg(not(feature = "plugins"))]
fn registry() -> Result<Loaded, Failure> {
    Ok(Loaded { host: None, shown: Arc::new(millrace_observe::NoPlugins) })
}

#[cfg(feature = "plugins")]
fn registry() -> Result<Loaded, Failure> {
    let made = millrace_plugins::Registry::new().map_err(|error| Failure::Failed(error.to_string()))?;
    let registry = Arc::new(with::Registered(made));
    Ok(Loaded { host: Some(Arc::clone(&registry) as Arc<dyn PluginHost>), shown: registry })
}

/// A build that has plugins: the registry as the data path and observers see it.
#[cfg(feature = "plugins")]
mod with {
    use super::{PluginHost, PluginStatus, Plugins};
    use millrace_pipeline::Plugin;
    use millrace_plugins::{Caller, Grants, Policy, Registry, Settings, Snapshot};
    use millrace_state::{PluginAnswer, PluginCaller};

    #[derive(Debug)]
    pub(super) struct Registered(pub(super) Registry);

    #[derive(Debug)]
    struct Called(Caller);

    impl PluginHost for Registered {
        fn bind(&self, plugin: &Plugin) -> Result<Box<dyn PluginCaller>, String> {
            let policy = if plugin.passes { Policy::Pass } else { Policy::Drop };
            let caller = self.0.bind(&plugin.name, policy, Grants { rewrite: plugin.rewrites });
            Ok(Box::new(Called(caller.map_err(|error| error.to_string())?)))
        }
    }

    impl PluginCaller for Called {
        #[inline]
        fn call(&mut self, args: &[u64], results: &mut [u64], payload: &[u8]) -> PluginAnswer<'_> {
            let called = self.0.call(args, results, payload);
            let payload = called.payload.map(|splice| (splice.replaced, splice.bytes));
            PluginAnswer { drop: called.drop, payload, reply: called.reply }
        }
    }

    impl Plugins for Registered {
        fn list(&self) -> Vec<PluginStatus> {
            self.0.list().into_iter().map(status).collect()
        }

        fn load(&self, name: &str, settings: &str, module: &[u8]) -> Result<(), String> {
            let settings: Settings = settings.parse().map_err(|error| format!("{error}"))?;
            self.0.load(name, module, settings).map_err(|error| error.to_string())
        }

        fn switch(&self, name: &str, on: bool) -> Result<(), String> {
            self.0.switch(name, on).map_err(|error| error.to_string())
        }
    }

    fn status(of: Snapshot) -> PluginStatus {
        let Snapshot { name, state, loads, failures, callers, counts, settings: _ } = of;
        PluginStatus {
            name,
            state: state.name().to_owned(),
            loads,
            failures,
            callers: callers as u64,
            calls: counts.calls,
            fuel: counts.fuel,
            nanoseconds: counts.nanoseconds,
            traps: counts.traps,
            over_budget: counts.over_budget,
            unanswered: counts.unanswered,
            drops: counts.drops,
            rewrites: counts.rewrites,
            replies: counts.replies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_of_the_command_line() {
        let plugin = given("fw=a/b.wasm,policy=drop,fuel=5").unwrap();
        let wanted =
            Given { name: "fw".into(), file: "a/b.wasm".into(), settings: "policy=drop,fuel=5".into() };
        assert_eq!(plugin, wanted);
        assert_eq!(given("fw=x").unwrap().settings, "");
        for wrong in ["fw", "=x", "fw=", "fw=,fuel=5"] {
            assert!(matches!(given(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
