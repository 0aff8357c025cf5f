//! A switch with its server.

use millrace_chassis::{Making, Programs};
use millrace_dataplane::{Control, Moment, Request};
use millrace_pipeline::{Program, TableId};
use millrace_quiet::Quiet;
use millrace_state::TablesHandle;
use millrace_thrift::{DeviceConfig, NanomsgListener, PortMaker, PortName, Publisher, Server, serve};
use millrace_thrift_api::{CallError, Client};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A running switch. It ends when this is dropped.
pub(crate) struct Device {
    pub(crate) server: Server,
    pub(crate) control: Control,
    _quiet: Quiet,
}

impl Device {
    /// One whose ports stay.
    pub(crate) fn start() -> Device {
        Device::make(Quiet::start(), None, None, None)
    }

    /// One that tells subscribers over TCP.
    pub(crate) fn notifying() -> Device {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Device::make(
            Quiet::start(),
            None,
            Some(Publisher::over(NanomsgListener::over_tcp(listener).unwrap()).unwrap()),
            None,
        )
    }

    /// One whose ports are opened there.
    pub(crate) fn with(maker: Option<Box<dyn PortMaker>>) -> Device {
        Device::make(Quiet::start(), maker, None, None)
    }

    /// One that ran these commands before it started.
    pub(crate) fn after(commands: &str) -> Device {
        let quiet = Quiet::set_up(|switch| {
            millrace_control::entries::load(switch, commands).unwrap();
        });
        Device::make(quiet, None, None, None)
    }

    /// One that knows the file of a program: of the one that runs, or of another.
    pub(crate) fn made_from(file: &str, is_running: bool) -> Device {
        let quiet = Quiet::start();
        let Moment { program, .. } = quiet.control.ask(Request::Look).unwrap();
        let of = if is_running { program } else { Arc::new((*program).clone()) };
        Device::make(quiet, None, None, Some((of, file.to_owned())))
    }

    fn make(
        quiet: Quiet,
        maker: Option<Box<dyn PortMaker>>,
        notifications: Option<Publisher>,
        made_from: Option<(Arc<Program>, String)>,
    ) -> Device {
        let control = quiet.control.clone();
        let ports = [1, 2].map(|number| PortName { number, interface: format!("mrt{number}") });
        let making = Making { engine: millrace_quiet::engine(), ..Making::default() };
        let programs = Programs::new(making, control.clone());
        let config = DeviceConfig {
            programs,
            device_id: 1,
            ports: ports.into(),
            maker,
            made_from,
            notifications,
            guard: None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Device { server: serve(listener, config).unwrap(), control, _quiet: quiet }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address()).unwrap()
    }
}

/// The exception that a call was answered with.
pub(crate) fn refused<R: std::fmt::Debug, E: std::fmt::Debug>(answer: Result<R, CallError<E>>) -> E {
    match answer {
        Err(CallError::Declared(exception)) => exception,
        other => panic!("{other:?}"),
    }
}

/// A table of the program that runs, and all tables.
pub(crate) fn table(device: &Device, name: &str) -> (TableId, TablesHandle) {
    let Moment { program, tables, .. } = device.control.ask(Request::Look).unwrap();
    let (id, _) = program.tables.iter().find(|(_, table)| table.name == name).unwrap();
    (id, tables)
}
