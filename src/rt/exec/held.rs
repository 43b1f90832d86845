//! Which data did a critical section find behind its lock, and which data did it leave there? And
//! which data did an access to a cell find and leave?
//!
//! Only the execution that is run to be reported looks at data, so looking costs the exploration
//! nothing. Data is shown if its type is a number, a `bool`, a `char`, a raw pointer, or a short
//! array of numbers: such a value has no padding, and a copy of it runs no code. Of other data
//! behind locks the report tells only whether its bytes are the same.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;

use super::{aside, context};
use crate::rt::event::held::{Datum, Held, When};
use crate::rt::heap::contents;
use crate::rt::rare::rarely;

/// The identity of a type without its lifetimes. A type with the identity of a type that has no
/// lifetimes is that type.
fn identity<T: ?Sized>() -> TypeId {
    trait Identified {
        fn identity(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> Identified for PhantomData<T> {
        fn identity(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let of: &dyn Identified = &PhantomData::<T>;
    // SAFETY: only the bound on the lifetime of the trait object changes, and the reference is not
    // kept. `identity` reads nothing of the type that depends on lifetimes, which exist only while
    // the program is compiled.
    let of = unsafe { std::mem::transmute::<&dyn Identified, &(dyn Identified + 'static)>(of) };
    of.identity()
}

/// A type with values that are shown.
trait Plain: fmt::Debug + Sized + 'static {
    /// The value at this address, if the bytes there are one.
    ///
    /// # Safety
    ///
    /// The memory of the type's size at the address can be read. It need not be initialised.
    unsafe fn at(address: usize) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            impl Plain for $number {
                unsafe fn at(address: usize) -> Option<Self> {
                    // SAFETY: the caller's promise.
                    Some(<$number>::from_ne_bytes(unsafe { contents::bytes(address) }))
                }
            }
        )*
    };
}
numbers!(
    u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64
);

impl Plain for bool {
    unsafe fn at(address: usize) -> Option<bool> {
        // SAFETY: the caller's promise.
        let byte = unsafe { u8::at(address) }?;
        [false, true].get(usize::from(byte)).copied()
    }
}

impl Plain for char {
    unsafe fn at(address: usize) -> Option<char> {
        // SAFETY: the caller's promise.
        char::from_u32(unsafe { u32::at(address) }?)
    }
}

/// The value of a `T` of this size in bytes at this address, if values of `T` are shown.
///
/// # Safety
///
/// The memory can be read. It need not be initialised.
unsafe fn value_at<T: ?Sized>(address: usize, bytes: usize) -> Option<Datum> {
    macro_rules! one_of {
        ($($plain:ty),*) => {
            $(
                // SAFETY: the memory has the size of the type, by the caller's promise.
                let read = |nth: usize| unsafe { <$plain>::at(address + nth * size_of::<$plain>()) };
                if identity::<T>() == TypeId::of::<$plain>() {
                    return Some(Datum::Value(format!("{:?}", read(0)?)));
                }
                if identity::<T>() == TypeId::of::<[$plain; 2]>() {
                    return Some(Datum::Value(format!("{:?}", [read(0)?, read(1)?])));
                }
            )*
        };
    }
    one_of!(
        bool, char, u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64
    );
    // No path begins like the name of a raw pointer. One of this size consists of its address only.
    let name = type_name::<T>();
    let is_pointer = name.starts_with("*const ") || name.starts_with("*mut ");
    if is_pointer && bytes == size_of::<*const ()>() {
        // SAFETY: the caller's promise.
        let pointer = unsafe { usize::at(address) }?;
        return Some(Datum::Pointer(pointer as u64));
    }
    None
}

/// The data, if it has any bytes.
fn datum_of<T: ?Sized>(data: &T) -> Option<Datum> {
    let (address, bytes) = ((&raw const *data).expose_provenance(), size_of_val(data));
    // SAFETY: the memory of a reference can be read.
    let value = unsafe { value_at::<T>(address, bytes) };
    value.or_else(|| {
        // SAFETY: as above.
        let hash = || unsafe { contents::of_bytes(address, bytes) };
        (bytes > 0).then(|| Datum::Bytes(hash()))
    })
}

/// Whether the execution is run to be reported.
#[inline]
pub(crate) fn are_asked_for() -> bool {
    let asked = context::with_any(|runtime| runtime.callers.are_asked_for());
    rarely!(asked == Some(true))
}

/// The data, if the execution is run to be reported: as the program prints it, if `print` does, and
/// otherwise as far as it is known.
#[inline]
pub(crate) fn shown<T: ?Sized>(data: &T, print: impl FnOnce() -> Option<String>) -> Option<Datum> {
    if !are_asked_for() {
        return None;
    }
    if let Some(text) = aside::apart(print).flatten() {
        return Some(Datum::Value(text.replace(['\n', '\t'], " ")));
    }
    // The text of the data is no allocation of the program.
    context::with(|_| datum_of(data)).ok().flatten()
}

/// Notes that the last event of the thread that runs has found or left this data.
#[inline]
pub(crate) fn note(datum: Option<Datum>) {
    if let Some(datum) = datum {
        // The execution may have ended with the event.
        let _ = context::with(|runtime| {
            let thread = runtime.current.get();
            let events = runtime.inner.borrow().driver.machine.events_of(thread);
            if let Some(index) = events.checked_sub(1) {
                runtime.callers.note_held(Held {
                    thread,
                    index,
                    datum,
                });
            }
        });
    }
}

/// The value in a cell of a `T` of this size in bytes at this address, if values of `T` are shown.
///
/// # Safety
///
/// The memory can be read. It need not be initialised.
pub(crate) unsafe fn in_cell<T: ?Sized>(address: usize, bytes: usize) -> Option<Datum> {
    // SAFETY: the caller's promise. The text of the data is no allocation of the program.
    let value = context::with(|_| unsafe { value_at::<T>(address, bytes) });
    value.ok().flatten()
}

/// Notes that the last access of the thread that runs to the memory at this address has found or
/// left this data.
pub(crate) fn note_in_cell(start: usize, when: When, datum: Option<Datum>) {
    if let Some(datum) = datum {
        let _ = context::with(|runtime| {
            let thread = runtime.current.get();
            runtime
                .callers
                .note_touched_data((thread, start), when, datum);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_without_padding_are_shown_and_other_data_by_its_bytes() {
        let value = |text: &str| Some(Datum::Value(text.to_owned()));
        assert_eq!(datum_of(&11_u8), value("11"));
        assert_eq!(datum_of(&-1_i128), value("-1"));
        assert_eq!(datum_of(&true), value("true"));
        assert_eq!(datum_of(&'x'), value("'x'"));
        assert_eq!(datum_of(&0.5), value("0.5"));
        assert_eq!(datum_of(&[1_u16, 2]), value("[1, 2]"));
        let null: *mut String = std::ptr::null_mut();
        assert_eq!(datum_of(&null), Some(Datum::Pointer(0)));
        assert_eq!(datum_of(&()), None);
        // A type of this name is no number.
        #[derive(Clone, Copy)]
        #[expect(non_camel_case_types, reason = "the name is the point")]
        struct u32(#[expect(dead_code, reason = "the bytes are read")] core::primitive::u32);
        assert!(matches!(datum_of(&u32(1)), Some(Datum::Bytes(_))));
        let (one, two) = (datum_of("one"), datum_of("two"));
        assert!(matches!(
            (&one, &two),
            (Some(Datum::Bytes(_)), Some(Datum::Bytes(_)))
        ));
        assert_ne!(one, two);
        let slice: &[std::primitive::u32] = &[1, 2];
        assert!(matches!(datum_of(slice), Some(Datum::Bytes(_))));
    }
}
