//! The programs of the device: the one that forwards, and perhaps one that was saved and waits to be committed.

use crate::catalog::Catalog;
use crate::refusal::Refusal;
use crate::shadow::Shadow;
use millrace_chassis::Pipeline;
use millrace_dataplane::{Control, PortId, PostError, Reply, Request, RequestError, Switch, answer};
use millrace_p4runtime_api::config;
use millrace_p4runtime_api::v1::{ForwardingPipelineConfig, forwarding_pipeline_config::Cookie};
use millrace_state::TablesHandle;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{
    Notify, OnceCell, OwnedRwLockReadGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphorePermit,
};
use tonic::Status;

/// What reads and writes go to.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    pub(crate) active: Option<Loaded>,
    pub(crate) saved: Option<Loaded>,
    /// Ports that are down, whichever program runs.
    pub(crate) down: BTreeSet<PortId>,
}

/// Most answers to reads that are made at a time; others wait before they begin. A writer waits for those alone.
pub(crate) const MAX_READS: usize = 2;

/// The lock that writes take alone and reads together. Whoever holds it knows whether somebody waits.
#[derive(Debug)]
pub(crate) struct Lock {
    forwarding: Arc<RwLock<Forwarding>>,
    reads: Semaphore,
    waiting: AtomicUsize,
    came: Notify,
}

/// Counts somebody who waits.
struct Waiting<'a>(&'a Lock);

impl Lock {
    pub(crate) fn new(forwarding: Forwarding) -> Lock {
        Lock {
            forwarding: Arc::new(RwLock::new(forwarding)),
            reads: Semaphore::new(MAX_READS),
            waiting: AtomicUsize::new(0),
            came: Notify::new(),
        }
    }

    fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.came.notify_waiters();
        Waiting(self)
    }

    /// To write.
    pub(crate) async fn write(&self) -> RwLockWriteGuard<'_, Forwarding> {
        let _waiting = self.wait();
        self.forwarding.write().await
    }

    /// To write, if nobody else has it.
    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, Forwarding>> {
        self.forwarding.try_write().ok()
    }

    /// To look at something for a moment.
    pub(crate) async fn read(&self) -> RwLockReadGuard<'_, Forwarding> {
        self.forwarding.read().await
    }

    /// To make the answer of a read.
    pub(crate) async fn read_long(&self) -> (SemaphorePermit<'_>, OwnedRwLockReadGuard<Forwarding>) {
        let _waiting = self.wait();
        // It is never closed.
        let Ok(permit) = self.reads.acquire().await else { std::future::pending().await };
        (permit, Arc::clone(&self.forwarding).read_owned().await)
    }

    /// Whether somebody waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits until somebody waits for it.
    pub(crate) async fn wanted(&self) {
        let came = self.came.notified();
        if !self.is_wanted() {
            came.await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A program with what a controller wrote.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: ForwardingPipelineConfig,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) shadow: Shadow,
    pub(crate) target: Target,
    /// Whether something was written to it.
    pub(crate) is_written: bool,
}

/// Where a program is.
#[derive(Debug)]
pub(crate) enum Target {
    /// It runs. What it is found to be is there once the worker was asked for it.
    Running(Control, OnceCell<Running>),
    /// It does not run yet, and takes writes already.
    Waiting(Box<Mutex<Switch>>),
}

/// What a program that runs is found to be.
#[derive(Debug)]
pub(crate) struct Running {
    tables: TablesHandle,
    has_device: bool,
}

impl Forwarding {
    /// What reads and writes refer to: the saved program, if there is one (specification, `VERIFY_AND_SAVE`).
    pub(crate) fn current(&self) -> Result<&Loaded, Status> {
        self.saved.as_ref().or(self.active.as_ref()).ok_or_else(no_pipeline)
    }

    pub(crate) fn current_mut(&mut self) -> Result<&mut Loaded, Status> {
        self.saved.as_mut().or(self.active.as_mut()).ok_or_else(no_pipeline)
    }
}

fn no_pipeline() -> Status {
    Status::failed_precondition("no forwarding pipeline config has been set")
}

impl Loaded {
    /// A program that runs already.
    pub(crate) fn running(pipeline: Pipeline, control: Control, shadow: Shadow) -> Result<Loaded, Refusal> {
        let state = millrace_dataplane::State::new(Arc::clone(&pipeline.program))
            .map_err(|error| Refusal::invalid(error.to_string()))?;
        let catalog = Catalog::new(&pipeline, &state);
        let config = ForwardingPipelineConfig {
            p4info: Some(pipeline.p4info),
            p4_device_config: pipeline.device_config.into(),
            cookie: None,
        };
        let target = Target::running(control);
        Ok(Loaded { config, catalog: Arc::new(catalog), shadow, target, is_written: false })
    }

    /// A program that does not run yet.
    pub(crate) fn waiting(
        mut pipeline: Pipeline,
        given: Option<config::P4Info>,
        cookie: Option<Cookie>,
        switch: Switch,
    ) -> Loaded {
        let shadow = Shadow::default();
        let mut catalog = Catalog::new(&pipeline, switch.state());
        if let Some(given) = given {
            catalog.go_by(&given);
            pipeline.p4info = given;
        }
        let config = ForwardingPipelineConfig {
            p4info: Some(pipeline.p4info),
            p4_device_config: pipeline.device_config.into(),
            cookie,
        };
        let target = Target::waiting(switch);
        Loaded { config, catalog: Arc::new(catalog), shadow, target, is_written: false }
    }

    /// Lets a waiting program forward in place of the one that runs until now, with what was written to it alone.
    pub(crate) async fn start(&mut self, control: &Control) -> Result<(), Status> {
        let running = Target::running(control.clone());
        let Target::Waiting(switch) = std::mem::replace(&mut self.target, running) else { return Ok(()) };
        let next = switch.into_inner().unwrap_or_else(PoisonError::into_inner);
        let fitted = tokio::task::spawn_blocking(move || {
            let mut next = next;
            next.make_whole().map_err(|error| Status::resource_exhausted(error.to_string()))?;
            // Code that fits less well is right too.
            let _ = next.fit_code();
            Ok::<_, Status>(next)
        });
        let next = fitted.await.map_err(|_| Status::internal("the compiler failed"))??;
        let taken = request(control, |to| Request::TakeOver(Box::new(next), to)).await?;
        let before = taken.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        // Large tables take a while to be freed.
        drop(tokio::task::spawn_blocking(move || drop(before)));
        Ok(())
    }
}

impl Target {
    pub(crate) fn running(control: Control) -> Target {
        Target::Running(control, OnceCell::new())
    }

    pub(crate) fn waiting(switch: Switch) -> Target {
        Target::Waiting(Box::new(Mutex::new(switch)))
    }

    /// Whether multicast groups and clone sessions go on when it takes over.
    pub(crate) fn keeps_groups(&self) -> bool {
        match self {
            Target::Running(..) => false,
            Target::Waiting(switch) => switch.lock().unwrap_or_else(PoisonError::into_inner).keeps_groups(),
        }
    }

    /// The program's tables, which any thread may read and write while it runs.
    pub(crate) async fn tables(&self) -> Result<TablesHandle, Status> {
        match self {
            Target::Running(control, running) => Ok(looked(control, running).await?.tables.clone()),
            Target::Waiting(switch) => {
                Ok(switch.lock().unwrap_or_else(PoisonError::into_inner).state().handle())
            }
        }
    }

    /// Asks the switch, between two rounds of its worker if it runs.
    pub(crate) async fn ask<R>(&self, ask: impl FnOnce(Reply<R>) -> Request) -> Result<R, Status> {
        match self {
            Target::Running(control, _) => request(control, ask).await,
            Target::Waiting(switch) => {
                let (to, answered) = answer();
                switch.lock().unwrap_or_else(PoisonError::into_inner).answer(ask(to));
                answered.given().await.map_err(ended)
            }
        }
    }

    /// Has a hardware device hold what was written, and tables what it has counted; why the device cannot be reached, if it cannot.
    /// Nothing where there is none.
    pub(crate) async fn settle(&self) -> Result<Option<String>, Status> {
        match self {
            Target::Running(control, running) if looked(control, running).await?.has_device => {
                let device = request(control, Request::Look).await?.device;
                Ok(device.and_then(|device| device.unreachable))
            }
            Target::Running(..) | Target::Waiting(_) => Ok(None),
        }
    }

    /// The same for a write, which waits up to [`REACHED_WITHIN`] for a device that is looked for.
    ///
    /// # Errors
    /// The device cannot be reached.
    pub(crate) async fn settle_write(&self) -> Result<(), Status> {
        let begun = Instant::now();
        while let Some(why) = self.settle().await? {
            if begun.elapsed() >= REACHED_WITHIN {
                return Err(Status::unavailable(why));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// The time of the switch.
    pub(crate) async fn now_ns(&self) -> Result<u64, Status> {
        Ok(self.ask(Request::Look).await?.now_ns)
    }

    /// The time until which it is known which entries were hit.
    pub(crate) async fn hits_until_ns(&self) -> Result<u64, Status> {
        Ok(self.ask(Request::Look).await?.hits_until_ns())
    }
}

/// What a program is found to be, asked for once.
async fn looked<'a>(control: &Control, running: &'a OnceCell<Running>) -> Result<&'a Running, Status> {
    let look = async || {
        let moment = request(control, Request::Look).await?;
        Ok(Running { tables: moment.tables, has_device: moment.device.is_some() })
    };
    running.get_or_try_init(look).await
}

/// How long a write waits for a hardware device: longer than a switch takes to look for one again.
const REACHED_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks at whether it is there.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long to wait before a worker with too many requests is asked again.
const BUSY: Duration = Duration::from_millis(1);

/// Asks the switch of a worker.
pub(crate) async fn request<R>(
    control: &Control,
    ask: impl FnOnce(Reply<R>) -> Request,
) -> Result<R, Status> {
    let (to, answered) = answer();
    let mut request = ask(to);
    loop {
        match control.post(request) {
            Ok(()) => break,
            Err(PostError::Ended) => return Err(ended(RequestError)),
            Err(PostError::Busy(again)) => {
                request = *again;
                tokio::time::sleep(BUSY).await;
            }
        }
    }
    answered.given().await.map_err(ended)
}

fn ended(error: RequestError) -> Status {
    Status::unavailable(error.to_string())
}
