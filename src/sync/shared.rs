//! A value that threads share, with a state that can be compared.

use std::any::type_name;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::needs_drop;
use std::panic::Location;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::rt::{self, Answer, Digest, Effect, ObjectKind, OpKind, Target, Touch, Update, updates};

/// Value that threads share, and that each of them changes or reads in one step.
///
/// It is a mutex around a `T`, without a guard: [`update`](Shared::update) and
/// [`read`](Shared::read) take a closure. In a model a call is one visible operation, so that no
/// other thread sees the value within it. Outside of a model it is a mutex.
///
/// Under [`Algorithm::FinalStates`](crate::Algorithm::FinalStates) the value is a part of the state
/// of the program: two orders of updates that lead to equal values need one execution. The value is
/// compared by its hash. So that the second order need not be executed, the closure is also tried
/// on copies of values that there have been.
///
/// ```
/// use dpor::{Algorithm, Builder, Shared, Verdict, thread};
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// let mut settings = Builder::new();
/// settings.algorithm = Algorithm::FinalStates;
/// let report = settings.check(|| {
///     let accounts = Arc::new(Shared::new(BTreeMap::new()));
///     let threads: Vec<_> = (0..4)
///         .map(|owner| {
///             let accounts = accounts.clone();
///             thread::spawn(move || accounts.update(move |all| drop(all.insert(owner, 10))))
///         })
///         .collect();
///     threads.into_iter().for_each(|thread| thread.join().unwrap());
///     assert_eq!(accounts.read(|all| all.values().sum::<i32>()), 40);
/// });
/// // Every trace would be 24 executions.
/// assert_eq!((report.executions, report.verdict), (1, Verdict::FinalStates));
/// ```
///
/// # What a closure may do
///
/// A closure must be a function of the value and of what it has captured, and tell its thread
/// nothing but what it returns. It may not share a cell or an atomic with its thread, make no step
/// of a model (that is a panic), and have no other effect. Otherwise final states may be missed. A
/// closure that owns something with a destructor, such as a `String`, is never tried, which may
/// cost executions.
///
/// A `Shared` in a static keeps its value from one execution to the next, which is an error of the
/// test.
pub struct Shared<T> {
    value: Mutex<T>,
    hash: fn(&T, &mut dyn Hasher),
    copy: fn(&T) -> T,
    /// The last update with each tag from each place, in a model.
    commuting: Mutex<Vec<Commuting<T>>>,
}

/// The place of a call.
type Site = &'static Location<'static>;

/// An update that commutes with those of its tag.
struct Commuting<T> {
    tag: u8,
    site: Site,
    update: Box<dyn Fn(&mut T) + Send + Sync>,
}

/// The number of tags.
const TAGS: u8 = 14;

/// The places of two updates and the digest of a value for which both orders were compared.
type Compared = (usize, usize, Digest);

/// The pairs that this process has compared. Behind this number of them no other pair is compared.
const COMPARED_MAX: usize = 100_000;

static COMPARED: LazyLock<Mutex<HashSet<Compared>>> = LazyLock::new(Mutex::default);

impl<T: Clone + Send + 'static> Shared<T> {
    /// Creates a shared value that is compared by its hash.
    ///
    /// Two values with equal hashes count as equal.
    pub fn new(value: T) -> Shared<T>
    where
        T: Hash,
    {
        Shared::hashed_by(value, |value, mut hasher| value.hash(&mut hasher))
    }

    /// Creates a shared value that is compared by what this function hashes of it.
    ///
    /// The function must hash all of the value that a closure can see. Two values for which it
    /// hashes the same count as equal.
    pub fn hashed_by(value: T, hash: fn(&T, &mut dyn Hasher)) -> Shared<T> {
        Shared {
            value: Mutex::new(value),
            hash,
            copy: T::clone,
            commuting: Mutex::default(),
        }
    }

    /// Changes the value in one step.
    ///
    /// # Panics
    ///
    /// If the closure panics, or makes a step of a model.
    #[track_caller]
    pub fn update<R: Hash>(&self, f: impl Fn(&mut T) -> R + Send + Sync + 'static) -> R {
        self.apply(OpKind::Touch(Touch::All), f)
    }

    /// Changes the value in one step that commutes with those of the same tag.
    ///
    /// Two updates with one tag are not ordered by each other: n of them are one execution, and
    /// learn nothing from each other. An update with another tag, [`update`](Shared::update) and
    /// [`read`](Shared::read) are ordered with them. Outside of a model, it is an update like any
    /// other.
    ///
    /// In a model, a call is checked against the last call with the same tag from each place, once
    /// for each value that it may find: both orders are run on copies of the value, and have to
    /// leave values with equal hashes. Behind 100,000 such checks in a process there are no more.
    ///
    /// ```
    /// use dpor::{Builder, Shared, thread};
    /// use std::collections::BTreeSet;
    /// use std::sync::Arc;
    ///
    /// let report = Builder::new().check(|| {
    ///     let seen = Arc::new(Shared::new(BTreeSet::new()));
    ///     let threads: Vec<_> = (0..4)
    ///         .map(|number| {
    ///             let seen = seen.clone();
    ///             let insert = move |all: &mut BTreeSet<u8>| _ = all.insert(number);
    ///             thread::spawn(move || seen.update_commuting(0, insert))
    ///         })
    ///         .collect();
    ///     threads.into_iter().for_each(|thread| thread.join().unwrap());
    ///     assert_eq!(seen.read(|all| all.len()), 4);
    /// });
    /// assert_eq!(report.executions, 1);
    /// ```
    ///
    /// # Panics
    ///
    /// If the tag is 14 or more, if the closure panics or makes a step of a model, or if the two
    /// orders of two updates leave values with different hashes.
    #[track_caller]
    pub fn update_commuting(&self, tag: u8, f: impl Fn(&mut T) + Copy + Send + Sync + 'static) {
        assert!(
            tag < TAGS,
            "tag {tag}: the tags of a `Shared` are below {TAGS}"
        );
        let site = Location::caller();
        if updates::is_in_a_model() {
            self.check_commuting((tag, site), f);
        }
        let against = !(1 << tag);
        let touch = Touch::Declared {
            number: tag,
            against,
        };
        self.apply(OpKind::Touch(touch), f);
    }

    /// Checks the update against the last one with its tag from each place, and keeps it.
    #[track_caller]
    fn check_commuting<F>(&self, (tag, site): (u8, Site), f: F)
    where
        F: Fn(&mut T) + Copy + Send + Sync + 'static,
    {
        let number = |site: Site| std::ptr::from_ref(site).addr();
        let compare = || {
            let mut known = lock(&self.commuting);
            let value = self.locked();
            let digest = |value: &T| Digest::by(|hasher| (self.hash)(value, hasher));
            let now = digest(&value);
            let mut clashes = None;
            for other in known.iter().filter(|other| other.tag == tag) {
                let pair = (number(site), number(other.site), now);
                let mut compared = lock(&COMPARED);
                if compared.len() >= COMPARED_MAX || compared.contains(&pair) {
                    continue;
                }
                let both = |first: &dyn Fn(&mut T), then: &dyn Fn(&mut T)| {
                    let mut copy = (self.copy)(&value);
                    first(&mut copy);
                    then(&mut copy);
                    digest(&copy)
                };
                if both(&f, &other.update) != both(&other.update, &f) {
                    // The execution is repeated for the report, and has to fail again.
                    clashes = Some(other.site);
                    break;
                }
                compared.insert(pair);
            }
            let update = Box::new(f);
            match known
                .iter_mut()
                .find(|it| it.tag == tag && std::ptr::eq(it.site, site))
            {
                Some(it) => it.update = update,
                None => known.push(Commuting { tag, site, update }),
            }
            clashes
        };
        if let Some(Some(other)) = updates::tried(compare) {
            panic!(
                "two updates of a `Shared<{}>` with tag {tag} do not commute: the one at {site} and the one at {other} leave \
                 values with different hashes in the two orders",
                type_name::<T>()
            );
        }
    }

    /// Reads the value in one step.
    ///
    /// # Panics
    ///
    /// If the closure panics, or makes a step of a model.
    #[track_caller]
    pub fn read<R: Hash>(&self, f: impl Fn(&T) -> R + Send + Sync + 'static) -> R {
        self.apply(OpKind::Touch(Touch::ReadAll), move |value| f(value))
    }

    #[track_caller]
    fn apply<F, R>(&self, kind: OpKind, f: F) -> R
    where
        F: Fn(&mut T) -> R + Send + Sync + 'static,
        R: Hash,
    {
        let target = self.target();
        if !updates::are_asked_for() {
            return match rt::perform(target, kind) {
                Answer::Done(_) => f(&mut self.alone()),
                Answer::Outside | Answer::Inert => f(&mut self.locked()),
            };
        }
        let site = Location::caller();
        let now = self.keep();
        if needs_drop::<F>() {
            updates::announce(&target, kind, now, None, site);
            return self.make(&target, &f);
        }
        let (hash, copy) = (self.hash, self.copy);
        let values = updates::values();
        let made = rt::aside(|| {
            let f = Arc::new(f);
            let update = values.map(|values| {
                let f = Arc::clone(&f);
                Update(Arc::new(move |before| {
                    updates::tried(|| {
                        let mut value = updates::kept(&values, before, copy)?;
                        let told = Digest::of(&f(&mut value));
                        let contents = Digest::by(|hasher| hash(&value, hasher));
                        updates::keep(&values, contents, value);
                        Some(Effect { contents, told })
                    })
                    .flatten()
                }))
            });
            (f, update)
        });
        let Some((f, update)) = made else {
            unreachable!("dpor bug: memory was waited for")
        };
        updates::announce(&target, kind, now, update, site);
        self.make(&target, &*f)
    }

    /// Applies the closure that was announced, and reports what it has done.
    #[track_caller]
    fn make<R: Hash>(&self, target: &Target, f: &dyn Fn(&mut T) -> R) -> R {
        let result = f(&mut self.alone());
        let told = Digest::of(&result);
        let contents = self.keep();
        updates::note(target, Effect { contents, told });
        result
    }

    /// Keeps a copy of the value, and returns its digest.
    fn keep(&self) -> Digest {
        let value = self.locked();
        let digest = Digest::by(|hasher| (self.hash)(&value, hasher));
        if let Some(values) = updates::values() {
            rt::aside(|| updates::keep(&values, digest, (self.copy)(&value)));
        }
        digest
    }

    fn target(&self) -> Target {
        Target {
            address: (&raw const self.value).addr(),
            kind: ObjectKind::Opaque,
            memory: 0,
        }
    }

    fn locked(&self) -> MutexGuard<'_, T> {
        lock(&self.value)
    }

    /// The value, in a model. No other thread of the model runs in a step.
    #[track_caller]
    fn alone(&self) -> MutexGuard<'_, T> {
        match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!(
                "a closure for a `Shared<{}>` has made a step: it may touch nothing but its value",
                type_name::<T>()
            ),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Clone + Hash + Send + 'static + Default> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared::new(T::default())
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
