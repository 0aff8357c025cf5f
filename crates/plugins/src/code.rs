//! A module as machine code, checked for what a plugin has to be.

use crate::{MAX_MODULE, MAX_STACK, Settings};
use std::fmt;
use wasmtime::{Config, Engine, ExternType, InstancePre, Linker, Module, OptLevel, StoreLimits, ValType};

/// Why a module cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// More than [`crate::MAX_PLUGINS`].
    TooMany,
    /// No name for a plugin: letters, digits, `_`, `-` and `.`, at most [`crate::MAX_NAME`] of them.
    Name(String),
    /// There is no plugin of that name.
    Unknown(String),
    /// More than [`MAX_MODULE`] bytes.
    Size(usize),
    /// No module, or one with features that plugins do not have.
    Module(String),
    /// It imports something.
    Import(String),
    /// It does not export what a plugin has to.
    Export(&'static str),
    /// An instance of it cannot be made, or does not describe itself as it has to.
    Instance(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::TooMany => write!(f, "there are {} plugins, and no more can be", crate::MAX_PLUGINS),
            LoadError::Name(name) => write!(
                f,
                "`{name}` is no name of a plugin: letters, digits, `_`, `-` and `.`, at most {} of them",
                crate::MAX_NAME
            ),
            LoadError::Unknown(name) => write!(f, "there is no plugin `{name}`"),
            LoadError::Size(bytes) => {
                write!(f, "the module has {bytes} bytes, and at most {MAX_MODULE} are taken")
            }
            LoadError::Module(why) => write!(f, "this is no module for plugins: {why}"),
            LoadError::Import(what) => {
                write!(f, "the module imports `{what}`, and plugins may import nothing")
            }
            LoadError::Export(what) => write!(f, "the module does not export {what}"),
            LoadError::Instance(why) => write!(f, "no instance of the module can be made: {why}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// What each store holds.
pub(crate) type Held = StoreLimits;

/// A module that instances are made of, with what bounds them.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) engine: Engine,
    pub(crate) made_of: InstancePre<Held>,
    pub(crate) settings: Settings,
}

/// What makes and runs code for plugins.
pub(crate) fn engine() -> Result<Engine, LoadError> {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .max_wasm_stack(MAX_STACK)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false);
    Engine::new(&config).map_err(|error| LoadError::Module(format!("{error:#}")))
}

impl Code {
    /// Compiles a module.
    ///
    /// # Errors
    /// [`LoadError`].
    pub(crate) fn new(engine: &Engine, bytes: &[u8], settings: Settings) -> Result<Code, LoadError> {
        if bytes.len() > MAX_MODULE {
            return Err(LoadError::Size(bytes.len()));
        }
        let refused = |error: wasmtime::Error| LoadError::Module(format!("{error:#}"));
        let module = Module::from_binary(engine, bytes).map_err(refused)?;
        if let Some(import) = module.imports().next() {
            return Err(LoadError::Import(format!("{}.{}", import.module(), import.name())));
        }
        match module.get_export("memory") {
            Some(ExternType::Memory(_)) => {}
            _ => return Err(LoadError::Export("a memory `memory`")),
        }
        for name in ["millrace_area", "millrace_call"] {
            let gives_number = |of: &ExternType| match of {
                ExternType::Func(of) => {
                    of.params().len() == 0 && matches!(of.results().collect::<Vec<_>>()[..], [ValType::I32])
                }
                _ => false,
            };
            if !module.get_export(name).as_ref().is_some_and(gives_number) {
                return Err(LoadError::Export(match name {
                    "millrace_area" => "a function `millrace_area: () -> i32`",
                    _ => "a function `millrace_call: () -> i32`",
                }));
            }
        }
        let made_of = Linker::new(engine).instantiate_pre(&module).map_err(refused)?;
        Ok(Code { engine: engine.clone(), made_of, settings })
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("settings", &self.settings).finish_non_exhaustive()
    }
}
