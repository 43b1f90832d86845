//! Is this a mistake that has a name?
//!
//! Most failures are one of a few well-known ones, and whoever hears the name knows what to do.
//! Each is recognised by what it consists of, in the execution that is shown; where nothing fits,
//! nothing is said.

use std::ops::Range;

use super::text::View;
use super::words::Names;
use super::{changes, publication};
use crate::rt::event::Event;
use crate::rt::event::id::ObjectId;
use crate::rt::event::notification::woken;
use crate::rt::event::operation::{OpKind, Outcome, Rmw};
use crate::rt::event::verdict::{Blocked, End, Lost};

/// One sentence with the name of the mistake.
pub(super) fn sentence(view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let told = Told { view, names };
    match view.end {
        End::Deadlock(stuck) => told
            .lost_wake_up()
            .or_else(|| told.woke_another(stuck))
            .or_else(|| told.nobody_wakes(stuck))
            .or_else(|| told.lost_update()),
        End::DataRace(race) => {
            publication::sentence(race, view, names).or_else(|| told.back_again())
        }
        End::Leaked(_) => told.lost_update(),
        End::Panicked { .. } => told
            .back_again()
            .or_else(|| told.lost_update())
            .or_else(|| told.check_then_act()),
        End::BadMemory(_) => told.back_again().or_else(|| told.check_then_act()),
        _ => None,
    }
}

/// The values of the atomic that the failure hangs on, with who wrote them.
pub(super) fn story(view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let first = view.trace.at(view.pair?.first);
    let object = first.operation.object;
    let mut events = (view.trace.events().iter()).filter(|e| e.operation.object == object);
    let begin = events
        .clone()
        .find_map(|e| e.before.or(e.outcome.value()))?;
    let mut story = format!("{}: {}", names.object(object), names.value(object, begin));
    let written = events
        .by_ref()
        .filter_map(|e| Some((e, changes::left(e, view.machine)?)));
    let mut changes = 0;
    for (event, value) in written {
        changes += 1;
        let (who, value) = (names.thread(event.thread), names.value(object, value));
        story.push_str(&format!(" -> {value} by {who}"));
    }
    // One change is in the sentence above, and a long list says nothing.
    (2..=8).contains(&changes).then_some(story)
}

struct Told<'a> {
    view: &'a View<'a>,
    names: &'a Names<'a>,
}

impl Told<'_> {
    fn events(&self) -> &[Event] {
        self.view.trace.events()
    }

    fn who(&self, at: usize) -> String {
        self.names.thread(self.events()[at].thread)
    }

    fn object(&self, object: ObjectId) -> String {
        self.names.object(object)
    }

    /// The positions of the events on an object that change its value, in a range.
    fn changes(
        &self,
        object: ObjectId,
        range: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = usize> {
        changes::of(object, self.events(), range, self.view.machine)
    }

    /// Whether this event leaves another value than it has found.
    fn leaves_another(&self, at: usize) -> bool {
        changes::leaves_another(&self.events()[at], self.view.machine)
    }

    /// A notification that found nobody, and that wakes a thread which waits for ever if the two
    /// come the other way round.
    fn lost_wake_up(&self) -> Option<String> {
        let Lost { notified, waited } = self.view.pair?.lost?;
        let (notified, waited) = (notified as usize, waited as usize);
        Some(format!(
            "a lost wake-up: {} notified {} (event {}) before {} waited (event {})",
            self.who(notified),
            self.object(self.events()[notified].operation.object),
            notified + 1,
            self.who(waited),
            waited + 1,
        ))
    }

    /// The last notification woke one of several that waited. Whether it was the wrong one only the
    /// program knows.
    fn woke_another(&self, stuck: &[Blocked]) -> Option<String> {
        let events = self.events();
        stuck.iter().find_map(|it| {
            let (waiter, object) = (it.thread, it.operation.object);
            let waited = self.began_to_wait(it)?;
            let notified = self.last_on(object, notifies)?;
            if notified < waited {
                return None;
            }
            // It would have woken this one, had it woken all or found nobody else.
            let woken = woken(events[notified].outcome.value()?)?;
            Some(format!(
                "the last notification of {}, by {} (event {}), woke {} alone, and {} waited there, too (event {})",
                self.object(object),
                self.who(notified),
                notified + 1,
                self.names.thread(woken),
                self.names.thread(waiter),
                waited + 1,
            ))
        })
    }

    /// Somebody waits for ever, and what was done to wake it, if anything was, came before it
    /// waited, or an earlier wait has used it up. Whether that came too early or another is missing
    /// only the program knows.
    fn nobody_wakes(&self, stuck: &[Blocked]) -> Option<String> {
        let events = self.events();
        stuck.iter().find_map(|it| {
            let object = it.operation.object;
            let waiter = self.names.thread(it.thread);
            if let Some(waited) = self.began_to_wait(it) {
                let last = match self.last_on(object, notifies) {
                    Some(after) if after > waited => return None,
                    Some(notified) => format!(
                        "; the last notification was {}'s (event {})",
                        self.who(notified),
                        notified + 1
                    ),
                    None => String::new(),
                };
                return Some(format!(
                    "nobody notified {} after {waiter} waited (event {}){last}",
                    self.object(object),
                    waited + 1,
                ));
            }
            if !matches!(it.operation.kind, OpKind::Park) {
                return None;
            }
            let woken = self.last_on(object, |kind| matches!(kind, OpKind::Unpark))?;
            let used = (woken..events.len()).find(|&at| {
                let event = &events[at];
                let parks = matches!(event.operation.kind, OpKind::Park | OpKind::ParkTimeout);
                event.operation.object == object && parks && event.outcome.succeeded()
            })?;
            let again = match events[used].thread == it.thread {
                true => format!(" before {waiter} waited again"),
                false => String::new(),
            };
            Some(format!(
                "the last \"{}\", by {} (event {}), was used up by {}'s \"{}\" (event {}){again}",
                self.names.announced(&events[woken].operation),
                self.who(woken),
                woken + 1,
                self.who(used),
                self.names.happened(&events[used]),
                used + 1,
            ))
        })
    }

    /// Since when a thread waits for a condition variable, if it does.
    fn began_to_wait(&self, stuck: &Blocked) -> Option<usize> {
        if !matches!(stuck.operation.kind, OpKind::Awake { .. }) {
            return None;
        }
        let mut events = self.events().iter();
        events.rposition(|event| {
            event.thread == stuck.thread
                && event.operation.object == stuck.operation.object
                && matches!(event.operation.kind, OpKind::Enqueue { .. })
        })
    }

    /// The last event on an object with an operation of some kinds.
    fn last_on(&self, object: ObjectId, of: impl Fn(&OpKind) -> bool) -> Option<usize> {
        let mut events = self.events().iter();
        events.rposition(|event| event.operation.object == object && of(&event.operation.kind))
    }

    /// A compare-exchange that took a value for the one it had read, though it had changed and
    /// changed back. Most of these do no harm, as where a lock was taken and released meanwhile: it
    /// has a part in the failure only if that hangs on the order of two of these events.
    fn back_again(&self) -> Option<String> {
        let events = self.events();
        let pair = self.view.pair?;
        let (one, other) = (pair.first as usize, *pair.second.as_ref().ok()? as usize);
        let swaps = events.iter().enumerate().rev().filter(|(_, event)| {
            matches!(event.operation.kind, OpKind::CompareExchange { .. })
                && event.outcome.succeeded()
        });
        for (at, event) in swaps {
            let OpKind::CompareExchange { expected, .. } = event.operation.kind else {
                continue;
            };
            let object = event.operation.object;
            let read = events[..at]
                .iter()
                .rposition(|e| e.thread == event.thread && e.operation.object == object);
            let Some(read) = read.filter(|&read| events[read].outcome.value() == Some(expected))
            else {
                continue;
            };
            let changes: Vec<usize> = self.changes(object, read + 1..at).collect();
            let foreign = changes.iter().all(|&at| events[at].thread != event.thread);
            let is_of_it = |it: usize| it == read || it == at || changes.contains(&it);
            let counts = foreign && is_of_it(one) && is_of_it(other);
            if let (true, Some(&first), Some(&last)) = (counts, changes.first(), changes.last()) {
                return Some(format!(
                    "ABA: {} had changed (event {}) and changed back (event {}) between {}'s look at it (event {}) \
                     and its compare-exchange (event {})",
                    self.object(object),
                    first + 1,
                    last + 1,
                    self.who(at),
                    read + 1,
                    at + 1
                ));
            }
        }
        None
    }

    /// A value that was read, changed by somebody else, and overwritten, where the failure hangs on
    /// the read and the change, or on the change and what has overwritten it.
    fn lost_update(&self) -> Option<String> {
        let events = self.events();
        let pair = self.view.pair?;
        let first = pair.first as usize;
        let object = events[first].operation.object;
        let is_on_it = |at: &usize| events[*at].operation.object == object;
        let stores = |at: &usize| matches!(events[*at].operation.kind, OpKind::Store { .. });
        let second = pair.second.as_ref().ok().map(|&at| at as usize);
        let (read, written) = match second.filter(|at| is_on_it(at) && stores(at)) {
            Some(written) if self.leaves_another(first) => {
                let me = events[written].thread;
                let mut before = (0..first).rev().filter(is_on_it);
                (before.find(|&at| events[at].thread == me)?, written)
            }
            _ => {
                let me = events[first].thread;
                let mut later = (first + 1..events.len()).filter(is_on_it).filter(stores);
                (first, later.find(|&at| events[at].thread == me)?)
            }
        };
        let OpKind::Load { .. } = events[read].operation.kind else {
            return None;
        };
        let me = events[read].thread;
        let lost = self.changes(object, read + 1..written).next_back()?;
        // Who has looked at the change overwrites it knowingly.
        let mut between = events[lost + 1..written].iter();
        let looked = between.any(|e| e.thread == me && e.operation.object == object);
        (events[lost].thread != me && !looked).then(|| {
            format!(
                "a lost update: {0} read {1} (event {2}), {3} changed it (event {4}), and {0} overwrote that (event {5})",
                self.names.thread(me),
                self.object(object),
                read + 1,
                self.who(lost),
                lost + 1,
                written + 1
            )
        })
    }

    /// A value that was looked at, and had changed when the thread acted on it.
    fn check_then_act(&self) -> Option<String> {
        let events = self.events();
        let pair = self.view.pair?;
        let look = pair.first as usize;
        let change = *pair.second.as_ref().ok()? as usize;
        let (looked, changed) = (&events[look], &events[change]);
        let looks = matches!(looked.operation.kind, OpKind::Load { .. })
            || looked.outcome == Outcome::Failure(looked.outcome.value().unwrap_or_default());
        let same = looked.operation.object == changed.operation.object;
        if !looks || !same || !self.leaves_another(change) {
            return None;
        }
        let mut mine = (change + 1..events.len()).filter(|&at| events[at].thread == looked.thread);
        let acts = mine.clone().next()?;
        // Who looks again before it does something goes by what it sees then.
        let object = looked.operation.object;
        let next = mine.find(|&at| !only_looks_on(&events[at], object));
        if next.is_some_and(|at| looks_again(&events[at], object)) {
            return None;
        }
        Some(format!(
            "check, then act: what {} saw of {} (event {}) was no longer so (event {}) when it went on (event {})",
            self.who(look),
            self.object(looked.operation.object),
            look + 1,
            change + 1,
            acts + 1
        ))
    }
}

fn notifies(kind: &OpKind) -> bool {
    matches!(kind, OpKind::NotifyOne | OpKind::NotifyAll)
}

/// Whether the event shows its thread once more what the object holds. What comes of a sum is
/// seldom looked at.
fn looks_again(event: &Event, object: ObjectId) -> bool {
    match event.operation.kind {
        // A round of a loop is over, and it is about to look.
        OpKind::Wait { .. } => true,
        OpKind::Load { .. } | OpKind::CompareExchange { .. } => event.operation.object == object,
        OpKind::Rmw { rmw, .. } => {
            let extreme = matches!(rmw.name(), "max" | "min");
            let sum = extreme || matches!(rmw, Rmw::Add | Rmw::Sub);
            event.operation.object == object && !sum
        }
        _ => false,
    }
}

/// Whether the event does nothing, and shows nothing of the object either.
fn only_looks_on(event: &Event, object: ObjectId) -> bool {
    match event.operation.kind {
        OpKind::Load { .. } => event.operation.object != object,
        OpKind::Join { .. } => true,
        _ => false,
    }
}
