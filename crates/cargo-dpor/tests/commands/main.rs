//! Do the commands do on fresh crates what they say?
//!
//! The crates lie outside of this repository, and depend on its library by path. All of them share
//! a target directory, so the library is built once for each set of flags.

mod again;
mod flags;
mod init;
mod light;
mod run;
mod support;
