//! Does a free come after every use of its block for a reason that no event shows?
//!
//! A counter of owners that is not a shim's orders the free behind all uses, and no event shows it.

use std::backtrace::Backtrace;

use crate::rt::event::Site;
use crate::rt::event::verdict::{Access, Block, DataRace, Effect};
use crate::rt::heap::Watched;

/// A free that comes after every use of its block, for a reason that no event shows. Mostly the
/// last of several owners makes the free, and an `Arc` of std counts the owners. Many programs have
/// such an `Arc` after their imports are swapped: a `Waker` needs one.
///
/// When such a free happens it cannot be told apart from another one. So it is recognised by the
/// place where it was seen before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SuppressedRaces {
    /// The site of the use that the free comes after.
    used: Site,
    /// The last operation of the freeing thread before the free.
    before: Site,
    /// The size of the block in bytes, or 0 if it is a stack.
    size: usize,
}

/// The frees that are no races with earlier accesses.
#[derive(Clone, Debug)]
pub(crate) enum InOrder {
    These(Vec<SuppressedRaces>),
    /// All frees: only uses of memory that is gone are reported.
    All,
}

impl InOrder {
    /// Whether the second access is one of these frees, behind the first one.
    pub(crate) fn has(&self, used: Site, second: &Access, block: Option<Block>) -> bool {
        match self {
            InOrder::These(frees) => {
                let free = SuppressedRaces::at(used, second, block);
                free.is_some_and(|free| frees.contains(&free))
            }
            InOrder::All => true,
        }
    }
}

impl SuppressedRaces {
    /// The last operation of the freeing thread before the free.
    pub(crate) fn site(&self) -> Site {
        self.before
    }

    /// The free that is the second of the two accesses, if it is one.
    pub(crate) fn of(race: &DataRace) -> Option<SuppressedRaces> {
        SuppressedRaces::at(race.first.site, &race.second, race.block)
    }

    /// The free that is the second access, if it is one, of this block, behind a use at the site
    /// `used`.
    fn at(used: Site, second: &Access, block: Option<Block>) -> Option<SuppressedRaces> {
        let size = match second.effect {
            Effect::Free => block?.size,
            Effect::End => 0,
            _ => return None,
        };
        Some(SuppressedRaces {
            used,
            before: second.site,
            size,
        })
    }

    /// Whether this block was freed by the last `Arc` or `Rc` of std, directly or with the value
    /// that it owned. If `are_seen` returns true for a block, the model sees the counts in the
    /// block, and these counts are not std's: an `Arc` of the program's own begins with the same
    /// two counts, and the model knows the order that they establish.
    pub(crate) fn is((name, block): (&Block, &Watched), are_seen: impl Fn(&Block) -> bool) -> bool {
        block.was_counted_down() && !are_seen(name)
            || block.freed_with().any(|owner| !are_seen(owner))
            || block.freed.as_ref().is_some_and(within_last_drop)
    }
}

/// Whether this backtrace is within the drop of the value that the last `Arc` or `Rc` of std has
/// owned. The block of the `Arc` itself is freed behind that, where optimised code has left the
/// function.
fn within_last_drop(trace: &Backtrace) -> bool {
    is_within_last_drop(&trace.to_string())
}

/// [`within_last_drop`] for the text of the backtrace. The text has the full path of a function if
/// only its symbol is known. Otherwise the text may have its name alone, and its file on the next
/// line.
fn is_within_last_drop(text: &str) -> bool {
    // The thread that does a job, or the thread that has joined that thread, drops the values that
    // the job holds.
    let is_left = |line: &str| {
        line.contains("dpor::thread::job") || line.replace('\\', "/").contains("/thread/job.rs:")
    };
    let mut drops_slowly = false;
    for line in text.lines().take_while(|line| !is_left(line)) {
        let line = line.trim_start();
        if let Some(place) = line.strip_prefix("at ") {
            let place = place.replace('\\', "/");
            let files = ["/alloc/src/sync.rs:", "/alloc/src/rc.rs:"];
            if drops_slowly && files.iter().any(|file| place.contains(file)) {
                return true;
            }
            continue;
        }
        let name = line.trim_start_matches(|c: char| !c.is_alphabetic());
        let owners = ["alloc::sync::Arc<", "alloc::rc::Rc<"];
        if owners.iter().any(|owner| name.starts_with(owner)) && name.contains("::drop_slow") {
            return true;
        }
        drops_slowly = name.starts_with("drop_slow<") || name == "drop_slow";
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_drop_is_known_by_a_path_and_by_a_name_with_its_file() {
        let by_path = "   3: alloc::sync::Arc<T,A>::drop_slow\n";
        let by_path_of_its_own = "   3: <alloc::rc::Rc<alloc::vec::Vec<u8>>>::drop_slow\n";
        let by_file = "   3: drop_slow<alloc::vec::Vec<u8>, alloc::alloc::Global>\n             \
                       at /rustc/59807616e1fa/library/alloc/src/sync.rs:2058:18\n";
        for text in [by_path, by_path_of_its_own, by_file] {
            assert!(is_within_last_drop(text), "{text}");
            let left = "   2: dpor::thread::job::run\n";
            assert!(!is_within_last_drop(&format!("{left}{text}")), "{text}");
        }
        let of_another = "   3: drop_slow<u8>\n             at ./src/sync.rs:7:1\n";
        assert!(!is_within_last_drop(of_another));
        assert!(!is_within_last_drop("   3: drop<alloc::sync::Arc<u8>>\n"));
    }
}
