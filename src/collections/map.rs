//! A map with operations that commute if their keys differ.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::collections::announce::{key, touch};
use crate::rt::Touch;

/// A map that threads share without a lock of their own.
///
/// [The table](crate::collections) says which operations conflict. Values are handed out as clones;
/// a value that threads change in place is an `Arc` of something that may be shared.
///
/// ```
/// use dpor::collections::KeyedMap;
/// use dpor::sync::Arc;
/// use dpor::thread;
///
/// let report = dpor::Builder::new().check(|| {
///     let map = Arc::new(KeyedMap::new());
///     let threads: Vec<_> = (0..3)
///         .map(|key| {
///             let map = map.clone();
///             thread::spawn(move || map.insert(key, "value"))
///         })
///         .collect();
///     for thread in threads {
///         thread.join().unwrap();
///     }
///     assert_eq!(map.len(), 3);
/// });
/// assert_eq!(report.executions, 1);
/// ```
pub struct KeyedMap<K, V> {
    /// Sorted, so that an iteration does not depend on the order of insertions. A value is cloned
    /// outside of the lock: its `clone` may be an operation of the model, at which another thread
    /// runs.
    entries: Mutex<BTreeMap<K, Arc<V>>>,
}

impl<K, V> KeyedMap<K, V> {
    /// Creates an empty map.
    pub fn new() -> KeyedMap<K, V> {
        KeyedMap {
            entries: Mutex::new(BTreeMap::new()),
        }
    }

    /// The address by which the model knows the map.
    pub(crate) fn address(&self) -> usize {
        (&raw const *self).addr()
    }

    /// Announces the operation, and returns the entries when it happens. The guard must be gone
    /// before any code of the keys' or values' types but comparisons runs.
    #[track_caller]
    fn when_it_happens(&self, how: Touch) -> MutexGuard<'_, BTreeMap<K, Arc<V>>> {
        touch(self.address(), how);
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value itself, if the map had the only reference, and otherwise a clone.
fn taken<V: Clone>(value: Arc<V>) -> V {
    Arc::try_unwrap(value).unwrap_or_else(|shared| (*shared).clone())
}

impl<K: Ord + Hash, V: Clone> KeyedMap<K, V> {
    /// Returns the value of a key.
    #[track_caller]
    pub fn get<Q>(&self, at: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        let found = self
            .when_it_happens(Touch::KeyRead(key(at)))
            .get(at)
            .cloned();
        found.map(taken)
    }

    /// Whether the map has the key.
    #[track_caller]
    pub fn contains_key<Q>(&self, at: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        self.when_it_happens(Touch::KeyRead(key(at)))
            .contains_key(at)
    }

    /// Inserts a value, and returns the one that the key had.
    #[track_caller]
    pub fn insert(&self, at: K, value: V) -> Option<V> {
        let value = Arc::new(value);
        let before = self
            .when_it_happens(Touch::KeyShape(key(&at)))
            .insert(at, value);
        before.map(taken)
    }

    /// Returns the value of a key, after inserting this one if the key has none.
    #[track_caller]
    pub fn get_or_insert(&self, at: K, value: V) -> V {
        let value = Arc::new(value);
        let found = self
            .when_it_happens(Touch::KeyShape(key(&at)))
            .entry(at)
            .or_insert_with(|| value.clone())
            .clone();
        drop(value);
        taken(found)
    }

    /// Replaces the value of a key that has one, and returns that one. If the key has none, nothing
    /// is inserted, and the result is `None`.
    #[track_caller]
    pub fn replace<Q>(&self, at: &Q, value: V) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        let value = Arc::new(value);
        let mut entries = self.when_it_happens(Touch::KeyWrite(key(at)));
        let before = (entries.get_mut(at)).map(|entry| std::mem::replace(entry, value.clone()));
        drop(entries);
        before.map(taken)
    }

    /// Removes a key, and returns its value.
    #[track_caller]
    pub fn remove<Q>(&self, at: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        let before = self.when_it_happens(Touch::KeyShape(key(at))).remove(at);
        before.map(taken)
    }

    /// Returns the number of keys.
    #[track_caller]
    pub fn len(&self) -> usize {
        self.when_it_happens(Touch::ReadKeys).len()
    }

    /// Whether the map has no keys.
    #[track_caller]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all keys.
    #[track_caller]
    pub fn clear(&self) {
        let before = std::mem::take(&mut *self.when_it_happens(Touch::All));
        drop(before);
    }

    /// Returns the values, in the order of their keys.
    #[track_caller]
    pub fn values(&self) -> Vec<V> {
        let found: Vec<Arc<V>> = self
            .when_it_happens(Touch::ReadAll)
            .values()
            .cloned()
            .collect();
        found.into_iter().map(taken).collect()
    }
}

impl<K: Ord + Hash + Clone, V: Clone> KeyedMap<K, V> {
    /// Returns the keys, in their order.
    #[track_caller]
    pub fn keys(&self) -> Vec<K> {
        self.when_it_happens(Touch::ReadKeys)
            .keys()
            .cloned()
            .collect()
    }

    /// Returns all keys with their values, in the order of the keys, as they are at one moment.
    #[track_caller]
    pub fn iter(&self) -> std::vec::IntoIter<(K, V)> {
        let found: Vec<(K, Arc<V>)> = self
            .when_it_happens(Touch::ReadAll)
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let all: Vec<(K, V)> = found
            .into_iter()
            .map(|(key, value)| (key, taken(value)))
            .collect();
        all.into_iter()
    }
}

impl<K, V> Default for KeyedMap<K, V> {
    fn default() -> KeyedMap<K, V> {
        KeyedMap::new()
    }
}

impl<K, V> fmt::Debug for KeyedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To show the contents would be an operation.
        f.debug_struct("KeyedMap").finish_non_exhaustive()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for KeyedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> KeyedMap<K, V> {
        let entries = entries.into_iter();
        KeyedMap {
            entries: Mutex::new(entries.map(|(key, value)| (key, Arc::new(value))).collect()),
        }
    }
}
