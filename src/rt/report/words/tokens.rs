//! Which words describe a wait for a token?
//!
//! A thread has a token, which `unpark` sets. A `Notify` has a token as well, and so has a task;
//! the task's waker sets it. All are one kind of object, and the program has different words for
//! the operations on them.

use super::Names;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind};
use crate::rt::object::machine::Machine;

/// The owner of a token.
enum Whose {
    Thread(String),
    Task(String),
    Notify(String),
}

/// The name of a token that the program has no name for: the token of a task, which only its waker
/// and the thread that runs the task touch. That thread has allocated the token.
pub(super) fn nameless(
    machine: &Machine,
    object: ObjectId,
    called: impl Fn(ThreadId) -> String,
) -> Option<String> {
    match machine.names.place(object).region {
        Region::Heap { thread, .. } if machine.kind(object) == Some(ObjectKind::Token) => {
            Some(format!("{}'s task", called(thread)))
        }
        _ => None,
    }
}

impl Names<'_> {
    fn token(&self, object: ObjectId) -> Whose {
        match self.machine.names.place(object).region {
            Region::Token(thread) => Whose::Thread(self.thread(thread)),
            _ if self.tasks.contains(&object) => Whose::Task(self.object(object)),
            _ => Whose::Notify(self.object(object)),
        }
    }

    /// The words for an announced operation on a token.
    pub(super) fn announced_on_token(&self, object: ObjectId, kind: &OpKind) -> String {
        match (kind, self.token(object)) {
            (OpKind::ParkTimeout, _) => "park_timeout".to_owned(),
            (OpKind::Unpark, Whose::Thread(thread)) => format!("unpark {thread}"),
            (OpKind::Unpark, Whose::Task(task)) => format!("wake {task}"),
            (OpKind::Unpark, Whose::Notify(notify)) => format!("notify {notify}"),
            (_, Whose::Thread(_)) => "park".to_owned(),
            (_, Whose::Task(_)) => "be woken".to_owned(),
            (_, Whose::Notify(notify)) => format!("be notified by {notify}"),
        }
    }

    /// The words for a wait for a token that has happened; the token was taken if `ok`.
    pub(super) fn happened_on_token(&self, object: ObjectId, kind: &OpKind, ok: bool) -> String {
        match (kind, self.token(object)) {
            (OpKind::ParkTimeout, _) if !ok => "park_timeout ends without an unpark".to_owned(),
            (OpKind::ParkTimeout, _) => "park_timeout".to_owned(),
            (_, Whose::Thread(_)) if ok => "park".to_owned(),
            (_, Whose::Thread(_)) => "park ends for no reason".to_owned(),
            (_, Whose::Task(_)) if ok => "woken".to_owned(),
            (_, Whose::Task(_)) => "woken for no reason".to_owned(),
            (_, Whose::Notify(notify)) if ok => format!("notified by {notify}"),
            (_, Whose::Notify(notify)) => format!("wait on {notify} ends for no reason"),
        }
    }

    /// The action that ends a wait for a token.
    pub(super) fn end_of_token_wait(&self, object: ObjectId) -> String {
        match self.token(object) {
            Whose::Thread(thread) => format!("{thread} is unparked"),
            Whose::Task(task) => format!("{task} is woken"),
            Whose::Notify(notify) => format!("{notify} is notified"),
        }
    }

    /// The state of a thread that waits for a token, as words behind the thread's name.
    pub(super) fn waiting_for_token(&self, object: ObjectId) -> String {
        match self.token(object) {
            Whose::Thread(_) => "is parked".to_owned(),
            _ => format!(
                "waits to {}",
                self.announced_on_token(object, &OpKind::Park)
            ),
        }
    }
}
