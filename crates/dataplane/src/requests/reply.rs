//! The place for the answer to a request: whoever asks waits for it in a thread or in a task.

use std::fmt;
use std::time::Duration;

/// Where the answer to a request goes.
pub struct Reply<T>(oneshot::Sender<T>);

/// An answer to come.
pub struct Answer<T>(oneshot::Receiver<T>);

/// Nobody answers: the worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestError;

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the switch is not running any more")
    }
}

impl std::error::Error for RequestError {}

/// A place for an answer, and the answer to come.
pub fn answer<T>() -> (Reply<T>, Answer<T>) {
    let (reply, answer) = oneshot::channel();
    (Reply(reply), Answer(answer))
}

impl<T> Reply<T> {
    /// Answers. Whoever asked may have gone: then the answer is dropped.
    pub fn give(self, answer: T) {
        drop(self.0.send(answer));
    }

    /// As [`Reply::give`]; an answer that nobody waits for comes back.
    pub(crate) fn offer(self, answer: T) -> Result<(), T> {
        self.0.send(answer).map_err(oneshot::SendError::into_inner)
    }
}

impl<T> Answer<T> {
    /// Has the calling thread wait.
    ///
    /// # Errors
    /// Nobody is there any more who could answer.
    pub fn wait(self) -> Result<T, RequestError> {
        self.0.recv().map_err(|_| RequestError)
    }

    /// Has the calling thread wait at most that long; none: nothing came.
    ///
    /// # Errors
    /// As [`Answer::wait`].
    pub(crate) fn wait_for(self, patience: Duration) -> Result<Option<T>, RequestError> {
        match self.0.recv_timeout(patience) {
            Ok(answer) => Ok(Some(answer)),
            Err(oneshot::RecvTimeoutError::Timeout) => Ok(None),
            Err(oneshot::RecvTimeoutError::Disconnected) => Err(RequestError),
        }
    }

    /// Has the calling task wait.
    ///
    /// # Errors
    /// As [`Answer::wait`].
    pub async fn given(self) -> Result<T, RequestError> {
        self.0.await.map_err(|_| RequestError)
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
