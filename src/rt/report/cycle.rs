//! Which threads of a deadlock wait for each other in a circle?
//!
//! In a circle, each thread waits for an object that the next thread holds or initialises, or for
//! the end of the next thread. No particular thread can end another kind of wait, so the sentence
//! leaves other waits out.

use super::holders::{Way, holders};
use super::view::View;
use super::words::Names;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::Blocked;

/// A thread that waits, and the thread it waits for.
#[derive(Clone, Copy)]
struct Link {
    waits: ThreadId,
    on: ThreadId,
    /// The object that the other thread has, and how; `None` if the wait is for the end of the
    /// other thread.
    has: Option<(ObjectId, Way)>,
}

/// One sentence about the first circle, if there is one.
pub(super) fn sentence(stuck: &[Blocked], view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let links: Vec<Link> = stuck.iter().flat_map(|it| links(it, view)).collect();
    let circle = stuck.iter().find_map(|it| circle(it.thread, &links))?;
    // Each thread of the circle has the object that its predecessor waits for.
    let before = circle.last().into_iter().chain(&circle);
    let alone = circle.len() == 1;
    let told = circle.iter().zip(before).map(|(link, before)| {
        let thread = names.thread(link.waits);
        let has = before.has.map(|(object, way)| {
            let has = match way {
                Way::Initialises => "initialises",
                Way::Holds | Way::Reads | Way::Writes => "holds",
            };
            format!("{has} {} and ", names.object(object))
        });
        let for_what = match link.has {
            Some(_) if alone => "it itself".to_owned(),
            Some((object, _)) => names.object(object),
            None if alone => "its own end".to_owned(),
            None => format!("the end of {}", names.thread(link.on)),
        };
        format!("{thread} {}waits for {for_what}", has.unwrap_or_default())
    });
    Some(told.collect::<Vec<_>>().join(", "))
}

/// The threads that a thread waits for.
fn links(stuck: &Blocked, view: &View<'_>) -> Vec<Link> {
    let Blocked {
        thread: waits,
        operation,
        ..
    } = *stuck;
    if matches!(operation.kind, OpKind::Join { .. }) {
        return match view.machine.names.place(operation.object).region {
            Region::Thread(on) => vec![Link {
                waits,
                on,
                has: None,
            }],
            _ => Vec::new(),
        };
    }
    let holders = holders(view.trace, view.machine, &operation).into_iter();
    let link = holders.map(|holder| Link {
        waits,
        on: holder.thread,
        has: Some((operation.object, holder.way)),
    });
    link.collect()
}

/// The circle through `start`.
fn circle(start: ThreadId, links: &[Link]) -> Option<Vec<Link>> {
    // The search is breadth first from the start: each path continues to threads that no other path
    // has reached.
    let mut ways: Vec<Vec<Link>> = vec![Vec::new()];
    let mut seen = Vec::new();
    while let Some(way) = ways.pop() {
        let end = way.last().map_or(start, |link| link.on);
        let next: Vec<&Link> = links.iter().filter(|link| link.waits == end).collect();
        if let Some(last) = next.iter().find(|link| link.on == start) {
            return Some(way.iter().copied().chain([**last]).collect());
        }
        for link in next {
            if !seen.contains(&link.on) {
                seen.push(link.on);
                ways.push(way.iter().copied().chain([*link]).collect());
            }
        }
    }
    None
}
