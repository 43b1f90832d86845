//! What do cells do?

use super::cell::{Cell, LazyCell, OnceCell, RefCell, UnsafeCell};
use super::sync::Arc;
use super::thread;

/// A cell that may be shared because its users wait for each other.
struct Shared(UnsafeCell<Vec<u8>>);

// SAFETY: `cells_lend_pointers` joins the thread that writes before it reads.
unsafe impl Sync for Shared {}

pub fn cells_lend_pointers() -> Vec<String> {
    let shared = Arc::new(Shared(UnsafeCell::new(vec![1])));
    let theirs = shared.clone();
    let writer = thread::spawn(move || {
        // SAFETY: the other thread waits for this one.
        unsafe { (*theirs.0.get()).push(2) };
    });
    writer.join().unwrap();
    // SAFETY: the writer is joined.
    let mut seen = vec![format!("{:?} {:?}", unsafe { &*shared.0.get() }, shared.0)];
    let mut cell = const { UnsafeCell::new(3_u8) };
    *cell.get_mut() += 1;
    let pointer = UnsafeCell::raw_get(&raw const cell);
    // SAFETY: the pointer is to a cell that lives, which nobody else uses.
    unsafe { *pointer += 1 };
    seen.push(format!("{}", cell.into_inner()));
    let mut value = 7_u8;
    *UnsafeCell::from_mut(&mut value).get_mut() += 1;
    seen.push(format!("{value} {}", UnsafeCell::from(9).into_inner()));
    seen.push(format!("{}", UnsafeCell::<u8>::default().into_inner()));
    assert_eq!(size_of::<UnsafeCell<u8>>(), 1);
    let unsized_cell: &UnsafeCell<[u8]> = &UnsafeCell::new([1, 2]);
    seen.push(format!("{}", unsized_cell.get().len()));
    seen
}

pub fn cells_of_one_thread_change_their_values() -> Vec<String> {
    let mut cell = const { Cell::new(1) };
    cell.set(2);
    let mut seen = vec![format!(
        "{} {} {}",
        cell.replace(3),
        cell.take(),
        cell.get()
    )];
    let other = Cell::from(5);
    cell.swap(&other);
    cell.update(|value| value + 1);
    *cell.get_mut() += 1;
    seen.push(format!("{cell:?} {other:?} {}", cell > other));
    seen.push(format!(
        "{:?} {}",
        cell.clone() == cell,
        Cell::<u8>::default().into_inner()
    ));
    let mut array = [1, 2, 3];
    let cells = Cell::from_mut(&mut array[..]).as_slice_of_cells();
    cells[0].swap(&cells[2]);
    seen.push(format!("{array:?}"));
    let array = Cell::new([1_u8, 2]);
    array.as_array_of_cells()[1].set(9);
    // SAFETY: the pointer is to a cell that lives, which nobody else uses.
    seen.push(format!("{:?} {:?}", array.get(), unsafe {
        *array.as_ptr()
    }));
    seen
}

pub fn the_other_cells_are_there() -> Vec<String> {
    let cell = RefCell::new(1);
    let borrowed = cell.borrow();
    let mut seen = vec![format!("{:?} {:?}", cell.try_borrow_mut().err(), *borrowed)];
    let once = OnceCell::new();
    let lazy = LazyCell::new(|| 4);
    seen.push(format!("{} {}", once.get_or_init(|| 3), *lazy));
    seen
}
