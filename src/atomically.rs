//! Several operations as one step.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use self::sealed::Add;
use crate::collections::{KeyedMap, KeyedSet};
use crate::rt::{self, Answer, ObjectKind, Target};
use crate::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8,
    AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Commuting, Number,
};

/// Runs `block` as one step: no other thread runs between its begin and its end.
///
/// The block may touch the objects of its [`Footprint`], and is explored in both orders with an
/// operation that conflicts with one of them: with every operation on an object that the block
/// writes, and with every change of one that it only reads. Two blocks conflict if one writes an
/// object that the other touches. A block over [everything](Footprint::everything) conflicts with
/// all operations on what a block can touch.
///
/// An operation on another object is a failure, and so is one that may change an object that is
/// only read: the message has the places of both. Atomics, locks, [keyed
/// collections](crate::collections) and objects of [`access`](crate::access()) can be declared.
/// A block takes no other step: no spawn, join, park, notification, channel, barrier, one-time
/// initialisation, reference count, fence, spin hint, [`choose`](crate::choose()),
/// [`assume`](crate::assume()), [`stop`](crate::stop()), no read of the clock, and no block within
/// it. A choice commutes with everything, so `choose` before the block explores the same. A lock
/// that the block takes is free again at its end. An operation that would have to wait in the block
/// is a failure, too; the block waits before it begins, for its [condition](Footprint::when).
///
/// Memory in a [`cell`](crate::cell) needs no declaration: blocks that conflict are ordered for
/// plain memory, as by a lock, and what blocks do not order is a data race. A block and a single
/// operation are ordered as the orderings in the block say.
///
/// ```
/// use dpor::sync::Arc;
/// use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use dpor::{Footprint, atomically};
///
/// let report = dpor::Builder::new().check(|| {
///     let accounts = Arc::new([AtomicUsize::new(5), AtomicUsize::new(0), AtomicUsize::new(0)]);
///     let theirs = accounts.clone();
///     let transfer = dpor::thread::spawn(move || {
///         let [from, to, _] = &*theirs;
///         atomically(Footprint::new().writes(from).writes(to), || {
///             from.fetch_sub(1, SeqCst);
///             to.fetch_add(1, SeqCst);
///         });
///     });
///     accounts[2].store(1, SeqCst);
///     let [from, to, _] = &*accounts;
///     let sum = atomically(Footprint::new().reads(from).reads(to), || {
///         from.load(SeqCst) + to.load(SeqCst)
///     });
///     assert_eq!(sum, 5);
///     transfer.join().unwrap();
/// });
/// assert_eq!(report.executions, 2);
/// ```
///
/// # Memory models
///
/// C11 has no step of several accesses, so a model with a block is explored under sequential
/// consistency, also with [`Memory::Auto`](crate::Memory::Auto): the report then says nothing about
/// weak memory. With [`Memory::C11`](crate::Memory::C11) a block is a failure.
///
/// # Outside of a model
///
/// There, blocks exclude each other by one lock of the process, whatever they touch, and exclude
/// nothing else: another thread sees single operations of the block. A crate that is built without
/// `dpor` has to bring the atomicity itself; a block says what is to be checked, and not how it is
/// made.
///
/// # Panics
///
/// If `block` does, or does what no block does. Outside of a model, within another block.
#[track_caller]
pub fn atomically<R>(footprint: Footprint<'_>, mut block: impl FnMut() -> R) -> R {
    loop {
        let step = Step::begin(footprint.targets().as_deref());
        if footprint.when.as_ref().is_none_or(|holds| holds()) {
            let result = block();
            step.end();
            return result;
        }
        step.end();
        rt::hint();
    }
}

/// Adds the objects of the model that a declared object is.
type Declared<'a> = Box<dyn Fn(&mut Add<'_>) + 'a>;

/// The objects that a block of [`atomically`] touches.
#[must_use = "a footprint is for `atomically`"]
pub struct Footprint<'a> {
    /// Each with the answer whether the block may change it; `None` for everything. What is in
    /// their memory is looked up when the block begins.
    objects: Option<Vec<(Declared<'a>, bool)>>,
    when: Option<Box<dyn Fn() -> bool + 'a>>,
}

impl<'a> Footprint<'a> {
    /// Nothing, to be added to.
    pub fn new() -> Footprint<'a> {
        Footprint {
            objects: Some(Vec::new()),
            when: None,
        }
    }

    /// Everything: the block may touch any object that can be declared, and conflicts with all
    /// operations on such objects.
    pub fn everything() -> Footprint<'a> {
        Footprint {
            objects: None,
            when: None,
        }
    }

    /// The block reads this object, and does not change it. A lock cannot be read in this sense:
    /// even a read lock changes it.
    pub fn reads<O: Object + ?Sized>(self, object: &'a O) -> Footprint<'a> {
        self.with(|add| object.each(add), false)
    }

    /// The block may read and change this object.
    pub fn writes<O: Object + ?Sized>(self, object: &'a O) -> Footprint<'a> {
        self.with(|add| object.each(add), true)
    }

    /// The block may access this object, which [`access`](crate::access()) announces.
    pub fn accesses<T: ?Sized>(self, object: &'a T) -> Footprint<'a> {
        let address = (&raw const *object).addr();
        self.with(move |add| (add.0)(opaque(address)), true)
    }

    /// The block waits until `condition` holds, and is one step with the look that finds so.
    ///
    /// The condition is a part of the block: it looks at objects of the footprint, and changes
    /// nothing but them. A look that finds that it does not hold is a step, too; then the thread
    /// waits like a loop with a spin hint, until an object changes that the condition has looked
    /// at.
    pub fn when(mut self, condition: impl Fn() -> bool + 'a) -> Footprint<'a> {
        self.when = Some(Box::new(condition));
        self
    }

    fn with(mut self, declared: impl Fn(&mut Add<'_>) + 'a, writes: bool) -> Footprint<'a> {
        if let Some(objects) = &mut self.objects {
            objects.push((Box::new(declared), writes));
        }
        self
    }

    /// The objects as their memory is now.
    fn targets(&self) -> Option<Vec<(Target, bool)>> {
        let objects = self.objects.as_ref()?;
        let mut targets = Vec::new();
        for (declared, writes) in objects {
            declared(&mut Add(&mut |target| targets.push((target, *writes))));
        }
        Some(targets)
    }
}

impl Default for Footprint<'_> {
    fn default() -> Self {
        Footprint::new()
    }
}

impl fmt::Debug for Footprint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Footprint");
        match &self.objects {
            None => out.field("objects", &"everything"),
            Some(objects) => out.field("objects", &objects.len()),
        };
        out.field("waits", &self.when.is_some()).finish()
    }
}

/// The lock of all blocks outside of models.
static OUTSIDE: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether the thread is in a block outside of models.
    static IS_OUTSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// A block that has begun. It ends when this value is dropped.
struct Step(Option<Outside>);

/// A block outside of models.
struct Outside(#[expect(dead_code, reason = "keeps the lock")] std::sync::MutexGuard<'static, ()>);

impl Drop for Outside {
    fn drop(&mut self) {
        IS_OUTSIDE.set(false);
    }
}

impl Step {
    #[track_caller]
    fn begin(targets: Option<&[(Target, bool)]>) -> Step {
        Step(match rt::begin_block(targets) {
            Answer::Outside => {
                assert!(!IS_OUTSIDE.get(), "`atomically` within another block");
                let all = OUTSIDE.lock().unwrap_or_else(PoisonError::into_inner);
                IS_OUTSIDE.set(true);
                Some(Outside(all))
            }
            Answer::Inert | Answer::Done(_) => None,
        })
    }

    #[track_caller]
    fn end(mut self) {
        if self.0.take().is_none() {
            rt::end_block();
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // The block unwinds, or has ended.
        if self.0.take().is_none() {
            rt::abandon_block();
        }
    }
}

/// An object that a [`Footprint`] can have.
///
/// This trait is sealed. It is implemented for the atomics and locks of this crate, and for its
/// [keyed collections](crate::collections).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be declared in a footprint",
    note = "atomics, `Mutex`, `RwLock`, `KeyedMap` and `KeyedSet` can"
)]
pub trait Object: sealed::Targets {}

impl<O: sealed::Targets + ?Sized> Object for O {}

mod sealed {
    use crate::rt::Target;

    /// Takes the objects of the model.
    pub struct Add<'a>(pub(super) &'a mut dyn FnMut(Target));

    pub trait Targets {
        /// Adds each object of the model that this value is.
        fn each(&self, add: &mut Add<'_>);
    }
}

fn opaque(address: usize) -> Target {
    Target {
        address,
        kind: ObjectKind::Opaque,
        memory: 0,
    }
}

macro_rules! declared {
    ($([$($generics:tt)*] $object:ty: $targets:expr;)*) => {
        $(impl<$($generics)*> sealed::Targets for $object {
            fn each(&self, add: &mut Add<'_>) {
                let targets: fn(&Self, &mut dyn FnMut(Target)) = $targets;
                targets(self, add.0);
            }
        })*
    };
}

declared! {
    [] AtomicBool: |it, add| add(it.target());
    [] AtomicI8: |it, add| add(it.target());
    [] AtomicI16: |it, add| add(it.target());
    [] AtomicI32: |it, add| add(it.target());
    [] AtomicI64: |it, add| add(it.target());
    [] AtomicIsize: |it, add| add(it.target());
    [] AtomicU8: |it, add| add(it.target());
    [] AtomicU16: |it, add| add(it.target());
    [] AtomicU32: |it, add| add(it.target());
    [] AtomicU64: |it, add| add(it.target());
    [] AtomicUsize: |it, add| add(it.target());
    [T] AtomicPtr<T>: |it, add| add(it.target());
    [T: Number] Commuting<T>: |it, add| add(it.target());
    [T: ?Sized] crate::sync::Mutex<T>: |it, add| it.targets().into_iter().for_each(add);
    [T: ?Sized] crate::sync::RwLock<T>: |it, add| it.targets().into_iter().for_each(add);
    [K, V] KeyedMap<K, V>: |it, add| add(opaque(it.address()));
    [K] KeyedSet<K>: |it, add| add(opaque(it.address()));
}
