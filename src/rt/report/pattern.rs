//! Is this a mistake that has a name?
//!
//! Most failures are one of a few well-known mistakes, and the name of the mistake tells the reader
//! the remedy. Each mistake is recognised by its parts in the execution that is shown. An execution
//! that fits no pattern gets no sentence.

use std::ops::Range;

use super::sections::{self, Section};
use super::view::View;
use super::words::Names;
use super::{changes, publication};
use crate::rt::event::Event;
use crate::rt::event::held::Datum;
use crate::rt::event::id::ObjectId;
use crate::rt::event::notification::woken;
use crate::rt::event::operation::{OpKind, Outcome, Rmw};
use crate::rt::event::verdict::{Blocked, End, Lost};

/// One sentence with the name of the mistake, if a pattern fits.
pub(super) fn sentence(view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let told = Told { view, names };
    match view.end {
        End::Deadlock(stuck) => told
            .lost_wake_up()
            .or_else(|| told.woke_another(stuck))
            .or_else(|| told.nobody_wakes(stuck))
            .or_else(|| told.lost_update())
            .or_else(|| told.lost_data()),
        End::DataRace(race) => {
            publication::sentence(race, view, names).or_else(|| told.back_again())
        }
        End::Leaked(_) => told.lost_update().or_else(|| told.lost_data()),
        End::Panicked { .. } => told
            .back_again()
            .or_else(|| told.lost_update())
            .or_else(|| told.check_then_act())
            .or_else(|| told.lost_data())
            .or_else(|| told.checked_data()),
        End::BadMemory(_) => (told.back_again())
            .or_else(|| told.check_then_act())
            .or_else(|| told.checked_data()),
        _ => None,
    }
}

/// The values of the atomic that the failure hangs on, with the thread that wrote each.
pub(super) fn story(view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let first = view.trace.at(view.pair?.first);
    let object = first.operation.object;
    if object == ObjectId::NONE {
        return None;
    }
    if first.operation.kind.takes_lock() || matches!(first.operation.kind, OpKind::Unlock { .. }) {
        return story_of_data(view, names, object);
    }
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
    // A single change is in the sentence above already, and a long list does not help the reader.
    (2..=8).contains(&changes).then_some(story)
}

/// [`story`] of the data behind a lock.
fn story_of_data(view: &View<'_>, names: &Names<'_>, object: ObjectId) -> Option<String> {
    let mut sections = sections::of(view.trace, view.callers);
    sections.retain(|it| it.object == object);
    let begin = names.datum(sections.first()?.found.as_ref()?)?;
    let mut story = format!("{}: {begin}", names.object(object));
    let lost = Told { view, names }.overwritten(&sections);
    let overwrites = |it: &Section| lost.is_some_and(|[_, _, act]| act.begin == it.begin);
    let mut changes = 0;
    for section in &sections {
        // A critical section that has not ended has left nothing yet.
        let Some(left) = &section.left else { continue };
        // An exclusive reference alone changes nothing.
        if !section.leaves_another() && !overwrites(section) {
            continue;
        }
        changes += 1;
        let (thread, left) = (names.thread(section.thread), names.datum(left)?);
        story.push_str(&format!(" -> {left} by {thread}"));
    }
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

    /// Whether this event changes the value.
    fn leaves_another(&self, at: usize) -> bool {
        changes::leaves_another(&self.events()[at], self.view.machine)
    }

    /// A notification that found no waiter, and that would wake a thread which waits for ever if
    /// the two events came in the other order.
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

    /// The last notification woke one of several waiting threads. Only the program knows whether
    /// the notification was meant for another thread.
    fn woke_another(&self, stuck: &[Blocked]) -> Option<String> {
        let events = self.events();
        stuck.iter().find_map(|it| {
            let (waiter, object) = (it.thread, it.operation.object);
            let waited = self.began_to_wait(it)?;
            let notified = self.last_on(object, notifies)?;
            if notified < waited {
                return None;
            }
            // The notification would have woken this thread if it had woken all, or if this thread
            // had been the only one.
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

    /// A thread waits for ever, and no notification can wake it: each came before the thread
    /// waited, or an earlier wait has consumed it. Only the program knows whether that notification
    /// came too early or a later one is missing.
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
            let again = if events[used].thread == it.thread {
                format!(" before {waiter} waited again")
            } else {
                String::new()
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

    /// The position at which a thread began to wait for a condition variable, if it waits for one.
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

    /// The last event on an object with an operation of the given kinds.
    fn last_on(&self, object: ObjectId, of: impl Fn(&OpKind) -> bool) -> Option<usize> {
        let mut events = self.events().iter();
        events.rposition(|event| event.operation.object == object && of(&event.operation.kind))
    }

    /// A compare-exchange that succeeded because the value was the one its thread had read, though
    /// the value had changed and changed back (ABA). Most of these do no harm, for example if a
    /// lock was taken and released meanwhile. The compare-exchange has a part in the failure only
    /// if the failure hangs on the order of two of these events.
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

    /// A value that one thread read, another thread changed, and the first thread overwrote. The
    /// failure must hang on the read and the change, or on the change and the event that overwrote
    /// it.
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
        // A thread that has looked at the change overwrites it knowingly.
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

    /// A critical section of a thread that only looked at the data, one of another thread that
    /// changed it, and the next one of the first thread. The failure must hang on the order of the
    /// look and the change, or of the change and what came next.
    fn look_change_act<'s>(&self, sections: &'s [Section]) -> Option<[&'s Section; 3]> {
        let pair = self.view.pair?;
        let (one, other) = (pair.first as usize, *pair.second.as_ref().ok()? as usize);
        let object = self.events()[one].operation.object;
        let on_it = || sections.iter().filter(|it| it.object == object);
        // The exploration reverses the first operations of two critical sections that conflict, so
        // the change may be a later one of the same thread.
        let changer = |look: &Section, change: &Section, it: &&Section| {
            it.thread == change.thread && (look.begin..=change.begin).contains(&it.begin)
        };
        on_it().filter(|act| act.changes).find_map(|act| {
            let before = || on_it().take_while(|it| it.begin < act.begin);
            let look = before().filter(|it| it.thread == act.thread).last()?;
            let between = before().filter(|it| it.begin > look.begin && it.leaves_another());
            let change = between.last()?;
            let mut theirs = on_it().filter(|it| changer(look, change, it));
            let hangs = match look.has(one) {
                true => theirs.any(|it| it.has(other)),
                false => theirs.any(|it| it.has(one)) && act.has(other),
            };
            (!look.changes && hangs).then_some([look, change, act])
        })
    }

    /// [`Told::lost_update`] over two critical sections.
    fn lost_data(&self) -> Option<String> {
        let sections = sections::of(self.view.trace, self.view.callers);
        let [look, change, act] = self.overwritten(&sections)?;
        Some(format!(
            "a lost update: {0} read {1} (event {2}), {3} changed it (event {4}), and {0} overwrote that (event {5})",
            self.names.thread(look.thread),
            self.object(look.object),
            look.begin + 1,
            self.names.thread(change.thread),
            change.end.unwrap_or(change.begin) + 1,
            act.end.unwrap_or(act.begin) + 1
        ))
    }

    /// The [`Told::look_change_act`] of a change that was overwritten. The last critical section
    /// may have looked at the data once more, so it counts only if what it left did not depend on
    /// what it found: it wrote, and left what was there already, or another critical section that
    /// began at its place found other data and left the same.
    fn overwritten<'s>(&self, sections: &'s [Section]) -> Option<[&'s Section; 3]> {
        let [look, change, act] = self.look_change_act(sections)?;
        let is_value =
            |it: &Option<Datum>| it.as_ref().is_some_and(|it| !matches!(it, Datum::Bytes(_)));
        let site = |it: &Section| self.events()[it.begin].site;
        let blind = |it: &Section| {
            (it.changes && it.object == act.object)
                && (it.left == act.left && it.found != act.found && site(it) == site(act))
        };
        let overwrites = act.found == act.left || sections.iter().any(blind);
        let known = is_value(&look.found) && is_value(&act.found) && is_value(&act.left);
        (known && look.found != act.found && overwrites).then_some([look, change, act])
    }

    /// [`Told::check_then_act`] over two critical sections.
    fn checked_data(&self) -> Option<String> {
        let sections = sections::of(self.view.trace, self.view.callers);
        let [look, change, act] = self.look_change_act(&sections)?;
        Some(format!(
            "check, then act: what {} saw of {} (event {}) was no longer so (event {}) when it went on (event {})",
            self.names.thread(look.thread),
            self.object(look.object),
            look.begin + 1,
            change.end.unwrap_or(change.begin) + 1,
            act.begin + 1
        ))
    }

    /// A value that a thread looked at, and that had changed when the thread acted on it.
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
        // A thread that looks again before it acts goes by the later value.
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

/// Whether the event shows its thread the value of the object once more. Programs seldom look at
/// the result of an addition.
fn looks_again(event: &Event, object: ObjectId) -> bool {
    match event.operation.kind {
        // A round of a loop is over, and the thread is about to look again.
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

/// Whether the event changes nothing and does not show the value of the object either.
fn only_looks_on(event: &Event, object: ObjectId) -> bool {
    match event.operation.kind {
        OpKind::Load { .. } => event.operation.object != object,
        OpKind::Join { .. } => true,
        _ => false,
    }
}
