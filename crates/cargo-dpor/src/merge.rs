//! `cargo dpor merge`: adds up the parts of explorations, and says whether they are all.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::Exit;
use crate::cli;
use crate::summary::{self, Line};

/// The parts of the models at one place.
struct Place {
    /// Each part once, by its number.
    parts: BTreeMap<usize, Line>,
    of: usize,
}

/// What all parts of a place are together.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    executions: u64,
    pruned: u64,
    events: u64,
    outcomes: BTreeMap<String, u64>,
    /// Why the space is not covered.
    gaps: Vec<String>,
    /// The first failure.
    failed: Option<String>,
}

pub(crate) fn merge(arguments: &cli::Merge) -> Result<Exit> {
    let mut lines = Vec::new();
    for file in &arguments.files {
        let name = file.display();
        ensure!(file.exists(), "{name}: there is no such file");
        let (more, warnings) = summary::read(file)?;
        for warning in warnings {
            say!("warning: {warning}");
        }
        for line in &more {
            ensure!(
                line.shard.as_deref().and_then(part).is_some(),
                "{name}: {} is no part of an exploration: was DPOR_SHARD set (`cargo dpor test --shard`)?",
                line.name()
            );
        }
        lines.extend(more);
    }
    let places = places(lines)?;
    let (mut failed, mut gaps) = (0, 0);
    for place in &places {
        let sum = place.sum();
        tell(place, &sum);
        failed += usize::from(sum.failed.is_some());
        gaps += usize::from(!sum.gaps.is_empty());
    }
    Ok(if places.is_empty() {
        say!("no model: the files have no lines");
        Exit::NoModel
    } else if failed > 0 {
        Exit::Failed
    } else if gaps > 0 {
        say!();
        say!("not all was explored: run the parts that are named again, with the same program");
        Exit::NotInFull
    } else {
        say!();
        say!("all parts are there, and every model was explored in full");
        Exit::Success
    })
}

/// Parses `3/8`.
pub(crate) fn part(text: &str) -> Option<(usize, usize)> {
    let (index, of) = text.split_once('/')?;
    let (index, of) = (index.trim().parse().ok()?, of.trim().parse().ok()?);
    (1..=of).contains(&index).then_some((index, of))
}

/// The places, in the order of the first lines.
fn places(lines: Vec<Line>) -> Result<Vec<Place>> {
    let mut places: Vec<Place> = Vec::new();
    for line in lines {
        let shard = line.shard.as_deref().unwrap_or_default();
        let Some((index, of)) = part(shard) else {
            continue;
        };
        let known = places.iter_mut().find(|place| {
            let mut parts = place.parts.values();
            parts.any(|known| known.key() == line.key())
        });
        let place = match known {
            Some(place) => place,
            None => {
                places.push(Place {
                    parts: BTreeMap::new(),
                    of,
                });
                places.last_mut().expect("it was pushed")
            }
        };
        ensure!(
            place.of == of,
            "{}: there are parts of {} and of {of}; all parts must be of one number",
            line.name(),
            place.of
        );
        let name = line.name().to_owned();
        let twice = place.parts.insert(index, line);
        ensure!(
            twice.is_none(),
            "{name}: the part {index}/{of} is there twice"
        );
    }
    Ok(places)
}

impl Place {
    fn sum(&self) -> Sum {
        let of = self.of;
        let mut sum = Sum::default();
        for (index, line) in &self.parts {
            if line.verdicts.contains_key("failed") {
                let reason = line.reason.as_deref().unwrap_or("failed");
                let told = format!("part {index}/{of}: {reason}");
                sum.failed.get_or_insert(told);
            } else if line.other_verdicts(&["complete", "shard"]) > 0 {
                let reason = line.reason.as_deref().unwrap_or("something was left out");
                sum.gaps.push(format!("part {index}/{of}: {reason}"));
            }
            if line.weak.0.contains_key("possible") {
                sum.gaps.push(format!(
                    "part {index}/{of}: weak behaviour is possible, and was not explored (DPOR_MEMORY=c11)"
                ));
            }
        }
        // Each process has explored these models in full.
        let whole = |line: &Line| line.models - line.parts.models.min(line.models);
        let most = self.parts.values().max_by_key(|line| whole(line));
        let Some(most) = most else { return sum };
        sum.executions = most.executions - most.parts.executions.min(most.executions);
        sum.pruned = most.pruned - most.parts.pruned.min(most.pruned);
        sum.events = most.events - most.parts.events.min(most.events);
        // A process that has learnt something later than the others has explored all by itself.
        let counts: BTreeSet<u64> = self.parts.values().map(whole).collect();
        if counts.len() > 1 && most.parts.models == 0 {
            return sum;
        }
        let is_whole = |line: &Line| line.parts.models == 0;
        for index in (1..=of).filter(|index| !self.parts.contains_key(index)) {
            // One process is enough where each explores everything.
            if !self.parts.values().all(is_whole) {
                sum.gaps.push(format!("part {index}/{of} is missing"));
            }
        }
        for line in self.parts.values() {
            sum.executions += line.parts.executions;
            sum.pruned += line.parts.pruned;
            sum.events += line.parts.events;
            for (outcome, executions) in &line.parts.outcomes {
                *sum.outcomes.entry(outcome.clone()).or_default() += executions;
            }
        }
        sum
    }
}

fn tell(place: &Place, sum: &Sum) {
    let Some(line) = place.parts.values().next() else {
        return;
    };
    let verdict = match (&sum.failed, sum.gaps.is_empty()) {
        (Some(_), _) => "failed",
        (None, true) => "complete",
        (None, false) => "not in full",
    };
    say!(
        "{}: {verdict}, {} executions, {} pruned, {} events",
        line.name(),
        sum.executions,
        sum.pruned,
        sum.events
    );
    for text in sum.failed.iter().chain(&sum.gaps) {
        say!("  {text}");
    }
    for (outcome, executions) in &sum.outcomes {
        say!("  {executions} times {outcome}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of a part with so many executions, of a model that has parts, or that has none.
    fn line(shard: &str, executions: u64, has_parts: bool) -> Line {
        let own = if has_parts { executions } else { 0 };
        let verdict = if has_parts { "shard" } else { "complete" };
        let text = format!(
            "{{\"target\":\"queue\",\"test\":\"pops\",\"place\":\"q.rs:1:1\",\"models\":1,\
             \"verdicts\":{{\"{verdict}\":1}},\"executions\":{executions},\"shard\":\"{shard}\",\
             \"parts\":{{\"models\":{},\"executions\":{own},\"outcomes\":{{\"1\":{own}}}}}}}",
            u64::from(has_parts)
        );
        serde_json::from_str(&text).expect("well-formed")
    }

    fn sum(lines: Vec<Line>) -> Sum {
        let places = places(lines).expect("they fit");
        assert_eq!(places.len(), 1);
        places[0].sum()
    }

    #[test]
    fn parts_are_added_up_and_a_missing_one_is_named() {
        let part = |index: u64| line(&format!("{index}/3"), 10 * index, true);
        let all = sum(vec![part(2), part(1), part(3)]);
        assert_eq!((all.executions, all.outcomes["1"]), (60, 60));
        assert!(all.gaps.is_empty() && all.failed.is_none());
        let some = sum(vec![part(3), part(1)]);
        assert_eq!(some.gaps, ["part 2/3 is missing"]);
        let mut stopped = part(2);
        stopped.verdicts = BTreeMap::from([("stopped".to_owned(), 1)]);
        stopped.reason = Some("stopped by a limit".to_owned());
        let some = sum(vec![part(1), stopped, part(3)]);
        assert_eq!(some.gaps, ["part 2/3: stopped by a limit"]);
        let mut failed = part(2);
        failed.verdicts = BTreeMap::from([("failed".to_owned(), 1)]);
        failed.reason = Some("it panicked".to_owned());
        let some = sum(vec![part(1), failed, part(3)]);
        assert_eq!(some.failed.as_deref(), Some("part 2/3: it panicked"));
    }

    #[test]
    fn a_model_that_has_no_parts_counts_once() {
        let whole = |index: u64| line(&format!("{index}/3"), 7, false);
        let all = sum(vec![whole(1), whole(2), whole(3)]);
        assert_eq!((all.executions, all.gaps.len()), (7, 0));
        // Any of them is enough.
        assert!(sum(vec![whole(2)]).gaps.is_empty());
        // One of them has learnt what the others do not know.
        let alone = sum(vec![line("1/2", 5, true), line("2/2", 70, false)]);
        assert_eq!((alone.executions, alone.gaps.len()), (70, 0));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let told = |lines| places(lines).err().expect("refused").to_string();
        let twice = told(vec![line("1/2", 1, true), line("1/2", 1, true)]);
        assert!(twice.contains("the part 1/2 is there twice"), "{twice}");
        let others = told(vec![line("1/2", 1, true), line("2/3", 1, true)]);
        assert!(others.contains("parts of 2 and of 3"), "{others}");
        assert_eq!(part("3/8"), Some((3, 8)));
        for text in ["", "3", "0/8", "9/8", "a/b"] {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
