//! `AtomicBool` and `AtomicPtr`, which have methods of their own.

use std::fmt;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::cell::{common, fetch};
use crate::rt::{AtomicType, Rmw};

/// Drop-in replacement for `std::sync::atomic::AtomicBool`.
#[repr(transparent)]
#[derive(Default)]
pub struct AtomicBool(std_atomic::AtomicBool);

impl AtomicBool {
    /// Creates an atomic that holds `value`.
    #[must_use]
    pub const fn new(value: bool) -> Self {
        Self(std_atomic::AtomicBool::new(value))
    }

    common!(
        bool,
        std_atomic::AtomicBool,
        AtomicType::Bool,
        (|value: bool| value as u64)
    );
    fetch! {
        fetch_and And "Logical and";
        fetch_nand Nand "Logical nand";
        fetch_or Or "Logical or";
        fetch_xor Xor "Logical exclusive or";
        => bool, AtomicType::Bool, (|value: bool| value as u64)
    }

    /// Logical not; returns the previous value.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        let make = || self.0.fetch_not(order);
        super::cell::modify(self.target(), AtomicType::Bool, Rmw::Xor, 1, order, make)
    }
}

impl From<bool> for AtomicBool {
    fn from(value: bool) -> Self {
        Self::new(value)
    }
}

/// Prints the value without a visible operation, so that printing does not change the exploration.
impl fmt::Debug for AtomicBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Drop-in replacement for `std::sync::atomic::AtomicPtr`.
#[repr(transparent)]
pub struct AtomicPtr<T>(std_atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    /// Creates an atomic that holds `pointer`.
    pub const fn new(pointer: *mut T) -> Self {
        Self(std_atomic::AtomicPtr::new(pointer))
    }

    common!(
        *mut T,
        std_atomic::AtomicPtr<T>,
        AtomicType::Ptr,
        (|p: *mut T| p.addr() as u64)
    );

    /// Moves the pointer forward by `elements` elements, wrapping around; returns the previous
    /// pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_ptr_add(&self, elements: usize, order: Ordering) -> *mut T {
        self.fetch_byte_add(elements.wrapping_mul(size_of::<T>()), order)
    }

    /// Moves the pointer back by `elements` elements, wrapping around; returns the previous
    /// pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_ptr_sub(&self, elements: usize, order: Ordering) -> *mut T {
        self.fetch_byte_sub(elements.wrapping_mul(size_of::<T>()), order)
    }

    /// Moves the pointer forward by `bytes` bytes, wrapping around; returns the previous pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_byte_add(&self, bytes: usize, order: Ordering) -> *mut T {
        self.fetch(Rmw::Add, bytes, order, |p| p.wrapping_byte_add(bytes))
    }

    /// Moves the pointer back by `bytes` bytes, wrapping around; returns the previous pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_byte_sub(&self, bytes: usize, order: Ordering) -> *mut T {
        self.fetch(Rmw::Sub, bytes, order, |p| p.wrapping_byte_sub(bytes))
    }

    /// Bitwise or with the address; returns the previous pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_or(&self, bits: usize, order: Ordering) -> *mut T {
        self.fetch(Rmw::Or, bits, order, |p| p.map_addr(|a| a | bits))
    }

    /// Bitwise and with the address; returns the previous pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_and(&self, bits: usize, order: Ordering) -> *mut T {
        self.fetch(Rmw::And, bits, order, |p| p.map_addr(|a| a & bits))
    }

    /// Bitwise exclusive or with the address; returns the previous pointer.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub fn fetch_xor(&self, bits: usize, order: Ordering) -> *mut T {
        self.fetch(Rmw::Xor, bits, order, |p| p.map_addr(|a| a ^ bits))
    }

    /// One read-modify-write of the address. `new` computes the new pointer from the previous one,
    /// so that the new pointer has the provenance of the previous one. std's own methods are newer
    /// than the oldest compiler that this crate supports.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    fn fetch(
        &self,
        rmw: Rmw,
        operand: usize,
        order: Ordering,
        new: impl Fn(*mut T) -> *mut T,
    ) -> *mut T {
        let make = || {
            let updated = self
                .0
                .fetch_update(order, Ordering::Relaxed, |p| Some(new(p)));
            match updated {
                Ok(before) | Err(before) => before,
            }
        };
        let operand = operand as u64;
        super::cell::modify(self.target(), AtomicType::Ptr, rmw, operand, order, make)
    }
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

impl<T> From<*mut T> for AtomicPtr<T> {
    fn from(pointer: *mut T) -> Self {
        Self::new(pointer)
    }
}

/// Prints the pointer without a visible operation.
impl<T> fmt::Debug for AtomicPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Prints the pointer without a visible operation.
impl<T> fmt::Pointer for AtomicPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.0, f)
    }
}
