//! What is the state of a running program, apart from its code?
//!
//! A [`Machine`] holds the objects, and for each thread the operation that the thread has
//! announced. Live closures and abstract programs share only this state: the code's runner
//! announces the next operation of each thread, and the machine tells which threads are enabled,
//! executes one step and returns its outcome. The machine knows no schedules.

use crate::rt::event::id::{FEW, Names, ObjectId, Place, ThreadId, entry};
use crate::rt::event::operation::{
    AtomicType, ObjectKind, OpKind, Operation, Outcome, Reason, Step,
};
use crate::rt::event::{Event, Site};
use crate::rt::pooled::{Empty, empty_rows};
use crate::rt::rare::Roomy;
use crate::rt::relation::independence::{Label, Nature, ReadSets};

mod awaits;
mod blocks;
mod execute;
mod learnt;
mod lives;
pub(crate) mod solo_run;
pub(crate) mod transition;
mod waits;

use crate::rt::object::machine::solo_run::GoesFurther;
pub(crate) use awaits::{AwaitLoop, Awaits, Spot, is_among, look};
use awaits::{Passed, Rest};
use blocks::Blocks;
pub(crate) use blocks::Outside;
pub(crate) use learnt::{Hintless, Learnt, Loud};
pub(crate) use waits::{AtHint, Waited, WaitsAt};

pub(crate) use execute::{Executed, Noticed, outcome_of_thread_op};
use waits::{asks, is_timed, looks};

use super::State;
use super::contents::{Unfit, Updates, unfit};
use super::orders::{InMemory, Orders};
use crate::rt::loops::spin::SpinLog;

/// The bounds that belong to the meaning of a program, and not to the search.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The number of idle rounds of a spin loop before the thread waits at the hint of the loop.
    pub(crate) spin_bound: u32,
    /// The number of repetitions of the same read before a loop without a hint waits.
    pub(crate) unhinted_spin_bound: u32,
    /// The number of timeouts in a row of a wait at one place. After them the thread waits for a
    /// change, or until no other thread is enabled.
    pub(crate) timeout_bound: u32,
    /// The number of releases in a row of a waiting thread before the execution is a livelock. The
    /// machine may not see that the rounds of the thread have an end.
    pub(crate) livelock_bound: u32,
    /// The same number for a thread in a loop without a hint, where each release stands for many
    /// repetitions. A loop that looks at three objects is reported as a livelock before the
    /// execution reaches the limit of events.
    pub(crate) unhinted_livelock_bound: u32,
    /// Whether a weak compare-exchange may fail spuriously.
    pub(crate) spurious_failures: bool,
    /// The number of weak compare-exchanges of a thread that may fail spuriously, if any may.
    pub(crate) spurious_failures_max: u32,
    /// The number of waits of a thread that may end spuriously.
    pub(crate) spurious_wakeups: u32,
    /// Whether these are waits of std's alone. Loom's `Notify` makes the choice all the same, so
    /// that a schedule fits whether they are or not, and has one option.
    pub(crate) wakeups_of_std_alone: bool,
    /// Whether a failed `try_lock` of a mutex may read an old state under C11.
    pub(crate) stale_try_lock: bool,
    /// Whether a reader of a lock waits until the writers that wait have had their turn.
    pub(crate) writers_first: bool,
    /// Whether a thread gets the memory again of the blocks that it has freed.
    pub(crate) blocks_again: bool,
    /// Whether the panic of a thread ends only this thread, and is not a failure.
    pub(crate) catches_panics: bool,
    /// Whether threads may be blocked when the main thread has ended, without a failure.
    pub(crate) detached_may_block: bool,
    /// The facts that an earlier exploration of the same program has learnt.
    pub(crate) learnt: Learnt,
    /// Whether a thread waits in a loop that is taken for one step only where a further round has
    /// left its state as it was. The round leaves no event, and the look in vain before it stays.
    pub(crate) proves_awaits: bool,
    /// The bound on the number of visits of a thread to one hint with a change since the visit
    /// before.
    pub(crate) max_rounds: Option<usize>,
    /// The number of visits of a thread to one hint with a change before the thread lets the other
    /// threads go first at each further visit; `None` if the thread never does so.
    pub(crate) rounds_of_turn: Option<usize>,
    /// Whether executions are compared by their states, so that every state has to be known
    /// ([`contents`](super::contents)).
    pub(crate) compares_states: bool,
    /// The default size in bytes of a thread's stack. The report of a stack overflow names it.
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
            spurious_failures_max: u32::MAX,
            spurious_wakeups: 0,
            wakeups_of_std_alone: false,
            stale_try_lock: false,
            writers_first: false,
            blocks_again: false,
            catches_panics: false,
            detached_may_block: false,
            learnt: Learnt::default(),
            proves_awaits: false,
            max_rounds: None,
            rounds_of_turn: None,
            compares_states: false,
            stack_size: 0,
        }
    }
}

/// The objects of a running program, and the next operation of each thread.
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
    /// The number of threads that have been spawned and not joined.
    unjoined: u32,
    /// The number of threads that have not begun their code.
    unbegun: u32,
    /// Whether a thread has stopped at the bound on its rounds, in this execution or an earlier
    /// one.
    leaves_rounds_out: bool,
    /// The hint with the most visits of one thread with a change in one execution, and the number
    /// of these visits; in this execution or an earlier one.
    most_rounds: Option<(Site, usize)>,
    /// The places at which threads have waited in loops without a hint, in this execution or an
    /// earlier one.
    hintless: Vec<Site>,
    /// The first waits for changes that no other thread is bound to make.
    waited: Vec<Waited>,
    /// Whether there were more loops without a hint than the machine keeps track of.
    waits_unknown: bool,
    /// Whether another thread has ended a wait in a loop without a hint.
    hintless_ends: bool,
    /// Whether the thread that reaches a hint now repeats its rounds for ever if it finds no
    /// change.
    goes_round: bool,
    /// The thread that does not wait at its hint because of a solo run, if there is one.
    solo_run: Option<GoesFurther>,
    /// The number of events at the last release of waiting threads, if this execution has released
    /// any.
    let_go_at: u32,
    /// The number of events of the other threads at the last release, if this release released only
    /// fair waits: those of threads that let the others go first.
    others_then: Option<u32>,
    /// The number of events of the main thread before its first spawn.
    first_spawn: Option<u32>,
    /// The values that the waits of this execution have seen, one range for each wait.
    seen: Vec<u64>,
    /// For each thread the looks of its wait that left no event. Empty if this execution has
    /// withdrawn none.
    rests: Vec<Rest>,
    /// The looks of waits that came out otherwise, in the order of their events.
    passed: Vec<Passed>,
    /// The effects of the blocks of this execution.
    blocks: Blocks,
    /// The modification orders of the atomics, if memory is C11's.
    orders: Option<Box<Orders>>,
    /// What is known of the values that only the program knows.
    pub(crate) updates: Updates,
    /// An operation on something with an unknown state, where states are compared.
    pub(crate) unfit: Option<Unfit>,
}

#[derive(Clone, Debug)]
struct Object {
    state: State,
    /// The kind and the value with which the object was made.
    made: (ObjectKind, u64),
}

/// The waits of a thread that have timed out in a row.
#[derive(Clone, Debug, Default)]
struct Timeouts {
    /// The place of these waits, and their number.
    site: Option<Site>,
    times: u32,
    /// For each object that the thread waited for, the view of the last wait.
    seen: Vec<(ObjectId, u64)>,
}

impl Timeouts {
    fn reset(&mut self) {
        self.site = None;
        self.times = 0;
        self.seen.clear();
    }

    /// Counts another timeout at this place. The earlier views are kept: the view of an object at a
    /// later visit may depend on events that commute with all events of the thread.
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

/// The kind of loop in which a thread waits for a change. Among the loops in which the thread has
/// been released, this is the one that allows more rounds before a livelock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Loop {
    Unhinted,
    /// A loop with a hint or a timeout.
    Hinted,
}

#[derive(Clone, Debug)]
struct Thread {
    /// The last announced operation. `announced` tells whether its event is still to come.
    last: Pending,
    announced: bool,
    /// The place of its spawn; for the main thread the place at which the model begins.
    born: Site,
    events: u32,
    /// The number of its events at its last visit to a hint, if it has reached a hint.
    at_hint: Option<u32>,
    children: u32,
    spin: SpinLog,
    /// The token that the thread made available last, unless it has parked since then.
    unparked: Option<ObjectId>,
    /// The number of events of the execution at the release of the announced wait, if this wait has
    /// been released.
    released: Option<u32>,
    /// The kind of loop of its last wait.
    loops: Loop,
    consecutive_releases: u32,
    /// The number of its last consecutive waits in loops without a hint, if all of them but the
    /// last have been released.
    unhinted_in_a_row: u32,
    timeouts: Timeouts,
    /// The number of its waits that have ended spuriously.
    wakeups: u32,
    /// The atomics at which a compare-exchange of the thread has failed spuriously and none has
    /// succeeded since.
    failed: Vec<ObjectId>,
    /// The number of its compare-exchanges that have failed spuriously.
    failures: u32,
    /// Whether a thread has joined it.
    joined: bool,
}

/// An announced operation, and its place in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) operation: Operation,
    pub(crate) site: Site,
}

/// The operation that a thread announces before its code begins.
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
            failures: 0,
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
            rests,
            passed,
            blocks,
            orders,
            updates,
            unfit,
        } = self;
        names.empty();
        empty_rows(objects);
        touched.empty();
        live.empty();
        seen.empty();
        rests.clear();
        passed.clear();
        blocks.clear();
        // A new thread reuses one of these entries. No entry is read before.
        threads.truncate(FEW);
        threads
            .iter_mut()
            .for_each(|thread| thread.announced = false);
        (*sets, *hintless, *waited) = Default::default();
        (*unjoined, *unbegun, *let_go_at, *first_spawn) = (0, 0, 0, None);
        (*leaves_rounds_out, *waits_unknown, *hintless_ends) = (false, false, false);
        (*most_rounds, *goes_round, *solo_run, *others_then) = (None, false, None, None);
        *orders = None;
        *updates = Updates::default();
        *unfit = None;
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
            rests: Vec::new(),
            passed: Vec::new(),
            blocks: Blocks::default(),
            orders: None,
            updates: Updates::default(),
            unfit: None,
        }
    }

    /// The values that the memory of an atomic has for the last operation, if memory is C11's.
    pub(crate) fn in_memory(&self) -> Option<InMemory> {
        self.orders.as_ref().map(|orders| orders.made())
    }

    /// Each step on an atomic names its place in the modification order from now on.
    pub(crate) fn order_stores(&mut self) {
        self.orders = Some(Box::default());
    }

    /// Returns to the state before the first event: no objects, and the main thread about to start.
    pub(crate) fn reset(&mut self, site: Site) {
        for object in self.touched.iter() {
            let slot = &mut self.objects[object.index()];
            match slot {
                Some(object) if object.state.owns_memory() => *slot = None,
                // To drop this object would be a call without effect.
                _ => std::mem::forget(slot.take()),
            }
        }
        self.touched.clear();
        self.names.begin();
        self.updates.clear();
        if let Some(orders) = &mut self.orders {
            orders.clear();
        }
        self.seen.clear();
        self.rests.clear();
        self.blocks.clear();
        self.live.clear();
        self.unbegun = 0;
        self.add_thread(ThreadId::MAIN, site);
        self.unjoined = 0;
        self.others_then = None;
        self.first_spawn = None;
    }

    // Objects.

    /// The object at `place`. The first use in an execution makes it with this kind and value.
    pub(crate) fn object_at(&mut self, place: Place, kind: ObjectKind, value: u64) -> ObjectId {
        let object = self.names.object(place);
        self.meet(object, kind, value);
        object
    }

    /// Makes the object with this kind and value if this execution has not met it yet.
    #[inline]
    pub(crate) fn meet(&mut self, object: ObjectId, kind: ObjectKind, value: u64) {
        if !matches!(self.objects.get(object.index()), Some(Some(_))) {
            self.make(object, kind, value);
        }
    }

    /// Makes an object. Most objects stand for threads or are atomics. These kinds have functions
    /// of their own, because an object of any kind would be made in one place and moved to another.
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

    /// The empty slot for an object that this execution meets for the first time. If the compiler
    /// sees that the slot is empty, it drops nothing and constructs the new object in place.
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

    /// [`Machine::thread_object`] for a thread that is about to be spawned, so that this execution
    /// has not met the object yet.
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

    /// [`Machine::token_object`], if the object has a name. The function does not check whether
    /// this execution has met the object.
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

    /// The state of an object when this execution met it.
    pub(crate) fn initial(&self, object: ObjectId) -> State {
        match &self.objects[object.index()] {
            Some(Object {
                made: (kind, value),
                ..
            }) => State::new(*kind, *value),
            None => unmet(object),
        }
    }

    /// Takes the objects back to their states behind these events of the execution. The
    /// announcements of the threads stay unchanged.
    pub(crate) fn rewind(&mut self, events: &[Event]) {
        for object in self.touched.iter() {
            if let Some(object) = &mut self.objects[object.index()] {
                let (kind, value) = object.made;
                object.state = State::new(kind, value);
            }
        }
        if let Some(orders) = &mut self.orders {
            orders.clear();
        }
        for event in events {
            let operation = &event.operation;
            if let OpKind::Atomically { .. } = operation.kind {
                self.repeat_block(event);
            }
            if operation.object != ObjectId::NONE
                && let Some(object) = &mut self.objects[operation.object.index()]
            {
                if let (Some(orders), State::Atomic { ty, value }) =
                    (&mut self.orders, &mut object.state)
                    && ty.is_weak()
                {
                    let kind = &operation.kind;
                    let made = (*ty, *value);
                    let of = (event.thread, operation.object);
                    *value = orders.apply(of, made, kind, event.alternative).last;
                    continue;
                }
                let of = (operation.object, &operation.kind);
                if let (Some(orders), State::Mutex(mutex)) = (&mut self.orders, &object.state) {
                    orders.before_lock(of, *mutex, event.alternative);
                }
                (object.state).apply(event.thread, &operation.kind, event.alternative);
                if let (Some(orders), State::Mutex(mutex)) = (&mut self.orders, &object.state) {
                    orders.note_lock(of, *mutex, event.outcome);
                }
            }
        }
    }

    #[cfg(any(test, feature = "bench"))]
    /// The objects of this execution, in the order in which the execution met them.
    pub(crate) fn objects(&self) -> &[ObjectId] {
        &self.touched
    }

    // Threads.

    /// The number of events of `thread`.
    #[inline]
    pub(crate) fn events_of(&self, thread: ThreadId) -> u32 {
        self.threads[thread.index()].events
    }

    /// The announced operation of `thread`, if there is one.
    #[inline]
    pub(crate) fn pending(&self, thread: ThreadId) -> Option<&Pending> {
        self.threads.get(thread.index())?.pending()
    }

    /// Takes over the names from `later`, a copy of this machine that has executed further. An
    /// object has the same name in both.
    pub(crate) fn keep_names_of(&mut self, later: Machine) {
        (self.names, self.sets) = (later.names, later.sets);
    }

    /// Whether a compare-exchange of `thread` at this atomic has failed spuriously and none has
    /// succeeded there since. Until then no other one may fail spuriously there, because a loop
    /// around it would have no end.
    pub(crate) fn has_failed_for_no_reason(&self, thread: ThreadId, object: ObjectId) -> bool {
        self.threads[thread.index()].failed.contains(&object)
    }

    /// Whether fewer compare-exchanges of `thread` have failed spuriously than the limit allows.
    pub(crate) fn may_fail_again(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()].failures < self.limits.spurious_failures_max
    }

    /// Whether a wait of `thread` may still end spuriously.
    pub(crate) fn may_wake_up(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()].wakeups < self.limits.spurious_wakeups
    }

    /// Counts a wait of `thread` that ends spuriously.
    pub(crate) fn count_wakeup(&mut self, thread: ThreadId) {
        self.threads[thread.index()].wakeups += 1;
    }

    /// Announces the next operation of `thread`.
    #[inline]
    pub(crate) fn announce(&mut self, thread: ThreadId, operation: &Operation, site: Site) {
        let entry = &mut self.threads[thread.index()];
        // The fields are copied one by one, as the caller has written them: a copy of the whole
        // operation would have to wait for these writes.
        let Operation { object, ref kind } = *operation;
        entry.last.operation.kind = *kind;
        entry.last.operation.object = object;
        entry.last.site = site;
        entry.announced = true;
    }

    /// Whether `thread` can make its announced step.
    #[inline(never)]
    pub(crate) fn enabled(&self, thread: ThreadId) -> bool {
        let Some(entry) = self.threads.get(thread.index()) else {
            return false;
        };
        let Some(pending) = entry.pending() else {
            return false;
        };
        self.can_perform(thread, &pending.operation)
            && !self.would_look_in_vain(thread, &pending.operation)
    }

    /// Whether the announced operation of the thread is enabled.
    fn can_happen(&self, thread: ThreadId, entry: &Thread, operation: &Operation) -> bool {
        match operation.kind {
            OpKind::Wait { set, seen, .. } => {
                entry.released.is_some()
                    || self.has_changed(set, seen, |object, seen| {
                        self.state(object).has_changed(seen)
                    })
            }
            OpKind::GiveUp { why } => match why {
                Reason::Assumed | Reason::Stopped => false,
                Reason::Rounds => self.limits.max_rounds.is_none(),
                Reason::InVain { .. } => self.limits.learnt.awaits.is_empty(),
            },
            _ if operation.object == ObjectId::NONE => true,
            ref kind => self.state(operation.object).enabled(thread, kind),
        }
    }

    /// The objects that this wait looks at, each with what its thread has seen.
    pub(crate) fn looked_at(&self, set: u32, seen: u32) -> impl Iterator<Item = (ObjectId, u64)> {
        let objects = self.sets.get(set).iter().copied();
        objects.zip(self.seen[seen as usize..].iter().copied())
    }

    /// The number of outcomes of the enabled step of `thread`.
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

    /// Looks for an announced operation on something with an unknown state, and notes it.
    pub(crate) fn look_for_unfit(&mut self) -> bool {
        let pending = self.live.iter().filter_map(|&thread| self.pending(thread));
        let unfit = pending.into_iter().find_map(|pending| {
            let Operation { object, kind } = pending.operation;
            let state = match kind {
                OpKind::Wait { .. } => None,
                _ if object == ObjectId::NONE => None,
                _ => Some(self.state(object)),
            };
            let what = unfit(state, &kind)?;
            let site = pending.site;
            Some(Unfit { what, site })
        });
        if unfit.is_some() {
            self.unfit = unfit;
        }
        self.unfit.is_some()
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
