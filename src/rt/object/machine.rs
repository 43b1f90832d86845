//! What is the state of a running program, apart from its code?
//!
//! A [`Machine`] holds the objects, and for each thread the operation it has announced. It is all
//! that live closures and abstract programs have in common: whoever runs the code announces the
//! next operation of each thread, the machine says who can go on, executes one step and hands the
//! outcome back. It knows nothing of schedules.

use crate::rt::event::id::{FEW, Names, ObjectId, Place, ThreadId, entry};
use crate::rt::event::operation::{
    AtomicType, ObjectKind, OpKind, Operation, Outcome, Reason, Step,
};
use crate::rt::event::{Event, Site};
use crate::rt::pooled::{Empty, empty_rows};
use crate::rt::rare::Roomy;
use crate::rt::relation::independence::{Label, Nature, ReadSets};

mod awaits;
mod execute;
mod learnt;
mod lives;
pub(crate) mod solo_run;
pub(crate) mod transition;
mod waits;

use crate::rt::object::machine::solo_run::GoesFurther;
pub(crate) use awaits::{AwaitLoop, Awaits, Spot, look};
pub(crate) use learnt::{Hintless, Learnt};
pub(crate) use waits::{AtHint, Waited, WaitsAt};

pub(crate) use execute::{Executed, Noticed, outcome_of_thread_op};
use waits::{asks, is_timed, looks};

use super::State;
use crate::rt::loops::spin::SpinLog;

/// The bounds that belong to the meaning of a program rather than to the search.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How many idle iterations of a spin loop are free before its hint waits.
    pub(crate) spin_bound: u32,
    /// How many repetitions of the same read are free before a loop without a hint waits.
    pub(crate) unhinted_spin_bound: u32,
    /// How often in a row a wait at one place may time out before it waits for a change, or until
    /// nothing else can run.
    pub(crate) timeout_bound: u32,
    /// How often in a row a waiting thread is let go before the execution is a livelock. There may
    /// be an end to its rounds that nobody sees.
    pub(crate) livelock_bound: u32,
    /// The same of a thread in a loop without a hint, where each time stands for many repetitions.
    /// A loop that looks at three objects is told before the limit of events.
    pub(crate) unhinted_livelock_bound: u32,
    /// Whether a weak compare-exchange may fail for no reason.
    pub(crate) spurious_failures: bool,
    /// How many waits of a thread may end for no reason.
    pub(crate) spurious_wakeups: u32,
    /// Whether a thread's panic is only its own end, and not a failure.
    pub(crate) catches_panics: bool,
    /// Whether it is no failure if threads are blocked when the main one has ended.
    pub(crate) detached_may_block: bool,
    /// What an earlier exploration of the same program has learnt of it.
    pub(crate) learnt: Learnt,
    /// How often a thread comes to one hint, each time having changed something since its last one.
    pub(crate) max_rounds: Option<usize>,
    /// How often a thread comes to one hint with something changed before it lets the others go
    /// first there, each time; `None` if it never does.
    pub(crate) rounds_of_turn: Option<usize>,
    /// How many bytes the stack of a thread has that has asked for no more, to be named when that
    /// is too small.
    pub(crate) stack_size: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            spin_bound: 1,
            unhinted_spin_bound: 1000,
            timeout_bound: 2,
            livelock_bound: 1000,
            unhinted_livelock_bound: 30,
            spurious_failures: false,
            spurious_wakeups: 0,
            catches_panics: false,
            detached_may_block: false,
            learnt: Learnt::default(),
            max_rounds: None,
            rounds_of_turn: None,
            stack_size: 0,
        }
    }
}

/// The objects of a running program, and what each thread is about to do.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) names: Names,
    pub(crate) sets: ReadSets,
    pub(crate) limits: Limits,
    objects: Vec<Option<Object>>,
    touched: Vec<ObjectId>,
    threads: Vec<Thread>,
    /// The threads that exist and have not exited, in the order of their spawns.
    live: Vec<ThreadId>,
    /// How many threads have been spawned and not joined.
    unjoined: u32,
    /// Of how many threads the code has not begun.
    unbegun: u32,
    /// Whether a thread went no further because of how many rounds it had made, in this execution
    /// or an earlier one.
    leaves_rounds_out: bool,
    /// A hint, and how often at most a thread has come there in one execution with something
    /// changed, in this one or an earlier one.
    most_rounds: Option<(Site, usize)>,
    /// Where threads have waited in loops without a hint, in this execution or an earlier one.
    hintless: Vec<Site>,
    /// The first waits that were not for something that another thread has to do anyway.
    waited: Vec<Waited>,
    /// Whether there were more loops without a hint than are looked after.
    waits_unknown: bool,
    /// Whether another thread has ended a wait in a loop without a hint.
    hintless_ends: bool,
    /// Whether who comes to a hint now goes round for ever if it finds no change.
    goes_round: bool,
    /// Who does not wait at a hint, if there is such a thread.
    solo_run: Option<GoesFurther>,
    /// After how many events those that waited were let go last, if any have been in this
    /// execution.
    let_go_at: u32,
    /// If only those were let go then that let the others go first: how many events the others had
    /// performed.
    others_then: Option<u32>,
    /// How many events the main thread had performed when it spawned its first one.
    first_spawn: Option<u32>,
    /// The values that the waits of this execution have seen, one stretch after the other.
    seen: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Object {
    state: State,
    /// What it was made with.
    made: (ObjectKind, u64),
}

/// The waits of a thread that have timed out in a row.
#[derive(Clone, Debug, Default)]
struct Timeouts {
    /// Where they are, and how many.
    site: Option<Site>,
    times: u32,
    /// What the last one has seen of each object that it waited for.
    seen: Vec<(ObjectId, u64)>,
}

impl Timeouts {
    fn reset(&mut self) {
        self.site = None;
        self.times = 0;
        self.seen.clear();
    }

    /// Another one, at this place. What it has seen is kept, because what the object shows when the
    /// thread comes back to it may hang on events that commute with all that the thread has done.
    #[cold]
    fn count(&mut self, site: Site, object: ObjectId, seen: u64) {
        if self.site != Some(site) {
            self.reset();
        }
        self.site = Some(site);
        self.times += 1;
        match self.seen.iter_mut().find(|(known, _)| *known == object) {
            Some(known) => known.1 = seen,
            None => self.seen.push((object, seen)),
        }
    }
}

/// What a thread waits in for a change; of those that it has been let go in, that which has the
/// most rounds before it is in a livelock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Loop {
    Unhinted,
    /// It has a hint or a timeout.
    Hinted,
}

#[derive(Clone, Debug)]
struct Thread {
    /// What it announced last, and whether that is still to happen.
    last: Pending,
    announced: bool,
    /// Where it was spawned; of the main thread where the model begins.
    born: Site,
    events: u32,
    /// How many of them it had performed when it came to a hint last, if it has come to one.
    at_hint: Option<u32>,
    children: u32,
    spin: SpinLog,
    /// The token that it has made available last, unless it has parked since then.
    unparked: Option<ObjectId>,
    /// After how many events the wait was let go that it has announced.
    released: Option<u32>,
    /// What it has waited in last.
    loops: Loop,
    consecutive_releases: u32,
    /// How many of its last waits in a row were in loops without a hint, if it was let go in all of
    /// them but the last.
    unhinted_in_a_row: u32,
    timeouts: Timeouts,
    /// How many of its waits have ended for no reason.
    wakeups: u32,
    /// The atomics at which one of its compare-exchanges has failed for no reason, and none has
    /// succeeded since.
    failed: Vec<ObjectId>,
    /// Whether a thread has joined it.
    joined: bool,
}

/// An announced operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) operation: Operation,
    pub(crate) site: Site,
}

/// What a thread announces whose code has not begun.
const START: Operation = Operation {
    object: ObjectId::NONE,
    kind: OpKind::Start,
};

impl Thread {
    /// A thread that is about to start.
    fn new(site: Site) -> Thread {
        Thread {
            last: Pending {
                operation: START,
                site,
            },
            announced: true,
            born: site,
            events: 0,
            at_hint: None,
            children: 0,
            spin: SpinLog::default(),
            unparked: None,
            released: None,
            loops: Loop::Hinted,
            consecutive_releases: 0,
            unhinted_in_a_row: 0,
            timeouts: Timeouts::default(),
            wakeups: 0,
            failed: Vec::new(),
            joined: false,
        }
    }

    #[inline]
    fn pending(&self) -> Option<&Pending> {
        self.announced.then_some(&self.last)
    }
}

impl Empty for Machine {
    fn empty(&mut self) {
        let Machine {
            names,
            sets,
            limits: _,
            objects,
            touched,
            threads,
            live,
            unjoined,
            unbegun,
            leaves_rounds_out,
            most_rounds,
            hintless,
            waited,
            waits_unknown,
            hintless_ends,
            goes_round,
            solo_run,
            let_go_at,
            others_then,
            first_spawn,
            seen,
        } = self;
        names.empty();
        empty_rows(objects);
        touched.empty();
        live.empty();
        seen.empty();
        // A thread that is spawned takes the place of one of these, which none of them is asked for
        // before.
        threads.truncate(FEW);
        threads
            .iter_mut()
            .for_each(|thread| thread.announced = false);
        (*sets, *hintless, *waited) = Default::default();
        (*unjoined, *unbegun, *let_go_at, *first_spawn) = (0, 0, 0, None);
        (*leaves_rounds_out, *waits_unknown, *hintless_ends) = (false, false, false);
        (*most_rounds, *goes_round, *solo_run, *others_then) = (None, false, None, None);
    }
}

impl Machine {
    pub(crate) fn new(limits: Limits) -> Machine {
        Machine {
            names: Names::new(),
            sets: ReadSets::default(),
            limits,
            objects: Vec::new(),
            touched: Vec::with_capacity(FEW),
            threads: Vec::new(),
            live: Vec::with_capacity(FEW),
            unjoined: 0,
            unbegun: 0,
            leaves_rounds_out: false,
            most_rounds: None,
            hintless: Vec::new(),
            waited: Vec::new(),
            waits_unknown: false,
            hintless_ends: false,
            goes_round: false,
            solo_run: None,
            let_go_at: 0,
            others_then: None,
            first_spawn: None,
            seen: Vec::new(),
        }
    }

    /// Back to the state before the first event: no objects, and the main thread about to start.
    pub(crate) fn reset(&mut self, site: Site) {
        for object in self.touched.iter() {
            let slot = &mut self.objects[object.index()];
            match slot {
                Some(object) if object.state.owns_memory() => *slot = None,
                // To drop it would be a call that does nothing.
                _ => std::mem::forget(slot.take()),
            }
        }
        self.touched.clear();
        self.names.begin();
        self.seen.clear();
        self.live.clear();
        self.unbegun = 0;
        self.add_thread(ThreadId::MAIN, site);
        self.unjoined = 0;
        self.others_then = None;
        self.first_spawn = None;
    }

    // Objects.

    /// The object at `place`, made with this kind and value if this execution has not met it yet.
    pub(crate) fn object_at(&mut self, place: Place, kind: ObjectKind, value: u64) -> ObjectId {
        let object = self.names.object(place);
        self.meet(object, kind, value);
        object
    }

    /// This execution meets the object, which is made with this kind and value if it has not been
    /// met yet.
    #[inline]
    pub(crate) fn meet(&mut self, object: ObjectId, kind: ObjectKind, value: u64) {
        if !matches!(self.objects.get(object.index()), Some(Some(_))) {
            self.make(object, kind, value);
        }
    }

    /// Makes an object. Most stand for threads or are atomics. These are made by functions of their
    /// own, since an object of any kind would be made in one place and moved to another.
    #[inline]
    fn make(&mut self, object: ObjectId, kind: ObjectKind, value: u64) {
        match kind {
            ObjectKind::Thread => self.make_late_thread(object),
            ObjectKind::Atomic(ty) => self.make_atomic(object, ty, value),
            _ => self.make_another(object, kind, value),
        }
    }

    #[cold]
    fn make_late_thread(&mut self, object: ObjectId) {
        self.make_thread(object);
    }

    #[inline(always)]
    fn make_thread(&mut self, object: ObjectId) {
        self.new_object(object).get_or_insert_with(|| Object {
            state: State::Thread { finished: false },
            made: (ObjectKind::Thread, 0),
        });
    }

    #[inline(never)]
    fn make_atomic(&mut self, object: ObjectId, ty: AtomicType, value: u64) {
        self.new_object(object).get_or_insert_with(|| Object {
            state: State::Atomic { ty, value },
            made: (ObjectKind::Atomic(ty), value),
        });
    }

    #[inline(never)]
    fn make_another(&mut self, object: ObjectId, kind: ObjectKind, value: u64) {
        self.new_object(object).get_or_insert_with(|| Object {
            state: State::new(kind, value),
            made: (kind, value),
        });
    }

    /// Where an object is to be put that this execution meets. There is none yet; where the
    /// compiler sees that, too, there is none to be dropped, and the new one is made in its place.
    #[inline(always)]
    fn new_object(&mut self, object: ObjectId) -> &mut Option<Object> {
        self.touched.put(object);
        entry(&mut self.objects, object.index())
    }

    /// The object that stands for the end of `thread`.
    pub(crate) fn thread_object(&mut self, thread: ThreadId) -> ObjectId {
        let object = self.names.thread_object(thread);
        self.meet(object, ObjectKind::Thread, 0);
        object
    }

    /// [`Machine::thread_object`] of a thread that is about to be spawned, which this execution has
    /// not met.
    #[inline]
    pub(crate) fn new_thread_object(&mut self, thread: ThreadId) -> ObjectId {
        let object = self.names.thread_object(thread);
        self.make_thread(object);
        object
    }

    /// The object that stands for the park token of `thread`.
    pub(crate) fn token_object(&mut self, thread: ThreadId) -> ObjectId {
        let object = self.names.token_object(thread);
        self.meet(object, ObjectKind::Token, 0);
        object
    }

    /// [`Machine::token_object`] if the object has a name. Whether this execution has met it is not
    /// asked.
    #[inline]
    pub(crate) fn known_token(&self, thread: ThreadId) -> Option<ObjectId> {
        self.names.known_token(thread)
    }

    /// The state of an object that this execution has met.
    #[inline]
    pub(crate) fn state(&self, object: ObjectId) -> &State {
        match &self.objects[object.index()] {
            Some(object) => &object.state,
            None => unmet(object),
        }
    }

    /// The kind of an object, if this execution has met it.
    pub(crate) fn kind(&self, object: ObjectId) -> Option<ObjectKind> {
        let object = self.objects.get(object.index())?.as_ref()?;
        Some(object.state.kind())
    }

    /// The state an object had when this execution met it.
    pub(crate) fn initial(&self, object: ObjectId) -> State {
        match &self.objects[object.index()] {
            Some(Object {
                made: (kind, value),
                ..
            }) => State::new(*kind, *value),
            None => unmet(object),
        }
    }

    /// Takes the objects back to their states behind these events of the execution. What threads
    /// have announced stays what it is.
    pub(crate) fn rewind(&mut self, events: &[Event]) {
        for object in self.touched.iter() {
            if let Some(object) = &mut self.objects[object.index()] {
                let (kind, value) = object.made;
                object.state = State::new(kind, value);
            }
        }
        for event in events {
            let operation = &event.operation;
            if operation.object != ObjectId::NONE
                && let Some(object) = &mut self.objects[operation.object.index()]
            {
                (object.state).apply(event.thread, &operation.kind, event.alternative);
            }
        }
    }

    #[cfg(any(test, feature = "bench"))]
    /// The objects of this execution, in the order in which they were met.
    pub(crate) fn objects(&self) -> &[ObjectId] {
        &self.touched
    }

    // Threads.

    /// How many events `thread` has performed.
    #[inline]
    pub(crate) fn events_of(&self, thread: ThreadId) -> u32 {
        self.threads[thread.index()].events
    }

    /// What `thread` is about to do, if it has said so.
    #[inline]
    pub(crate) fn pending(&self, thread: ThreadId) -> Option<&Pending> {
        self.threads.get(thread.index())?.pending()
    }

    /// What has a name in the other machine, which was the same one and ran on, has it in this one.
    pub(crate) fn keep_names_of(&mut self, later: Machine) {
        (self.names, self.sets) = (later.names, later.sets);
    }

    /// Whether a compare-exchange of `thread` at this atomic has failed for no reason, and none has
    /// succeeded there since. None is to fail so again until then, or a loop around it would have
    /// no end.
    pub(crate) fn has_failed_for_no_reason(&self, thread: ThreadId, object: ObjectId) -> bool {
        self.threads[thread.index()].failed.contains(&object)
    }

    /// Whether a wait of `thread` may still end for no reason.
    pub(crate) fn may_wake_up(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()].wakeups < self.limits.spurious_wakeups
    }

    /// A wait of `thread` ends for no reason.
    pub(crate) fn count_wakeup(&mut self, thread: ThreadId) {
        self.threads[thread.index()].wakeups += 1;
    }

    /// Announces the next operation of `thread`.
    #[inline]
    pub(crate) fn announce(&mut self, thread: ThreadId, operation: &Operation, site: Site) {
        let entry = &mut self.threads[thread.index()];
        // In the pieces that it was put together from: a copy of the whole would have to wait for
        // these.
        let Operation { object, ref kind } = *operation;
        entry.last.operation.kind = *kind;
        entry.last.operation.object = object;
        entry.last.site = site;
        entry.announced = true;
    }

    /// Whether `thread` can make the step it has announced.
    #[inline(never)]
    pub(crate) fn enabled(&self, thread: ThreadId) -> bool {
        let Some(entry) = self.threads.get(thread.index()) else {
            return false;
        };
        let Some(pending) = entry.pending() else {
            return false;
        };
        self.can_perform(thread, &pending.operation)
    }

    /// Whether what the thread has announced can happen.
    fn can_happen(&self, thread: ThreadId, entry: &Thread, operation: &Operation) -> bool {
        match operation.kind {
            OpKind::Wait { set, seen, .. } => {
                entry.released.is_some()
                    || self.has_changed(set, seen, |object, seen| {
                        self.state(object).has_changed(seen)
                    })
            }
            OpKind::GiveUp { why } => match why {
                Reason::Assumed => false,
                Reason::Rounds => self.limits.max_rounds.is_none(),
                Reason::InVain { .. } => self.limits.learnt.awaits.is_empty(),
            },
            _ if operation.object == ObjectId::NONE => true,
            ref kind => self.state(operation.object).enabled(thread, kind),
        }
    }

    /// How many outcomes the enabled step of `thread` has.
    #[inline]
    pub(crate) fn alternatives(&self, thread: ThreadId) -> u32 {
        match self.pending(thread) {
            None => 0,
            Some(pending) => match pending.operation.kind {
                OpKind::Choose { options, .. } => options,
                ref kind if kind.may_have_alternatives() => {
                    self.state(pending.operation.object).alternatives(kind)
                }
                _ => 1,
            },
        }
    }

    /// The label that this step would have, if its thread is enabled.
    pub(crate) fn predict(&self, step: Step) -> Option<Label> {
        if !self.enabled(step.thread) {
            return None;
        }
        let operation = self.pending(step.thread)?.operation;
        if operation.object == ObjectId::NONE {
            let kind = &operation.kind;
            return Some(Label::new(
                operation.object,
                kind,
                Outcome::Done,
                Nature::Plain,
            ));
        }
        let mut state = self.state(operation.object).clone();
        let outcome = state.apply(step.thread, &operation.kind, step.alternative);
        Some(state.label(&operation, outcome))
    }
}

#[cold]
fn unannounced(thread: ThreadId) -> ! {
    panic!("dpor bug: {thread:?} was scheduled without an announced operation")
}

#[cold]
fn unmet(object: ObjectId) -> ! {
    panic!("dpor bug: {object:?} was used before this execution met it")
}
