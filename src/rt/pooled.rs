//! Where does a list have its memory from?
//!
//! A short exploration has some fifty lists. To ask the allocator for their memory, to move them whenever they get longer, and
//! to give all of it back takes as long as one or two executions. So a list that is dropped leaves its memory to the next list
//! of such items on its OS thread, which mostly is the same one of the next exploration, and has as much room at once as that
//! one came to need. Its items are dropped like those of any list: nothing but room goes from one exploration to another.

use std::cell::RefCell;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

use rustc_hash::FxHashMap;

/// A list that leaves its memory to another one.
#[derive(Debug)]
pub(crate) struct Pooled<T: Item>(Vec<T>);

/// What may be in such a list. [`pooled!`] says so of a type.
pub(crate) trait Item: Sized + 'static {
    fn pool() -> &'static LocalKey<Pool<Vec<Self>>>;
}

/// A map that leaves its memory to another one.
#[derive(Debug)]
pub(crate) struct PooledMap<K: Key>(FxHashMap<K, K::Value>);

/// What may be a key of such a map, and what it leads to. [`pooled_map!`] says so of a type.
pub(crate) trait Key: Sized + 'static {
    type Value: 'static;

    fn pool() -> &'static LocalKey<Pool<FxHashMap<Self, Self::Value>>>;
}

/// The memory of lists or maps that are gone: they are all empty.
pub(crate) struct Pool<L>(RefCell<Vec<L>>);

/// So many lists of one kind of item leave their memory at most, and each of them so many bytes: as much as small explorations
/// need, so that a large one does not keep the process large.
const LISTS: usize = 32;
const BYTES: usize = 16 << 10;

impl<L> Pool<L> {
    pub(crate) const fn new() -> Pool<L> {
        Pool(RefCell::new(Vec::new()))
    }

    #[inline]
    fn take(&self) -> Option<L> {
        self.0.borrow_mut().pop()
    }

    #[inline]
    fn put(&self, list: L) {
        let mut lists = self.0.borrow_mut();
        if lists.len() < LISTS {
            lists.push(list);
        }
    }
}

impl<T: Item> Default for Pooled<T> {
    /// An empty list.
    #[inline]
    fn default() -> Pooled<T> {
        // An OS thread that ends has no pools any more.
        let list = T::pool().try_with(Pool::take);
        Pooled(list.ok().flatten().unwrap_or_default())
    }
}

impl<T: Item> Pooled<T> {
    /// An empty list with room for so many items.
    #[inline]
    pub(crate) fn with_capacity(items: usize) -> Pooled<T> {
        let mut list = Pooled::default();
        list.reserve_exact(items);
        list
    }
}

impl<T: Item> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        // Before anybody looks into the pool: lists in this one leave their memory, too.
        self.0.clear();
        let bytes = self.0.capacity() * size_of::<T>();
        if (1..=BYTES).contains(&bytes) {
            let list = std::mem::take(&mut self.0);
            // As above.
            let _ = T::pool().try_with(|pool| pool.put(list));
        }
    }
}

impl<T: Item + Clone> Clone for Pooled<T> {
    fn clone(&self) -> Pooled<T> {
        let mut list = Pooled::default();
        list.extend_from_slice(self);
        list
    }
}

impl<T: Item> Deref for Pooled<T> {
    type Target = Vec<T>;

    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Item> DerefMut for Pooled<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<K: Key> Default for PooledMap<K> {
    /// An empty map.
    fn default() -> PooledMap<K> {
        // As above.
        let map = K::pool().try_with(Pool::take);
        PooledMap(map.ok().flatten().unwrap_or_default())
    }
}

impl<K: Key> Drop for PooledMap<K> {
    fn drop(&mut self) {
        let bytes = self.0.capacity() * size_of::<(K, K::Value)>();
        if (1..=BYTES).contains(&bytes) {
            let mut map = std::mem::take(&mut self.0);
            map.clear();
            // As above.
            let _ = K::pool().try_with(|pool| pool.put(map));
        }
    }
}

impl<K: Key + Eq + Hash + Clone> Clone for PooledMap<K>
where
    K::Value: Clone,
{
    fn clone(&self) -> PooledMap<K> {
        let mut map = PooledMap::default();
        map.extend(self.iter().map(|(key, value)| (key.clone(), value.clone())));
        map
    }
}

impl<K: Key> Deref for PooledMap<K> {
    type Target = FxHashMap<K, K::Value>;

    #[inline(always)]
    fn deref(&self) -> &FxHashMap<K, K::Value> {
        &self.0
    }
}

impl<K: Key> DerefMut for PooledMap<K> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut FxHashMap<K, K::Value> {
        &mut self.0
    }
}

/// Lets lists of these types be [`Pooled`].
macro_rules! pooled {
    ($($item:ty),*) => {$(
        impl $crate::rt::pooled::Item for $item {
            fn pool() -> &'static std::thread::LocalKey<$crate::rt::pooled::Pool<Vec<$item>>> {
                use $crate::rt::pooled::Pool;
                thread_local!(static POOL: Pool<Vec<$item>> = const { Pool::new() });
                &POOL
            }
        }
    )*};
}
pub(crate) use pooled;

/// Lets maps from this type to that one be [`PooledMap`]s.
macro_rules! pooled_map {
    ($key:ty => $value:ty) => {
        impl $crate::rt::pooled::Key for $key {
            type Value = $value;

            fn pool() -> &'static std::thread::LocalKey<
                $crate::rt::pooled::Pool<rustc_hash::FxHashMap<$key, $value>>,
            > {
                use $crate::rt::pooled::Pool;
                use rustc_hash::FxHashMap;
                thread_local!(static POOL: Pool<FxHashMap<$key, $value>> = const { Pool::new() });
                &POOL
            }
        }
    };
}
pub(crate) use pooled_map;

pooled!(u32, Pooled<u32>, i32);

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::thread;

    /// Something of which there is a pool for these tests only.
    pub(crate) struct Counted(#[allow(dead_code)] Rc<()>);
    pooled!(Counted, [u8; 1024]);
    pooled_map!(u8 => Counted);

    #[test]
    fn the_next_list_has_the_memory_of_this_one_and_none_of_its_items() {
        let count = Rc::new(());
        let mut list = Pooled::default();
        assert_eq!(list.capacity(), 0);
        list.extend((0..5).map(|_| Counted(count.clone())));
        let (memory, room) = (list.as_ptr(), list.capacity());
        assert_eq!(Rc::strong_count(&count), 6);
        drop(list);
        assert_eq!(Rc::strong_count(&count), 1);
        let (one, another) = (Pooled::<Counted>::default(), Pooled::<Counted>::default());
        assert_eq!((one.as_ptr(), one.capacity(), one.len()), (memory, room, 0));
        assert_eq!((another.capacity(), another.len()), (0, 0));
    }

    #[test]
    fn neither_large_lists_nor_many_leave_their_memory() {
        const MOST: usize = BYTES / 1024;
        drop(Pooled::<[u8; 1024]>::with_capacity(MOST + 1));
        assert_eq!(Pooled::<[u8; 1024]>::default().capacity(), 0);
        let lists = || (0..2 * LISTS).map(|_| Pooled::<[u8; 1024]>::default());
        let roomy = lists().map(|mut list| {
            list.reserve_exact(MOST);
            list
        });
        drop(roomy.collect::<Vec<_>>());
        let again = lists().collect::<Vec<_>>();
        let roomy = again.iter().filter(|list| list.capacity() == MOST);
        assert_eq!(roomy.count(), LISTS);
    }

    #[test]
    fn the_next_map_has_the_memory_of_this_one_and_nothing_else_of_it() {
        let count = Rc::new(());
        let mut map = PooledMap::default();
        assert_eq!(map.capacity(), 0);
        map.extend((0..5_u8).map(|key| (key, Counted(count.clone()))));
        let room = map.capacity();
        drop(map);
        assert_eq!(Rc::strong_count(&count), 1);
        let (one, another) = (PooledMap::<u8>::default(), PooledMap::<u8>::default());
        assert_eq!((one.capacity(), one.len()), (room, 0));
        assert_eq!(another.capacity(), 0);
    }

    #[test]
    fn a_list_may_outlive_the_pools_of_its_os_thread() {
        thread_local!(static LAST: Cell<Option<Pooled<u32>>> = const { Cell::new(None) });
        let ends = thread::spawn(|| {
            // What was used first ends last.
            LAST.set(None);
            drop(Pooled::<u32>::with_capacity(8));
            LAST.set(Some(Pooled::with_capacity(8)));
        });
        assert!(ends.join().is_ok());
    }
}
