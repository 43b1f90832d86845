//! Collections with operations that commute if their keys differ.
//!
//! A `Mutex<HashMap<K, V>>` has one execution for each order of its critical sections, although two
//! insertions of different keys may be swapped. Each operation of these types is one step, and two
//! steps are explored in both orders only if one may change what the other one finds:
//!
//! | | conflicts with |
//! |---|---|
//! | look at a key: `get`, `contains_key` | change of this key |
//! | `replace` of a key's value | look at this key, change of this key, `iter`, `values` |
//! | `insert`, `remove`, `get_or_insert` of a key | the same, and `len`, `is_empty`, `keys` |
//! | `len`, `is_empty`, `keys` | `insert`, `remove`, `get_or_insert` |
//! | `iter`, `values` | every change |
//! | `clear` | everything |
//!
//! So n threads that insert n different keys have one execution, and not n!.
//!
//! Two operations that conflict are also ordered for plain memory: the later one comes after all
//! that the earlier thread did before, as with a lock for each key.
//!
//! Keys are told apart by 24 bits of their hash. Two keys with the same bits are explored as if
//! they were one, which costs executions and loses none. [`Hash`](std::hash::Hash) must be a
//! function of the key's value, and not of an address.
//!
//! The collections do not tell a loop that polls them when another look would find the same. Such a
//! loop needs a hint, and is explored as one that changes something in each round
//! (`docs/LIMITS.md`).
//!
//! A collection belongs to one execution: make it inside of the model. Outside of a model these are
//! ordinary collections behind a lock. Neither has std a name for them, so a crate that uses them
//! depends on `dpor` in all builds, or swaps them as it swaps the rest.

mod announce;
mod map;
mod set;

pub(crate) use announce::touch;
pub use map::KeyedMap;
pub use set::KeyedSet;
