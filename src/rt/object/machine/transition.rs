//! What is the result of a step that is about to be made?
//!
//! For the frequent operations the result is computed before anything changes, so that the caller
//! can still choose another way. The result is the same as in
//! [`execute`](crate::rt::object::machine::execute).

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Step};
use crate::rt::event::{Event, Site};
use crate::rt::loops::spin::{Meaning, meaning};
use crate::rt::object::mutex::{self, Mutex};
use crate::rt::object::orders::Orders;
use crate::rt::object::thread::token_apply;
use crate::rt::object::{State, count};
use crate::rt::rare::cold_path;
use crate::rt::relation::independence::{Label, Nature, classify};

use crate::rt::object::machine::execute::{Executed, Noticed, fails_for_no_reason, on_atomic};
use crate::rt::object::machine::waits::looks;
use crate::rt::object::machine::{Machine, Object, Thread};

/// A step that has not been made, with its computed result.
pub(crate) struct Transition<'a> {
    pub(crate) executed: Executed,
    id: ThreadId,
    thread: &'a mut Thread,
    change: Change<'a>,
}

/// The change that the step makes to its object.
enum Change<'a> {
    /// The object is a word or contains one.
    Word {
        value: &'a mut u64,
        before: u64,
        after: u64,
        bound: u32,
        /// The modification orders, if memory is C11's and the object an atomic.
        orders: Option<&'a mut Orders>,
    },
    Mutex {
        mutex: &'a mut Mutex,
        after: Mutex,
        meaning: Meaning,
    },
    /// The object is a token, which becomes available.
    Unpark { available: &'a mut bool },
}

impl Transition<'_> {
    /// The event that the step will be.
    #[inline(always)]
    pub(crate) fn event(&self, step: Step, operation: &Operation, site: Site) -> Event {
        let index = self.thread.events;
        self.executed.event(step, index, operation, site)
    }

    /// Makes the step. To complete its note takes a call, around which all values in use would have
    /// to be saved. So the caller makes this call.
    #[inline(always)]
    pub(crate) fn make(self, (object, kind, site): (ObjectId, &OpKind, Site)) -> Noticed {
        let Transition {
            id,
            thread,
            change,
            executed,
        } = self;
        thread.events += 1;
        match change {
            Change::Word {
                value,
                before,
                after,
                bound,
                orders,
            } => {
                // A load leaves the value unchanged.
                if !matches!(kind, OpKind::Load { .. }) {
                    *value = after;
                }
                if !kind.is_atomic() {
                    return Noticed::NOTHING;
                }
                let before = match orders {
                    None => before,
                    Some(orders) => {
                        cold_path();
                        let class = executed.label.class();
                        orders.note_newest((id, object), kind, class, (before, after))
                    }
                };
                let is_kept = looks(kind) && thread.spin.come_back(site, object, before, bound);
                // A spurious failure is never computed here.
                if let OpKind::CompareExchange { .. } = kind {
                    thread.note_success(object, executed.outcome);
                }
                thread.notice_access(object, (before, after), executed.outcome, is_kept)
            }
            Change::Mutex {
                mutex,
                after,
                meaning,
            } => {
                *mutex = after;
                thread.notice(object, meaning)
            }
            Change::Unpark { available } => {
                *available = true;
                thread.note_unpark(object)
            }
        }
    }
}

impl Machine {
    /// Computes the result of an operation that its thread has not announced before: an operation
    /// on an atomic, a reference count or a mutex, which is of this kind and holds `memory`, or an
    /// unpark. `None` if this fast path does not know the result: the object is another one, or the
    /// thread has to wait for it or for a change before, or the operation is not one of the
    /// frequent ones.
    #[inline(always)]
    pub(crate) fn compute(
        &mut self,
        step: Step,
        (object, kind): (ObjectId, &OpKind),
        (of, memory): (ObjectKind, u64),
    ) -> Option<Transition<'_>> {
        let (Some(met), Some(thread)) = (
            self.objects.get_mut(object.index()),
            self.threads.get_mut(step.thread.index()),
        ) else {
            return too_short();
        };
        match of {
            ObjectKind::Atomic(of) => {
                let Some(Object {
                    state: State::Atomic { ty, value },
                    ..
                }) = met
                else {
                    return too_short();
                };
                let before = *value;
                if *ty != of || before != memory {
                    return too_short();
                }
                let orders = match &mut self.orders {
                    None => None,
                    Some(orders) => {
                        cold_path();
                        // The alternative of another outcome than the newest is no other value.
                        if step.alternative != 0 {
                            return too_short();
                        }
                        of.is_weak().then_some(&mut **orders)
                    }
                };
                let (after, executed) = on_atomic(of, before, step, (object, kind));
                let bound = self.limits.unhinted_spin_bound;
                if looks(kind) && thread.spin.may_wait(bound)
                    || fails_for_no_reason(kind, executed.outcome)
                {
                    return too_short();
                }
                Some(Transition {
                    executed,
                    id: step.thread,
                    thread,
                    change: Change::Word {
                        value,
                        before,
                        after,
                        bound,
                        orders,
                    },
                })
            }
            ObjectKind::Count { observed: of } => {
                let Some(Object {
                    state: State::Count { observed, count },
                    ..
                }) = met
                else {
                    return too_short();
                };
                let before = *count;
                if *observed != of || before != memory {
                    return too_short();
                }
                let (after, executed) = match *kind {
                    OpKind::Retain => on_count(of, before, (object, &OpKind::Retain)),
                    OpKind::Release { told } => {
                        on_count(of, before, (object, &OpKind::Release { told }))
                    }
                    _ => return too_short(),
                };
                Some(Transition {
                    executed,
                    id: step.thread,
                    thread,
                    change: Change::Word {
                        value: count,
                        before,
                        after,
                        bound: 0,
                        orders: None,
                    },
                })
            }
            ObjectKind::Mutex => {
                let Some(Object {
                    state: State::Mutex(mutex),
                    ..
                }) = met
                else {
                    return too_short();
                };
                // Under C11 the states of a mutex are kept.
                if mutex.holder.is_some() as u64 != memory || self.orders.is_some() {
                    return too_short();
                }
                let (after, executed, meaning) = match *kind {
                    OpKind::Lock if mutex.holder.is_none() => {
                        on_mutex(*mutex, step.thread, (object, &OpKind::Lock))
                    }
                    OpKind::Unlock { changed } => {
                        let kind = OpKind::Unlock { changed };
                        on_mutex(*mutex, step.thread, (object, &kind))
                    }
                    _ => return too_short(),
                };
                Some(Transition {
                    executed,
                    id: step.thread,
                    thread,
                    change: Change::Mutex {
                        mutex,
                        after,
                        meaning,
                    },
                })
            }
            ObjectKind::Token => {
                let (State::Token { available }, OpKind::Unpark) = (&mut met.as_mut()?.state, kind)
                else {
                    return too_short();
                };
                let before = *available;
                let (_, outcome) = token_apply(before, &OpKind::Unpark);
                let label = Label::of(object, classify(&OpKind::Unpark, outcome, Nature::Plain));
                Some(Transition {
                    executed: Executed::plainly(outcome, label, Some(before as u64)),
                    id: step.thread,
                    thread,
                    change: Change::Unpark { available },
                })
            }
            _ => too_short(),
        }
    }
}

/// Nothing has changed. This case is rare, so its code stays out of the fast path.
#[inline(always)]
fn too_short<T>() -> Option<T> {
    cold_path();
    None
}

/// The result of an operation on a count that holds `before`, and the value that the count holds
/// then. With the kind as a constant, little code remains.
#[inline(always)]
pub(super) fn on_count(
    observed: bool,
    before: u64,
    (object, kind): (ObjectId, &OpKind),
) -> (u64, Executed) {
    let (after, outcome) = count::apply(before, kind);
    let label = Label::new(object, kind, outcome, count::nature(observed));
    (after, Executed::plainly(outcome, label, Some(before)))
}

/// The result of locking or unlocking a mutex in this state, its meaning for a loop, and the state
/// afterwards. With the kind as a constant, little code remains.
#[inline(always)]
pub(super) fn on_mutex(
    mutex: Mutex,
    thread: ThreadId,
    (object, kind): (ObjectId, &OpKind),
) -> (Mutex, Executed, Meaning) {
    let (after, outcome) = mutex::apply(mutex, thread, kind, 0);
    let label = Label::of(object, classify(kind, outcome, Nature::Plain));
    let executed = Executed::plainly(outcome, label, Some(mutex.pack()));
    let meaning = meaning(kind, outcome, (mutex.polled(), after.polled()));
    (after, executed, meaning)
}
