//! The files that `init` writes.

/// The cell of a switch, around the cell of this crate, std or core.
macro_rules! cell {
    ($crate_name:literal, $whose:literal) => {
        concat!(
            "/// ",
            $whose,
            r#" cell, with the two methods of dpor's that say how long an access lasts.
#[cfg(not(dpor))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>("#,
            $crate_name,
            r#"::cell::UnsafeCell<T>);

#[cfg(not(dpor))]
impl<T> UnsafeCell<T> {
    #[inline(always)]
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell("#,
            $crate_name,
            r#"::cell::UnsafeCell::new(value))
    }

    /// Reads the value. The pointer is valid for reads until `read` returns.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Writes the value. The pointer is valid for writes until `write` returns.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    #[inline(always)]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
"#,
        )
    };
}

/// The switch of a crate with std.
pub(crate) const SWITCH: &str = concat!(
    r#"//! The primitives that this crate is built on: std's, or dpor's under `--cfg dpor`.
//!
//! Import them from here: `use crate::sync::{Arc, Mutex, atomic::AtomicUsize, thread}`. Plain
//! memory that threads share belongs into `UnsafeCell`: dpor finds data races on it.

// A crate need not use all of it.
#![allow(dead_code, unused_imports)]

#[cfg(dpor)]
pub(crate) use dpor::{cell::UnsafeCell, hint, sync::*, thread};
#[cfg(not(dpor))]
pub(crate) use std::{hint, sync::*, thread};

"#,
    cell!("std", "Std's")
);

/// The switch of a crate without std.
pub(crate) const SWITCH_NO_STD: &str = concat!(
    r#"//! The primitives that this crate is built on: core's, or dpor's under `--cfg dpor`.
//!
//! Import them from here: `use crate::sync::atomic::AtomicUsize`. Plain memory that threads share
//! belongs into `UnsafeCell`: dpor finds data races on it.

// A crate need not use all of it.
#![allow(dead_code, unused_imports)]

#[cfg(not(dpor))]
pub(crate) use core::{hint, sync::atomic};
#[cfg(dpor)]
pub(crate) use dpor::{cell::UnsafeCell, hint, sync::atomic};

"#,
    cell!("core", "Core's")
);

/// The first test.
pub(crate) const TEST: &str = r#"//! Tests under every interleaving: `cargo dpor test`.
#![cfg(dpor)]

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, Ordering};
use dpor::thread;

/// With a `load` and a `store` in place of `fetch_add`, an update is lost.
#[test]
fn no_update_is_lost() {
    dpor::model(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let theirs = counter.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, Ordering::Relaxed));
        counter.fetch_add(1, Ordering::Relaxed);
        other.join().unwrap();
        assert_eq!(counter.load(Ordering::Relaxed), 2);
    });
}
"#;

/// The workflow of a hosted CI. `INSTALL` is the command that installs `cargo dpor`.
pub(crate) const CI: &str = r#"name: dpor
on:
  pull_request:
  push:
    branches: [main]
  schedule:
    - cron: "0 3 * * *"

jobs:
  models:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
      - uses: dtolnay/rust-toolchain@stable
      # Builds under the cfg have a target directory of their own.
      - uses: actions/cache@v4
        with:
          path: |
            ~/.cargo/bin/cargo-dpor
            ~/.cargo/registry
            target/dpor-build
          key: dpor-${{ runner.os }}-${{ hashFiles('**/Cargo.toml', '**/Cargo.lock') }}
          restore-keys: dpor-${{ runner.os }}-
      - run: command -v cargo-dpor || INSTALL
      - if: github.event_name != 'schedule'
        run: cargo dpor test --time 60s
      - if: github.event_name == 'schedule'
        run: cargo dpor test --time 20m --thorough --allow-incomplete
      # The summary, and the page of each failure.
      - uses: actions/upload-artifact@v4
        if: failure()
        with:
          name: dpor
          path: target/dpor
"#;
