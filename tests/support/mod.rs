//! What do several tests explore?

pub mod bugs;
