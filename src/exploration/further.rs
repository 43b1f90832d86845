//! The passes behind the first one: behaviour that std permits and that programs seldom meet.
//!
//! Most models pass through waits that never end spuriously, and code that does not expect such an
//! end has a bug that no other execution shows. So each kind of this behaviour gets a pass of its
//! own once the model has passed, if the model has met a place for it. A pass is an exploration
//! with the setting of that kind: it shows each trace of the first pass once more, and those with
//! the behaviour. The budget may cut it short, so it takes its executions from all over the tree.

use std::time::Instant;

use crate::config::{Algorithm, Builder, Memory, Order, Thorough};
use crate::exploration::explored_further;
use crate::exploration::progress::above_captured;
use crate::exploration::replay_command::replay;
use crate::exploration::said_once::is_first;
use crate::exploration::summary::sentence;
use crate::rt::Work;
use crate::rt::event::Site;
use crate::verdict::assumption::AssumptionKind;
use crate::verdict::failure::{Failure, FailureKind};
use crate::verdict::further::Further;
use crate::verdict::report::{Limit, Passed, Verdict};

/// The number of executions that all further passes together may run, however small the first pass
/// was, unless they are long.
const BUDGET_MIN: u64 = 1000;

/// The most events of so many executions. Without this limit, a model with one execution of 12,000
/// events would take a thousand times as long as its first pass.
const BUDGET_EVENTS: u64 = 250_000;

/// The number of executions that all further passes together may run, where the first pass has run
/// `begun`, the longest of which had `longest` events.
fn budget(begun: u64, longest: usize) -> u64 {
    begun.max(BUDGET_MIN.min(BUDGET_EVENTS / longest.max(1) as u64))
}

/// A kind of behaviour, with the setting that explores it.
struct Kind {
    kind: AssumptionKind,
    /// Whether the settings explore it without a further pass.
    is_on: fn(&Builder) -> bool,
    switch_on: fn(&mut Builder),
}

const KINDS: [Kind; 4] = [
    Kind {
        kind: AssumptionKind::SpuriousWakeups,
        is_on: |it| it.spurious_wakeups > 0,
        switch_on: |it| (it.spurious_wakeups, it.wakeups_of_std_alone) = (1, true),
    },
    Kind {
        kind: AssumptionKind::SpuriousFailures,
        is_on: |it| it.spurious_failures,
        switch_on: |it| (it.spurious_failures, it.spurious_failures_max) = (true, 1),
    },
    Kind {
        kind: AssumptionKind::WritersFirst,
        is_on: |it| it.writers_first,
        switch_on: |it| it.writers_first = true,
    },
    Kind {
        kind: AssumptionKind::BlocksAgain,
        is_on: |it| it.blocks_again,
        switch_on: |it| it.blocks_again = true,
    },
];

impl Builder {
    /// Whether an exploration with these settings may have further passes.
    fn goes_further(&self) -> bool {
        self.thorough != Thorough::Off
            && matches!(self.algorithm, Algorithm::Optimal)
            // A bound that is large enough leaves nothing out, and the first pass is complete.
            && self.bound().is_none()
            && self.checkpoint_file.is_none()
    }
}

/// Explores the behaviour that a complete exploration has left out. Returns that exploration with
/// what the further passes have found.
#[track_caller]
pub(crate) fn explored(
    mut passed: Passed,
    settings: &Builder,
    main: &dyn Work,
    site: Site,
) -> Result<Passed, Box<Failure>> {
    if passed.verdict != Verdict::Complete || !settings.goes_further() {
        return Ok(passed);
    }
    let applies = |it: &&Kind| passed.met.assumes(it.kind) && !(it.is_on)(settings);
    let kinds: Vec<&Kind> = KINDS.iter().filter(applies).collect();
    let begun = passed.driver.stats.begun();
    let mut left = match settings.thorough {
        Thorough::Full => u64::MAX,
        _ => budget(begun, passed.driver.stats.longest),
    };
    if let Some(most) = settings.max_permutations {
        left = left.min((most as u64).saturating_sub(begun));
    }
    let start = Instant::now();
    for (nth, kind) in kinds.iter().enumerate() {
        // What one pass does not need is left to the others.
        let share = left / (kinds.len() - nth) as u64;
        let time = settings.max_duration.map(|most| {
            let spent = passed.elapsed.saturating_add(start.elapsed());
            most.saturating_sub(spent)
        });
        if share == 0 || time.is_some_and(|time| time.is_zero()) {
            continue;
        }
        let mut pass = Builder {
            memory: Memory::Sc,
            order: Order::BitReversal,
            // That order is one of a single worker.
            workers: None,
            shard: None,
            task: None,
            max_permutations: (share < u64::MAX).then_some(share as usize),
            max_duration: time,
            trace: None,
            log: false,
            log_filter: None,
            ..settings.clone()
        };
        (kind.switch_on)(&mut pass);
        let further = match explored_further(&pass, main, site) {
            Ok(further) => further,
            Err(failure) if is_beside_the_point(failure.kind) => {
                let further = ended_early(kind.kind, &failure, settings, site);
                left -= further.executions.min(left);
                passed.further.push(further);
                continue;
            }
            Err(failure) => return Err(with_the_kind(failure, kind.kind, begun)),
        };
        let executions = further.driver.stats.begun();
        left -= executions.min(left);
        let complete = further.verdict == Verdict::Complete;
        passed.further.push(Further {
            kind: kind.kind,
            executions,
            complete,
            ended: None,
        });
        if complete {
            passed.met.add_all(further.met);
            // A place publishes a block that could have had the memory of a freed one. In the pass
            // another block of its thread may have got that memory.
            if kind.kind == AssumptionKind::BlocksAgain {
                passed.met.note_explored(kind.kind);
            }
        }
        if further.verdict == Verdict::Stopped(Limit::Interrupt) {
            break;
        }
    }
    Ok(passed)
}

/// Whether such a failure says nothing about the behaviour of a pass. More events than the limit
/// allows are no fault of a model that has passed within the limit, and a model that behaves
/// otherwise when it is explored once more has no part in a further pass.
fn is_beside_the_point(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Limit | FailureKind::NotDeterministic)
}

/// The pass for this kind that such a failure has ended. Standard error says so, too.
#[cold]
fn ended_early(kind: AssumptionKind, failure: &Failure, settings: &Builder, site: Site) -> Further {
    let weakened = settings.weakenings();
    let ended = sentence(&failure.text);
    let what = kind.what();
    let text = format!(
        "dpor: the further pass for {what} of the model at {site}, which has passed without them, has ended early: {ended}; \
         to see the execution:\n  {}\n",
        replay(failure.schedule(), &weakened)
    );
    if is_first(text.clone()) {
        above_captured(&text);
    }
    Further {
        kind,
        executions: failure.executions,
        complete: false,
        ended: Some(ended),
    }
}

/// Adds to a failure that it needs the behaviour of this kind.
#[cold]
fn with_the_kind(mut failure: Box<Failure>, kind: AssumptionKind, passed: u64) -> Box<Failure> {
    let what = kind.what();
    let permits = match kind {
        AssumptionKind::BlocksAgain => {
            "an allocator may give a thread the block that it has freed last"
        }
        _ => "std permits them",
    };
    let gate = match kind {
        AssumptionKind::WritersFirst => {
            ". Where `read` and `write` wait for their turn, the mutex `gate` stands for the turn of the next one"
        }
        _ => "",
    };
    failure.text.push_str(&format!(
        "\nthorough   {passed} executions have passed without {what}; {permits}, so a further pass explores them \
         (`Builder::thorough`, DPOR_THOROUGH=0 leaves them out){gate}"
    ));
    failure.executions += passed;
    failure
}
