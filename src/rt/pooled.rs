//! Where does an exploration get its memory from?
//!
//! A short exploration has some sixty lists, and lists of lists. To allocate their memory, to move
//! them whenever they grow, and to free all of it takes as long as one or two executions. So a list
//! that is dropped leaves its memory to the next one of its kind on its OS thread, usually that of
//! the next exploration, which thus begins with the room that the earlier one needed. Only room
//! passes from one exploration to another: the contents are removed before.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

use rustc_hash::FxHashMap;

use crate::rt::rare::{Roomy, cold_path, mostly, rarely};

/// A value that leaves its memory to another one of its kind.
#[derive(Debug)]
pub(crate) struct Pooled<T: Kind>(ManuallyDrop<T>);

/// A value that can be emptied.
pub(crate) trait Empty {
    /// Makes the value like a new one except for its room. The room is limited to the needs of
    /// small explorations: a large exploration does not keep the process large.
    fn empty(&mut self);

    /// Whether the value has any room.
    #[inline]
    fn has_room(&self) -> bool {
        true
    }
}

/// A type with a pool, which [`pooled!`] declares.
pub(crate) trait Kind: Empty + Default + 'static {
    fn pool() -> &'static LocalKey<Pool<Self>>;
}

/// The values that were left: all of them are empty.
pub(crate) struct Pool<T>(RefCell<Vec<T>>);

/// The number of values of one kind that leave their memory at most; each of their lists leaves at
/// most this number of bytes.
const MOST: usize = 32;
const BYTES: usize = 16 << 10;

/// The number of rows of a table that stay.
const ROWS: usize = 16;

impl<T> Pool<T> {
    pub(crate) const fn new() -> Pool<T> {
        Pool(RefCell::new(Vec::new()))
    }

    #[inline]
    fn take(&self) -> Option<T> {
        self.0.borrow_mut().pop()
    }

    #[inline]
    fn put(&self, it: T) {
        let mut all = self.0.borrow_mut();
        if mostly!(all.len() < MOST) {
            all.put(it);
        }
    }
}

impl<T: Kind> Default for Pooled<T> {
    /// An empty value.
    #[inline]
    fn default() -> Pooled<T> {
        // An OS thread that ends has no pools any more.
        let left = match T::pool().try_with(Pool::take) {
            Ok(Some(left)) => left,
            _ => {
                cold_path();
                T::default()
            }
        };
        left.into()
    }
}

impl<T: Kind> From<T> for Pooled<T> {
    /// From now on the value leaves its memory.
    #[inline]
    fn from(it: T) -> Pooled<T> {
        Pooled(ManuallyDrop::new(it))
    }
}

impl<T: Kind> Pooled<T> {
    /// The value, which no longer leaves its memory.
    pub(crate) fn into_inner(self) -> T {
        let mut it = ManuallyDrop::new(self);
        // SAFETY: `it` is not dropped, and no code uses it after this.
        unsafe { ManuallyDrop::take(&mut it.0) }
    }
}

impl<T: Kind> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: no code uses the value after this.
        let mut it = unsafe { ManuallyDrop::take(&mut self.0) };
        if mostly!(it.has_room()) {
            // The value is emptied before the pool is borrowed: its contents may leave their
            // memory, too.
            it.empty();
            // As above.
            let _ = T::pool().try_with(|pool| pool.put(it));
        }
    }
}

impl<T: Kind> Deref for Pooled<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Kind> DerefMut for Pooled<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Empty for Vec<T> {
    #[inline]
    fn empty(&mut self) {
        self.clear();
        if rarely!(self.capacity() * size_of::<T>() > BYTES) {
            renew(self);
        }
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.capacity() > 0
    }
}

impl<K, V> Empty for FxHashMap<K, V> {
    #[inline]
    fn empty(&mut self) {
        if rarely!(self.capacity() * size_of::<(K, V)>() > BYTES) {
            renew(self);
        }
        self.clear();
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.capacity() > 0
    }
}

impl<T> Empty for Option<T> {
    #[inline]
    fn empty(&mut self) {
        if rarely!(self.is_some()) {
            renew(self);
        }
    }
}

impl<T: Empty> Empty for Box<T> {
    #[inline]
    fn empty(&mut self) {
        (**self).empty();
    }

    #[inline]
    fn has_room(&self) -> bool {
        (**self).has_room()
    }
}

/// Frees the memory of the value.
#[cold]
#[inline(never)]
fn renew<T: Default>(it: &mut T) {
    *it = T::default();
}

/// Empties the rows of a table that is indexed by names. The first rows stay: an empty row must be
/// equivalent to a missing one.
pub(crate) fn empty_rows<T: Empty>(rows: &mut Vec<T>) {
    rows.truncate(ROWS);
    rows.iter_mut().for_each(T::empty);
}

/// Lets values of these types be [`Pooled`].
macro_rules! pooled {
    ($($kind:ty),*) => {$(
        impl $crate::rt::pooled::Kind for $kind {
            fn pool() -> &'static std::thread::LocalKey<$crate::rt::pooled::Pool<$kind>> {
                use $crate::rt::pooled::Pool;
                thread_local!(static POOL: Pool<$kind> = const { Pool::new() });
                &POOL
            }
        }
    )*};
}
pub(crate) use pooled;

pooled!(Vec<u32>);

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::thread;

    /// A type with a pool for these tests only.
    pub(crate) struct Counted(#[allow(dead_code)] Rc<()>);
    pooled!(Vec<Counted>, Vec<[u8; 1024]>, FxHashMap<u8, Counted>);

    #[test]
    fn the_next_list_has_the_memory_of_this_one_and_none_of_its_items() {
        let count = Rc::new(());
        let mut list = Pooled::<Vec<_>>::default();
        assert_eq!(list.capacity(), 0);
        list.extend((0..5).map(|_| Counted(count.clone())));
        let (memory, room) = (list.as_ptr(), list.capacity());
        assert_eq!(Rc::strong_count(&count), 6);
        drop(list);
        assert_eq!(Rc::strong_count(&count), 1);
        let (one, another) = (
            Pooled::<Vec<Counted>>::default(),
            Pooled::<Vec<Counted>>::default(),
        );
        assert_eq!((one.as_ptr(), one.capacity(), one.len()), (memory, room, 0));
        assert_eq!((another.capacity(), another.len()), (0, 0));
    }

    #[test]
    fn neither_large_lists_nor_many_leave_their_memory() {
        const ITEMS: usize = BYTES / 1024;
        drop(Pooled::from(Vec::<[u8; 1024]>::with_capacity(ITEMS + 1)));
        assert_eq!(Pooled::<Vec<[u8; 1024]>>::default().capacity(), 0);
        let lists = || (0..2 * MOST).map(|_| Pooled::<Vec<[u8; 1024]>>::default());
        let roomy = lists().map(|mut list| {
            list.reserve_exact(ITEMS);
            list
        });
        drop(roomy.collect::<Vec<_>>());
        let again = lists().collect::<Vec<_>>();
        let roomy = again.iter().filter(|list| list.capacity() == ITEMS);
        assert_eq!(roomy.count(), MOST);
    }

    #[test]
    fn the_next_map_has_the_memory_of_this_one_and_nothing_else_of_it() {
        let count = Rc::new(());
        let mut map = Pooled::<FxHashMap<_, _>>::default();
        assert_eq!(map.capacity(), 0);
        map.extend((0..5_u8).map(|key| (key, Counted(count.clone()))));
        let room = map.capacity();
        drop(map);
        assert_eq!(Rc::strong_count(&count), 1);
        let (one, another) = (
            Pooled::<FxHashMap<u8, Counted>>::default(),
            Pooled::<FxHashMap<u8, Counted>>::default(),
        );
        assert_eq!((one.capacity(), one.len()), (room, 0));
        assert_eq!(another.capacity(), 0);
    }

    #[test]
    fn few_rows_of_a_table_stay_and_none_that_is_large() {
        let row = |row: usize| Vec::<u8>::with_capacity(if row == 1 { BYTES + 1 } else { 5 });
        let mut rows: Vec<_> = (0..2 * ROWS).map(row).collect();
        rows.iter_mut().for_each(|row| row.push(7));
        empty_rows(&mut rows);
        let rooms: Vec<_> = rows.iter().map(Vec::capacity).collect();
        assert!(rows.iter().all(Vec::is_empty));
        assert_eq!(rooms, [vec![5, 0], vec![5; ROWS - 2]].concat());
    }

    #[test]
    fn a_list_may_outlive_the_pools_of_its_os_thread() {
        thread_local!(static LAST: Cell<Option<Pooled<Vec<u32>>>> = const { Cell::new(None) });
        let ends = thread::spawn(|| {
            // The thread-local that was used first is destroyed last.
            LAST.set(None);
            drop(Pooled::from(Vec::<u32>::with_capacity(8)));
            LAST.set(Some(Vec::with_capacity(8).into()));
        });
        assert!(ends.join().is_ok());
    }
}
