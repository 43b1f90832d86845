//! A set with operations that commute if their keys differ.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;

use crate::collections::map::KeyedMap;

/// A set that threads share without a lock of their own: a [`KeyedMap`] without values.
///
/// ```
/// use dpor::collections::KeyedSet;
///
/// let set = KeyedSet::new();
/// assert!(set.insert("a"));
/// assert!(!set.insert("a"));
/// assert_eq!(set.iter().collect::<Vec<_>>(), ["a"]);
/// ```
pub struct KeyedSet<K> {
    map: KeyedMap<K, ()>,
}

impl<K> KeyedSet<K> {
    /// Creates an empty set.
    pub fn new() -> KeyedSet<K> {
        KeyedSet {
            map: KeyedMap::new(),
        }
    }

    /// The address by which the model knows the set.
    pub(crate) fn address(&self) -> usize {
        self.map.address()
    }
}

impl<K: Ord + Hash> KeyedSet<K> {
    /// Whether the set has the key.
    #[track_caller]
    pub fn contains<Q>(&self, at: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        self.map.contains_key(at)
    }

    /// Inserts a key. Returns whether the set did not have it.
    #[track_caller]
    pub fn insert(&self, key: K) -> bool {
        self.map.insert(key, ()).is_none()
    }

    /// Removes a key. Returns whether the set had it.
    #[track_caller]
    pub fn remove<Q>(&self, at: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        self.map.remove(at).is_some()
    }

    /// Returns the number of keys.
    #[track_caller]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the set has no keys.
    #[track_caller]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Removes all keys.
    #[track_caller]
    pub fn clear(&self) {
        self.map.clear();
    }
}

impl<K: Ord + Hash + Clone> KeyedSet<K> {
    /// Returns the keys, in their order, as they are at one moment.
    #[track_caller]
    pub fn iter(&self) -> std::vec::IntoIter<K> {
        self.map.keys().into_iter()
    }
}

impl<K> Default for KeyedSet<K> {
    fn default() -> KeyedSet<K> {
        KeyedSet::new()
    }
}

impl<K> fmt::Debug for KeyedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedSet").finish_non_exhaustive()
    }
}

impl<K: Ord> FromIterator<K> for KeyedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> KeyedSet<K> {
        KeyedSet {
            map: keys.into_iter().map(|key| (key, ())).collect(),
        }
    }
}
