//! How is it worded that a task is awaited?
//!
//! A task and who awaits it have one atomic in common, in which bits say what becomes of it. The
//! program does not know of these bits; what it calls the operations on them is "await" and the
//! task's end.

use super::Names;
use crate::rt::event::Event;
use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::{
    AtomicType, ObjectKind, OpKind, Operation, TASK_AWAITED, TASK_DONE,
};

/// What is in the atomic of a task.
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

    /// What an operation on the atomic of a task is about, if it is one.
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

    /// What came of it.
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
