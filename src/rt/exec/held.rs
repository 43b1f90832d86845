//! Which data did a critical section find behind its lock, and which data did it leave there?
//!
//! Only the execution that is run to be reported looks at data, so looking costs the exploration
//! nothing. Data is shown if its type is a number, a `bool`, a `char`, a raw pointer, or a short
//! array of numbers: all bytes of such a value are initialised, and a copy of it runs no code. Of
//! other data the report tells only whether its bytes are the same.

use std::any::{TypeId, type_name};
use std::marker::PhantomData;

use super::{aside, context};
use crate::rt::event::held::{Datum, Held};
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

/// The data, if it has any bytes.
fn datum_of<T: ?Sized>(data: &T) -> Option<Datum> {
    let bytes = size_of_val(data);
    let address = (&raw const *data).cast::<()>();
    macro_rules! one_of {
            ($($plain:ty),*) => {
                $(
                    if identity::<T>() == TypeId::of::<$plain>() {
                        // SAFETY: the type of the data is this one, which is `Copy`.
                        return Some(Datum::Value(format!("{:?}", unsafe { *address.cast::<$plain>() })));
                    }
                    if identity::<T>() == TypeId::of::<[$plain; 2]>() {
                        // SAFETY: as above.
                        return Some(Datum::Value(format!("{:?}", unsafe { *address.cast::<[$plain; 2]>() })));
                    }
                )*
            };
        }
    one_of!(
        bool, char, u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64
    );
    let name = type_name::<T>();
    let is_pointer = name.starts_with("*const ") || name.starts_with("*mut ");
    if is_pointer && bytes == size_of::<*const ()>() {
        // SAFETY: no path begins like the name of a raw pointer, and this one consists of its
        // address only.
        let pointer = unsafe { *address.cast::<*const ()>() };
        return Some(Datum::Pointer(pointer.addr() as u64));
    }
    // SAFETY: the memory of a reference can be read.
    let hash = || unsafe { contents::of_bytes(address.expose_provenance(), bytes) };
    (bytes > 0).then(|| Datum::Bytes(hash()))
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
