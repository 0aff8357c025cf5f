//! `Subscribe`: values once, by request, at intervals, or when they change.
//!
//! A stream compares the leaves of its subscriptions with what it told last. So what changes several times before its client
//! takes it is told once, and a slow client costs no memory; one that takes nothing for [`STALL`] is ended.

use crate::path::{Pattern, check_count};
use crate::proto::subscribe_request::Request;
use crate::proto::subscribe_response::Response;
use crate::proto::subscription_list::Mode;
use crate::proto::{
    Notification, Path, SubscribeRequest, SubscribeResponse, Subscription, SubscriptionList,
    SubscriptionMode, Update,
};
use crate::service::{Aside, check_models, now_ns};
use crate::target::Target;
use crate::tree::{Elem, Leaf, Value, check_known, leaves, matching};
use crate::value::Form;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Status, Streaming};

/// Most streams at a time.
pub const MAX_SUBSCRIBERS: usize = 64;
/// Most subscriptions of one stream.
pub const MAX_SUBSCRIPTIONS: usize = 64;
/// Most leaves that one stream compares.
pub const MAX_TRACKED: usize = 16_384;
/// The shortest time between two samples; a shorter one that is asked for becomes this.
pub const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// A client that takes no message for so long is ended.
pub const STALL: Duration = Duration::from_secs(10);
/// How often leaves that packets change are compared, for those who want to know when they change.
const COMPARE: Duration = Duration::from_secs(1);
/// How often leaves that packets change are told where the switch shall decide.
const USUAL_SAMPLE: Duration = Duration::from_secs(10);
/// The longest interval: further away nothing is told any more.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 3600);
/// After a change, so that those that come with it are told together.
const PAUSE: Duration = Duration::from_millis(5);
/// Most values of one message.
const MAX_UPDATES: usize = 256;

pub(crate) type Answers = mpsc::Sender<Result<SubscribeResponse, Status>>;

/// Serves a stream to its end.
pub(crate) async fn serve(
    target: Arc<dyn Target>,
    aside: Aside,
    mut messages: Streaming<SubscribeRequest>,
    out: Answers,
) {
    let ended = tokio::select! {
        ended = answer(&*target, &aside, &mut messages, &out) => ended,
        () = out.closed() => Ok(()),
    };
    if let Err(status) = ended {
        let _ = timeout(STALL, out.send(Err(status))).await;
    }
}

async fn answer(
    target: &dyn Target,
    aside: &Aside,
    messages: &mut Streaming<SubscribeRequest>,
    out: &Answers,
) -> Result<(), Status> {
    let first = timeout(STALL, messages.message()).await;
    let first = first.map_err(|_| {
        Status::deadline_exceeded(format!("no subscription list came for {} seconds", STALL.as_secs()))
    })?;
    let Some(first) = first? else { return Ok(()) };
    let Some(Request::Subscribe(list)) = first.request else {
        return Err(Status::invalid_argument("the first message of a stream is a subscription list"));
    };
    let mode = Mode::try_from(list.mode).map_err(|_| Status::invalid_argument("there is no such mode"))?;
    let mut stream = Stream::new((target, aside), out, &list, mode)?;
    stream.tell_all(!list.updates_only).await?;
    stream.send(Response::SyncResponse(true)).await?;
    match mode {
        Mode::Once => Ok(()),
        Mode::Poll => {
            while let Some(message) = messages.message().await? {
                let Some(Request::Poll(_)) = message.request else {
                    return Err(Status::invalid_argument("a stream that was asked to be polled takes polls"));
                };
                stream.tell_all(!list.updates_only).await?;
                stream.send(Response::SyncResponse(true)).await?;
            }
            Ok(())
        }
        Mode::Stream => {
            // A client may end its side as soon as it has asked.
            let unexpected = async {
                match messages.message().await {
                    Ok(Some(_)) => Status::invalid_argument("a stream takes one subscription list"),
                    Ok(None) => std::future::pending().await,
                    Err(status) => status,
                }
            };
            tokio::select! {
                ended = stream.follow(target.changes()) => ended,
                status = unexpected => Err(status),
            }
        }
    }
}

/// What one stream tells.
struct Stream<'a> {
    target: &'a dyn Target,
    aside: &'a Aside,
    out: &'a Answers,
    form: Form,
    prefix: Option<Path>,
    subscriptions: Vec<Live>,
}

/// One subscription.
struct Live {
    pattern: Pattern,
    /// Which of the leaves that the pattern means; none: all.
    counts: Option<bool>,
    rhythm: Rhythm,
    /// When values that have not changed are told again.
    heartbeat: Option<(Duration, Instant)>,
    /// What was told last.
    told: BTreeMap<Vec<Elem>, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rhythm {
    /// What has changed, as soon as it is known.
    OnChange,
    /// So often, next then; all, or what has changed.
    Sample { every: Duration, next: Instant, only_changed: bool },
}

/// Which values are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    All,
    Changed,
    Nothing,
}

/// An interval as it is kept.
fn interval(ns: u64) -> Duration {
    Duration::from_nanos(ns).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

impl Live {
    fn of(prefix: Option<&Path>, wanted: &Subscription) -> Result<Vec<Live>, Status> {
        let path = wanted.path.clone().unwrap_or_default();
        let pattern = Pattern::read(prefix, &path)?;
        check_known(&pattern)?;
        let mode = SubscriptionMode::try_from(wanted.mode)
            .map_err(|_| Status::invalid_argument("there is no such subscription mode"))?;
        let now = Instant::now();
        let heartbeat = (wanted.heartbeat_interval > 0).then(|| interval(wanted.heartbeat_interval));
        let live = |rhythm, counts| {
            let heartbeat = heartbeat.map(|every| (every, now + every));
            Live { pattern: pattern.clone(), counts, rhythm, heartbeat, told: BTreeMap::new() }
        };
        let sample =
            |every: Duration, only_changed| Rhythm::Sample { every, next: now + every, only_changed };
        Ok(match mode {
            SubscriptionMode::OnChange => vec![live(Rhythm::OnChange, None)],
            SubscriptionMode::Sample => {
                vec![live(sample(interval(wanted.sample_interval), wanted.suppress_redundant), None)]
            }
            SubscriptionMode::TargetDefined => {
                let every = match wanted.sample_interval {
                    0 => USUAL_SAMPLE,
                    ns => interval(ns),
                };
                vec![
                    live(Rhythm::OnChange, Some(false)),
                    live(sample(every, wanted.suppress_redundant), Some(true)),
                ]
            }
        })
    }

    /// When it is looked at next, if nothing changes.
    fn due(&self, compared: Instant) -> Instant {
        let next = match self.rhythm {
            Rhythm::OnChange => compared + COMPARE,
            Rhythm::Sample { next, .. } => next,
        };
        self.heartbeat.map_or(next, |(_, heartbeat)| next.min(heartbeat))
    }

    /// What it tells now; it is due again later.
    fn take_due(&mut self, now: Instant) -> Told {
        let mut told = match &mut self.rhythm {
            Rhythm::OnChange => Told::Changed,
            Rhythm::Sample { every, next, only_changed } if *next <= now => {
                *next = now + *every;
                if *only_changed { Told::Changed } else { Told::All }
            }
            Rhythm::Sample { .. } => Told::Nothing,
        };
        if let Some((every, next)) = &mut self.heartbeat
            && *next <= now
        {
            *next = now + *every;
            told = Told::All;
        }
        told
    }

    /// Compares with the leaves as they are.
    fn compare(&mut self, leaves: &[Leaf], told: Told) -> News {
        let Live { pattern, counts, told: last, .. } = self;
        let mut gone = std::mem::take(last);
        let mut updates = Vec::new();
        for (_, leaf) in matching(leaves, pattern) {
            if counts.is_some_and(|counts| counts != leaf.counts()) {
                continue;
            }
            let before = gone.remove(&leaf.path);
            if told == Told::All || (told == Told::Changed && before.as_ref() != Some(&leaf.value)) {
                updates.push(leaf.clone());
            }
            last.insert(leaf.path.clone(), leaf.value.clone());
        }
        let gone = if told == Told::Nothing { Vec::new() } else { gone.into_keys().collect() };
        News { updates, gone }
    }
}

/// What a subscription has to tell: values, and the paths that are gone.
struct News {
    updates: Vec<Leaf>,
    gone: Vec<Vec<Elem>>,
}

/// Compares subscriptions with the leaves as they are: all for the first time, or those that are due.
fn compare(
    subscriptions: &mut [Live],
    leaves: &[Leaf],
    mut due: impl FnMut(&mut Live) -> Option<Told>,
) -> Result<Vec<News>, Status> {
    let mut news = Vec::new();
    for at in 0..subscriptions.len() {
        let live = &mut subscriptions[at];
        let Some(told) = due(live) else { continue };
        news.push(live.compare(leaves, told));
        if subscriptions.iter().map(|live| live.told.len()).sum::<usize>() > MAX_TRACKED {
            return Err(Status::resource_exhausted(format!(
                "a stream compares at most {MAX_TRACKED} values"
            )));
        }
    }
    Ok(news)
}

impl<'a> Stream<'a> {
    fn new(
        (target, aside): (&'a dyn Target, &'a Aside),
        out: &'a Answers,
        list: &SubscriptionList,
        mode: Mode,
    ) -> Result<Stream<'a>, Status> {
        check_models(&list.use_models)?;
        check_count(list.subscription.len())?;
        if list.subscription.len() > MAX_SUBSCRIPTIONS {
            return Err(Status::resource_exhausted(format!(
                "a stream has at most {MAX_SUBSCRIPTIONS} subscriptions"
            )));
        }
        // Clients of Stratum leave the encoding at its default and take scalars.
        let form = match Form::of(list.encoding)? {
            Form::Json => Form::Scalars,
            form => form,
        };
        if list.subscription.is_empty() {
            return Err(Status::invalid_argument("a subscription list has at least one subscription"));
        }
        let mut subscriptions = Vec::new();
        for wanted in &list.subscription {
            let live = Live::of(list.prefix.as_ref(), wanted)?;
            // The other modes look at all leaves together.
            subscriptions.extend(match mode {
                Mode::Stream => live,
                Mode::Once | Mode::Poll => {
                    live.into_iter().take(1).map(|live| Live { counts: None, ..live }).collect()
                }
            });
        }
        let prefix = crate::get::prefix(list.prefix.as_ref());
        Ok(Stream { target, aside, out, form, prefix, subscriptions })
    }

    /// Tells all values, or only takes note of them.
    async fn tell_all(&mut self, tells: bool) -> Result<(), Status> {
        let told = if tells { Told::All } else { Told::Nothing };
        self.look(move |subscriptions, leaves| compare(subscriptions, leaves, |_| Some(told))).await
    }

    /// Looks at the leaves as they are, and tells what has come of it.
    async fn look(
        &mut self,
        compare: impl FnOnce(&mut [Live], &[Leaf]) -> Result<Vec<News>, Status> + Send + 'static,
    ) -> Result<(), Status> {
        let snapshot = self.target.snapshot().await?;
        let mut subscriptions = std::mem::take(&mut self.subscriptions);
        let (subscriptions, news) = self
            .aside
            .run(move || {
                let news = compare(&mut subscriptions, &leaves(&snapshot));
                (subscriptions, news)
            })
            .await?;
        self.subscriptions = subscriptions;
        for news in news? {
            self.tell(news).await?;
        }
        Ok(())
    }

    /// Tells what one subscription has to.
    async fn tell(&self, News { updates, gone }: News) -> Result<(), Status> {
        let timestamp = now_ns();
        if !gone.is_empty() {
            let path = |path: Vec<Elem>| {
                let elements = path.len();
                Leaf { path, value: Value::Bool(false) }.message(elements)
            };
            let delete = gone.into_iter().map(path).collect();
            let prefix = self.prefix.clone();
            self.send(Response::Update(Notification {
                timestamp,
                prefix,
                delete,
                ..Notification::default()
            }))
            .await?;
        }
        for part in updates.chunks(MAX_UPDATES) {
            let update = part.iter().map(|leaf| Update {
                path: Some(leaf.message(leaf.path.len())),
                val: Some(leaf.value.message(self.form)),
                ..Update::default()
            });
            let (update, prefix) = (update.collect(), self.prefix.clone());
            self.send(Response::Update(Notification {
                timestamp,
                prefix,
                update,
                ..Notification::default()
            }))
            .await?;
        }
        Ok(())
    }

    async fn send(&self, response: Response) -> Result<(), Status> {
        let message = SubscribeResponse { response: Some(response), ..SubscribeResponse::default() };
        match timeout(STALL, self.out.send(Ok(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Status::cancelled("the client has gone")),
            Err(_) => Err(Status::resource_exhausted(format!(
                "the client took nothing for {} seconds",
                STALL.as_secs()
            ))),
        }
    }

    /// Tells what changes and what is due, until the target or the client is gone.
    async fn follow(&mut self, mut changes: watch::Receiver<u64>) -> Result<(), Status> {
        let mut compared = Instant::now();
        loop {
            let due = self.subscriptions.iter().map(|live| live.due(compared)).min();
            let due = due.unwrap_or_else(|| Instant::now() + MAX_INTERVAL);
            tokio::select! {
                changed = changes.changed() => {
                    changed.map_err(|_| Status::unavailable("the switch has ended"))?;
                    tokio::time::sleep(PAUSE).await;
                    changes.mark_unchanged();
                }
                () = sleep_until(due) => {}
            }
            let now = Instant::now();
            compared = now;
            let due = move |live: &mut Live| Some(live.take_due(now)).filter(|told| *told != Told::Nothing);
            self.look(move |subscriptions, leaves| compare(subscriptions, leaves, due)).await?;
        }
    }
}
