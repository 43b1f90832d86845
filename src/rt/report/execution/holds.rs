//! Which words describe the state of an object at one moment?
//!
//! The value of an atomic, the holder of a lock, the threads that wait for a notification: the
//! slider of the HTML page shows these words beside an execution.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::object::once::Once;
use crate::rt::object::{NOBODY, State};
use crate::rt::report::words::{Names, counts};

/// The words for `object` in this state.
pub(super) fn words(object: ObjectId, state: &State, names: &Names<'_>) -> String {
    let list = |threads: &mut dyn Iterator<Item = ThreadId>| {
        let threads: Vec<String> = threads.map(|thread| names.thread(thread)).collect();
        threads.join(", ")
    };
    match state {
        State::Atomic { value, .. } => names.value(object, *value),
        State::Mutex(mutex) => match mutex.holder {
            Some(NOBODY) => "held since before".to_owned(),
            Some(thread) => format!("held by {}", names.thread(thread)),
            None => "free".to_owned(),
        },
        State::Count { count, .. } => counts(*count),
        State::Thread { finished: true } => "ended".to_owned(),
        State::Thread { finished: false } => "not ended".to_owned(),
        State::Token { available: true } => "there".to_owned(),
        State::Token { available: false } => "not there".to_owned(),
        State::RwLock(lock) => match (lock.writer, lock.readers) {
            (Some(NOBODY), _) => "written since before".to_owned(),
            (Some(thread), _) => format!("written by {}", names.thread(thread)),
            (None, 0) => "free".to_owned(),
            (None, 1) => "1 reader".to_owned(),
            (None, readers) => format!("{readers} readers"),
        },
        State::Condvar(condvar) => {
            let waiting = list(&mut condvar.waiting.iter().map(|&(_, thread)| thread));
            let notified = list(&mut condvar.notified.iter().map(|&(thread, _)| thread));
            match (waiting.as_str(), notified.as_str()) {
                ("", "") => "nobody waits".to_owned(),
                (waiting, "") => format!("waiting: {waiting}"),
                ("", notified) => format!("notified: {notified}"),
                (waiting, notified) => format!("waiting: {waiting}; notified: {notified}"),
            }
        }
        State::Barrier(barrier) => format!("{} of {} arrived", barrier.arrived, barrier.size),
        State::Once(Once::Incomplete) => "not done".to_owned(),
        State::Once(Once::Running(thread)) => format!("begun by {}", names.thread(*thread)),
        State::Once(Once::Done) => "done".to_owned(),
        State::Once(Once::Poisoned) => "poisoned".to_owned(),
        State::Opaque => "unknown".to_owned(),
        State::Channel(channel) => {
            let mut text = match channel.sent - channel.received {
                0 => "empty".to_owned(),
                1 => format!("message {}", channel.received),
                _ => format!("messages {} to {}", channel.received, channel.sent - 1),
            };
            if channel.senders == 0 {
                text.push_str(", no sender");
            }
            if !channel.receiver {
                text.push_str(", no receiver");
            }
            text
        }
    }
}
