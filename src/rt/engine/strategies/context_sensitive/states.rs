//! In which state is a program, and in which one would it be behind other steps?
//!
//! [`States`] follows an execution: the contents of its objects, and a digest of what each thread
//! has been told. A [`Trial`] makes further steps on a copy of what they touch. No code runs for
//! that: the object models say what comes of a step, and for a value that only the program knows
//! [`Known`] says what a closure has done to these contents before, or it tries the closure.

use rustc_hash::FxHashMap;

use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Step};
use crate::rt::object::contents::{Contents, Digest, Effect, Told, Update, without_object};
use crate::rt::object::machine::Machine;
use crate::rt::relation::independence::Label;

/// A step with what it is known to do.
#[derive(Clone, Debug)]
pub(crate) struct KnownStep {
    pub(crate) step: Step,
    pub(crate) operation: Operation,
    pub(crate) label: Label,
    /// What the operation tells its thread.
    pub(crate) told: Digest,
    /// The contents with which its object was met, which an execution without the step may not
    /// know.
    pub(super) met: Option<Contents>,
}

/// What closures of the program do to values that only the program knows. A thread is a function of
/// what it has been told, and so is the closure that it announces.
#[derive(Default)]
pub(crate) struct Known {
    effects: FxHashMap<(ThreadId, Digest, ObjectId, Digest), Effect>,
    updates: FxHashMap<(ThreadId, Digest), Update>,
    /// The number of effects that nothing is known of. Each leads to contents of its own.
    unknown: u64,
}

impl Known {
    /// What the next closure of a thread that has been told `told` does to these contents.
    fn effect(
        &mut self,
        (thread, told): (ThreadId, Digest),
        (object, contents): (ObjectId, Digest),
    ) -> Option<Effect> {
        let key = (thread, told, object, contents);
        if let Some(effect) = self.effects.get(&key) {
            return Some(*effect);
        }
        let effect = (self.updates.get(&(thread, told))?.0)(contents)?;
        self.effects.insert(key, effect);
        Some(effect)
    }

    /// What a closure has done that nothing is known of.
    fn unknown(&mut self) -> Effect {
        self.unknown += 1;
        let contents = Digest::of(&("unknown", self.unknown));
        let told = contents;
        Effect { contents, told }
    }
}

/// What a step has changed: objects, threads, and the digest of the state.
pub(crate) struct After(Vec<(ObjectId, Contents)>, Vec<(ThreadId, Digest)>, Digest);

/// The state of an execution.
#[derive(Default)]
pub(crate) struct States {
    objects: FxHashMap<ObjectId, Contents>,
    threads: FxHashMap<ThreadId, Digest>,
    total: Digest,
}

impl States {
    /// Returns to the beginning of an execution.
    pub(crate) fn clear(&mut self) {
        self.objects.clear();
        self.threads.clear();
        self.total = Digest::default();
    }

    /// The digest of the state.
    pub(crate) fn total(&self) -> Digest {
        self.total
    }

    /// The digest of what a thread has been told.
    pub(crate) fn told(&self, thread: ThreadId) -> Digest {
        self.threads.get(&thread).copied().unwrap_or_default()
    }

    /// Looks at the next event of the execution: what it does, and the state behind it.
    pub(crate) fn look(
        &self,
        machine: &Machine,
        known: &mut Known,
        event: &Event,
    ) -> (KnownStep, After) {
        let object = event.operation.object;
        let told = self.told(event.thread);
        let number = (event.thread, event.index);
        let is_known_to_program =
            object != ObjectId::NONE && machine.kind(object) == Some(ObjectKind::Opaque);
        let mut trial = Trial::of(self, machine);
        let met = trial.met(object);
        if is_known_to_program {
            let before = trial.contents(object, met.as_ref());
            let before = before.map_or_else(Digest::default, |contents| contents.value());
            let made = machine.updates.made.get(&number).copied();
            let effect = made.unwrap_or_else(|| known.unknown());
            let key = (event.thread, told, object, before);
            known.effects.insert(key, effect);
            if let Some(update) = machine.updates.announced.get(&number) {
                known.updates.insert((event.thread, told), update.clone());
            }
        }
        let mut step = KnownStep {
            step: event.step(),
            operation: event.operation,
            label: event.label,
            told: Digest::default(),
            met,
        };
        let made = trial.make(known, &step);
        debug_assert!(
            made.is_none_or(|told| told.label == event.label),
            "{event:?}"
        );
        step.told = match made {
            Some(Told { told, .. }) => told,
            None => {
                let told = known.unknown().told;
                trial.tell(event.thread, told);
                told
            }
        };
        let Trial {
            objects,
            threads,
            total,
            ..
        } = trial;
        (step, After(objects, threads, total))
    }

    /// Goes to this state, which lies directly behind.
    pub(crate) fn go_to(&mut self, After(objects, threads, total): After) {
        self.objects.extend(objects);
        self.threads.extend(threads);
        self.total = total;
    }

    /// Notes the closures that threads have announced.
    pub(crate) fn note_pending(&self, machine: &Machine, known: &mut Known) {
        if machine.updates.announced.is_empty() {
            return;
        }
        for &thread in machine.live() {
            let number = (thread, machine.events_of(thread));
            if let Some(update) = machine.updates.announced.get(&number) {
                let told = self.told(thread);
                known.updates.insert((thread, told), update.clone());
            }
        }
    }
}

/// A state, and further steps that are tried from there.
pub(crate) struct Trial<'a> {
    from: &'a States,
    machine: &'a Machine,
    objects: Vec<(ObjectId, Contents)>,
    threads: Vec<(ThreadId, Digest)>,
    total: Digest,
}

impl<'a> Trial<'a> {
    /// No step from this state of the execution of `machine`.
    pub(crate) fn of(from: &'a States, machine: &'a Machine) -> Trial<'a> {
        Trial {
            from,
            machine,
            objects: Vec::new(),
            threads: Vec::new(),
            total: from.total,
        }
    }

    /// The digest of the state behind the steps.
    pub(crate) fn total(&self) -> Digest {
        self.total
    }

    /// The contents with which the execution met an object.
    fn met(&self, object: ObjectId) -> Option<Contents> {
        if object == ObjectId::NONE {
            return None;
        }
        self.machine.kind(object)?;
        let value = self.machine.updates.met.get(&object);
        let value = value.copied().unwrap_or_default();
        Some(Contents::new(self.machine.initial(object), value))
    }

    fn contents(&self, object: ObjectId, met: Option<&Contents>) -> Option<Contents> {
        let mine = self.objects.iter().find(|(of, _)| *of == object);
        let mine = mine.map(|(_, contents)| contents);
        let now = mine.or_else(|| self.from.objects.get(&object));
        now.cloned().or_else(|| self.met(object).or(met.cloned()))
    }

    fn told(&self, thread: ThreadId) -> Digest {
        let mine = self.threads.iter().find(|(of, _)| *of == thread);
        let mine = mine.map(|(_, told)| *told);
        mine.unwrap_or_else(|| self.from.told(thread))
    }

    /// Makes the step; `None`, without a change, if it is disabled, or if nothing is known of it.
    pub(crate) fn make(&mut self, known: &mut Known, it: &KnownStep) -> Option<Told> {
        let KnownStep {
            step, operation, ..
        } = it;
        let object = operation.object;
        let before = self.told(step.thread);
        let of = (step.thread, before);
        if object == ObjectId::NONE {
            let made = without_object(operation, step.alternative)?;
            self.tell(step.thread, made.told);
            return Some(made);
        }
        let mut contents = self.contents(object, it.met.as_ref())?;
        let was = match self.is_known(object) {
            true => weight(&(object, contents.digest())),
            false => Digest::default(),
        };
        let with = (operation, step.alternative);
        let mut made = contents.apply(of, with, |value| known.effect(of, (object, value)))?;
        match operation.kind {
            // What a thread begins with is what its parent gives it.
            OpKind::Spawn { child } => self.tell(child, Digest::of(&before)),
            OpKind::Join { child } => made.told = Digest::of(&self.told(child)),
            _ => {}
        }
        let is = weight(&(object, contents.digest()));
        self.total = changed(self.total, was, is);
        match self.objects.iter_mut().find(|(of, _)| *of == object) {
            Some((_, mine)) => *mine = contents,
            None => self.objects.push((object, contents)),
        }
        self.tell(step.thread, made.told);
        Some(made)
    }

    fn is_known(&self, object: ObjectId) -> bool {
        let mut mine = self.objects.iter();
        mine.any(|(of, _)| *of == object) || self.from.objects.contains_key(&object)
    }

    /// The thread is told this.
    fn tell(&mut self, thread: ThreadId, told: Digest) {
        let before = self.told(thread);
        let after = Digest::of(&(before, told));
        let was = match before == Digest::default() {
            true => Digest::default(),
            false => weight(&(thread, before)),
        };
        self.total = changed(self.total, was, weight(&(thread, after)));
        match self.threads.iter_mut().find(|(of, _)| *of == thread) {
            Some((_, mine)) => *mine = after,
            None => self.threads.push((thread, after)),
        }
    }
}

/// What an object or a thread adds to the digest of a state.
fn weight<T: std::hash::Hash>(part: &T) -> Digest {
    Digest::of(part)
}

fn changed(total: Digest, was: Digest, is: Digest) -> Digest {
    Digest(total.0.wrapping_sub(was.0).wrapping_add(is.0))
}
