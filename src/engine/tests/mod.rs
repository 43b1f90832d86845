//! Does the engine explore by its public calls what it explores inside, and does it refuse wrong
//! calls?

mod client;
mod misuse;
mod page;
mod random;
