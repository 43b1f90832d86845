//! Which orderings of the source does an exploration replace?
//!
//! An entry names a place and the ordering that the operations there have instead of the one in the
//! source: `src/queue.rs:30:14:load=Relaxed`. The column and the role may be left out; such an
//! entry is for each operation on the line that can have this ordering. A fence with `none` is left
//! out.

use std::fmt;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::rt::event::Site;
use crate::rt::event::operation::OpKind;

/// Which ordering of an operation it is. The ordering of a compare-exchange that fails is that of
/// its load, the other one that of a read-modify-write; so both loads of a `fetch_update` have one
/// ordering.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Role {
    Store,
    Rmw,
    Load,
    Fence,
}

const ROLES: [(&str, Role); 4] = [
    ("load", Role::Load),
    ("store", Role::Store),
    ("rmw", Role::Rmw),
    ("fence", Role::Fence),
];

/// The word for a fence that is left out.
const NONE: &str = "none";

const ORDERS: [(&str, Option<Ordering>); 6] = [
    (NONE, None),
    ("Relaxed", Some(Relaxed)),
    ("Acquire", Some(Acquire)),
    ("Release", Some(Release)),
    ("AcqRel", Some(AcqRel)),
    ("SeqCst", Some(SeqCst)),
];

/// The word for an ordering, or for a fence that is left out.
pub(crate) fn word(order: Option<Ordering>) -> &'static str {
    let found = ORDERS.iter().find(|(_, known)| *known == order);
    found.map_or("an unknown ordering", |(word, _)| word)
}

impl Role {
    /// The orderings one step weaker. `None` leaves a fence out.
    pub(crate) fn weaker(self, order: Ordering) -> &'static [Option<Ordering>] {
        match (self, order) {
            (Role::Load, SeqCst) => &[Some(Acquire)],
            (Role::Store, SeqCst) => &[Some(Release)],
            (_, SeqCst) => &[Some(AcqRel)],
            (_, AcqRel) => &[Some(Acquire), Some(Release)],
            (Role::Fence, Acquire | Release) => &[None],
            (_, Acquire | Release) => &[Some(Relaxed)],
            _ => &[],
        }
    }

    /// Whether an operation with this role can have this ordering.
    fn admits(self, order: Option<Ordering>) -> bool {
        match (self, order) {
            (Role::Fence, order) => order != Some(Relaxed),
            (_, None) => false,
            (Role::Load, Some(order)) => !matches!(order, Release | AcqRel),
            (Role::Store, Some(order)) => !matches!(order, Acquire | AcqRel),
            (Role::Rmw, Some(_)) => true,
        }
    }
}

/// The ordering of the operations at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: Option<u32>,
    pub(crate) role: Option<Role>,
    /// `None` leaves a fence out.
    pub(crate) order: Option<Ordering>,
}

impl Entry {
    fn parse(text: &str) -> Option<Entry> {
        let (place, order) = text.rsplit_once('=')?;
        let (_, order) = *ORDERS.iter().find(|(word, _)| *word == order.trim())?;
        let mut place = place.trim();
        let mut role = None;
        if let Some((rest, last)) = place.rsplit_once(':')
            && let Some(&(_, named)) = ROLES.iter().find(|(word, _)| *word == last)
        {
            (place, role) = (rest, Some(named));
        }
        let number = |text: &str| text.parse::<u32>().ok();
        let (rest, last) = place.rsplit_once(':')?;
        let last = number(last)?;
        let split = rest.rsplit_once(':');
        let split = split.and_then(|(file, line)| Some((file, number(line)?)));
        let (file, line, column) = match split {
            Some((file, line)) => (file, line, Some(last)),
            None => (rest, last, None),
        };
        let is_fit = role.is_none_or(|role| role.admits(order)) && !file.is_empty();
        is_fit.then(|| Entry {
            file: file.to_owned(),
            line,
            column,
            role,
            order,
        })
    }

    fn is_for(&self, site: Site, role: Role) -> bool {
        self.line == site.line()
            && self.column.is_none_or(|column| column == site.column())
            && self.role.is_none_or(|it| it == role)
            && role.admits(self.order)
            && self.file == site.file()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        if let Some((word, _)) = ROLES.iter().find(|(_, role)| Some(*role) == self.role) {
            write!(f, ":{word}")?;
        }
        write!(f, "={}", word(self.order))
    }
}

/// The orderings that an exploration replaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Weakened(pub(crate) Vec<Entry>);

impl Weakened {
    /// Parses entries with commas between them. An error is what was expected.
    pub(crate) fn parse(text: &str) -> Result<Weakened, String> {
        let entries = text.split(',').filter(|entry| !entry.trim().is_empty());
        let parsed = entries.map(|entry| {
            Entry::parse(entry).ok_or_else(|| {
                format!(
                    "`{}`: expected a place and an ordering that an operation there can have, such as \
                     `src/queue.rs:30=Relaxed`, `src/queue.rs:30:14:load=Acquire` or `src/queue.rs:31=none` (no fence)",
                    entry.trim()
                )
            })
        });
        parsed.collect::<Result<_, _>>().map(Weakened)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ordering that stands in for this one. `None` if the fence is left out.
    fn order(&self, site: Site, role: Role, written: Ordering) -> Option<Ordering> {
        let mut entries = self.0.iter().rev();
        let entry = entries.find(|entry| entry.is_for(site, role));
        entry.map_or(Some(written), |entry| entry.order)
    }

    /// The operation with its orderings replaced.
    pub(crate) fn operation(&self, mut kind: OpKind, site: Site) -> OpKind {
        for (role, order) in orderings(&mut kind).into_iter().flatten() {
            *order = self.order(site, role, *order).unwrap_or(*order);
        }
        kind
    }

    /// The ordering of this fence, if it is not left out.
    pub(crate) fn fence(&self, order: Ordering, site: Site) -> Option<Ordering> {
        self.order(site, Role::Fence, order)
    }
}

/// The orderings of an operation.
pub(crate) fn orderings(kind: &mut OpKind) -> [Option<(Role, &mut Ordering)>; 2] {
    match kind {
        OpKind::Load { order } => [Some((Role::Load, order)), None],
        OpKind::Store { order, .. } => [Some((Role::Store, order)), None],
        OpKind::Rmw { order, .. } => [Some((Role::Rmw, order)), None],
        OpKind::CompareExchange {
            success, failure, ..
        } => [Some((Role::Rmw, success)), Some((Role::Load, failure))],
        _ => [None, None],
    }
}

impl fmt::Display for Weakened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            let before = if index == 0 { "" } else { "," };
            write!(f, "{before}{entry}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    #[test]
    fn an_entry_is_printed_as_it_is_read() {
        for text in [
            "src/queue.rs:30=Relaxed",
            "src/queue.rs:30:14=none",
            "src/queue.rs:30:14:load=Acquire",
            "C:\\queue.rs:30:fence=AcqRel,src/a b.rs:1:2:rmw=Release",
        ] {
            let read = Weakened::parse(text).expect("well formed");
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(Weakened::parse(" ").map(|it| it.is_empty()), Ok(true));
    }

    #[test]
    fn what_no_operation_can_have_is_refused() {
        for text in [
            "src/queue.rs=Relaxed",
            "src/queue.rs:30",
            "src/queue.rs:30=relaxed",
            ":30=Relaxed",
            "src/queue.rs:30:load=Release",
            "src/queue.rs:30:store=Acquire",
            "src/queue.rs:30:rmw=none",
            "src/queue.rs:30:fence=Relaxed",
        ] {
            let error = Weakened::parse(text).expect_err(text);
            assert!(error.starts_with(&format!("`{text}`: expected")), "{error}");
        }
    }

    #[test]
    fn an_entry_is_for_the_operations_at_its_place() {
        let site = Location::caller();
        let (file, line, column) = (site.file(), site.line(), site.column());
        let load = OpKind::Load { order: SeqCst };
        let with = |text: &str| {
            let weakened = Weakened::parse(text).expect("well formed");
            weakened.operation(load, site).ordering(true)
        };
        assert_eq!(with(&format!("{file}:{line}=Relaxed")), Some(Relaxed));
        let exact = format!("{file}:{line}:{column}:load=Acquire");
        assert_eq!(with(&exact), Some(Acquire));
        for other in [
            format!("x{file}:{line}=Relaxed"),
            format!("{file}:{}=Relaxed", line + 1),
            format!("{file}:{line}:{}=Relaxed", column + 1),
            format!("{file}:{line}:rmw=Relaxed"),
            format!("{file}:{line}=Release"),
            format!("{file}:{line}=none"),
        ] {
            assert_eq!(with(&other), Some(SeqCst), "{other}");
        }
    }

    #[test]
    fn steps_lead_down_to_orderings_that_the_operation_can_have() {
        for (_, role) in ROLES {
            let orders = ORDERS.into_iter().map(|(_, order)| order);
            for order in orders.filter(|&order| role.admits(order)).flatten() {
                for weaker in role.weaker(order) {
                    assert!(role.admits(*weaker), "{role:?} {order:?} {weaker:?}");
                }
            }
        }
    }
}
