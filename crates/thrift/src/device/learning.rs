//! Calls about digests that subscribers learn from.

use super::Device;
use crate::notify::{Learning, LearningError};
use millrace_pipeline::Program;
use millrace_thrift_api::{CallError, InvalidLearnOperation, LearnCode};
use std::sync::Arc;

type Done = Result<(), CallError<InvalidLearnOperation>>;

impl Device {
    pub(crate) fn bm_learning_ack(&self, list: i32, buffer: i64, samples: Vec<i32>) -> Done {
        self.learning(|learning, program| learning.acknowledge(program, list, buffer, Some(&samples)))
    }

    pub(crate) fn bm_learning_ack_buffer(&self, list: i32, buffer: i64) -> Done {
        self.learning(|learning, program| learning.acknowledge(program, list, buffer, None))
    }

    pub(crate) fn bm_learning_set_timeout(&self, list: i32, timeout_ms: i32) -> Done {
        self.learning(|learning, program| learning.set_timeout(program, list, timeout_ms))
    }

    pub(crate) fn bm_learning_set_buffer_size(&self, list: i32, samples: i32) -> Done {
        self.learning(|learning, program| learning.set_size(program, list, samples))
    }

    /// Without notifications there are no lists.
    fn learning(&self, change: impl FnOnce(&Learning, &Arc<Program>) -> Result<(), LearningError>) -> Done {
        let notices = self.notices.as_ref().ok_or(LearnCode::InvalidId)?;
        let program = Arc::clone(&self.running()?.loaded.program);
        change(&notices.learning, &program).map_err(|error| match error {
            LearningError::NoList => LearnCode::InvalidId.into(),
            LearningError::BadNumber => LearnCode::Error.into(),
        })
    }
}
