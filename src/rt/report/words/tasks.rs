//! Which words describe the wait for a task?
//!
//! A task and the thread that awaits it share one atomic, and the bits of the atomic are the state
//! of the task. The program does not know these bits; in its terms the operations on them are
//! "await" and the end of the task.

use super::Names;
use crate::rt::event::Event;
use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::{
    AtomicType, ObjectKind, OpKind, Operation, TASK_AWAITED, TASK_DONE,
};

/// The words for the value of a task's atomic.
pub(super) fn state(bits: u64) -> &'static str {
    match bits {
        0 => "not done",
        TASK_AWAITED => "awaited",
        _ => "done",
    }
}

impl Names<'_> {
    fn is_task(&self, object: ObjectId) -> bool {
        self.machine.kind(object) == Some(ObjectKind::Atomic(AtomicType::Task))
    }

    /// The words for an announced operation, if it is on the atomic of a task.
    pub(super) fn announced_on_task(&self, operation: &Operation) -> Option<String> {
        let OpKind::Rmw { operand, .. } = operation.kind else {
            return None;
        };
        let name = || self.object(operation.object);
        self.is_task(operation.object).then(|| match operand {
            TASK_DONE => format!("finish {}", name()),
            _ => format!("await {}", name()),
        })
    }

    /// The words for an operation that has happened, if it is on the atomic of a task.
    pub(super) fn happened_on_task(&self, event: &Event) -> Option<String> {
        let announced = self.announced_on_task(&event.operation)?;
        let found = event.outcome.value().unwrap_or_default();
        Some(match event.operation.kind {
            OpKind::Rmw {
                operand: TASK_DONE, ..
            } if found & TASK_AWAITED == 0 => format!("{announced}: nobody awaits it"),
            OpKind::Rmw {
                operand: TASK_DONE, ..
            } => format!("{announced}: it is awaited"),
            _ if found & TASK_DONE == 0 => format!("{announced}: not done"),
            _ => format!("{announced}: done"),
        })
    }
}
