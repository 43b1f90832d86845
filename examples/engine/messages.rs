//! A simulation of nodes that send each other messages, explored by `dpor::engine`.
//!
//! `cargo run --example engine_messages`
//!
//! Participants vote on a transaction, each as it likes, and a coordinator tells all of them the
//! decision (two-phase commit). The simulation keeps the contents of the channels; the engine says
//! which node goes, in which order votes arrive, and which vote is cast.

use dpor::Builder;
use dpor::engine::{Ended, Engine, Misuse, Operation, Outcome, Turn};

/// Channel 0 leads to the coordinator, which is thread 0, and channel i to participant i.
#[derive(Default)]
struct World {
    channels: Vec<Vec<bool>>,
    /// The vote of each participant, and the decision that each node knows.
    votes: Vec<Option<bool>>,
    decisions: Vec<Option<bool>>,
    /// How many steps each node has made.
    steps: Vec<usize>,
    yes: usize,
}

impl World {
    /// The next operation of a node.
    fn next(&self, node: usize) -> Option<Operation> {
        let participants = self.votes.len() - 1;
        let step = self.steps[node];
        match (node, step) {
            // The coordinator collects votes until it can decide, and then tells the participants.
            (0, _) => match self.decisions[0] {
                None => Some(Operation::Receive(0)),
                Some(_) => {
                    let told = self.channels[1..]
                        .iter()
                        .filter(|it| !it.is_empty())
                        .count();
                    (told < participants).then(|| Operation::Send(told as u32 + 1))
                }
            },
            (_, 0) => Some(Operation::Choose(2)),
            (_, 1) => Some(Operation::Send(0)),
            (_, 2) => Some(Operation::Receive(node as u32)),
            _ => None,
        }
    }

    /// The operation of a node happens.
    fn happens(&mut self, node: usize, outcome: Outcome) {
        let participants = self.votes.len() - 1;
        let value = outcome.value().unwrap_or(0) as usize;
        match (node, self.steps[node]) {
            (0, _) => match self.decisions[0] {
                None => {
                    let vote = self.channels[0][value];
                    self.yes += usize::from(vote);
                    if !vote {
                        self.decisions[0] = Some(false);
                    } else if self.yes == participants {
                        self.decisions[0] = Some(true);
                    }
                }
                Some(decision) => {
                    let told = self.channels[1..]
                        .iter()
                        .filter(|it| !it.is_empty())
                        .count();
                    self.channels[told + 1].push(decision);
                }
            },
            (_, 0) => self.votes[node] = Some(value == 1),
            (_, 1) => self.channels[0].push(self.votes[node] == Some(true)),
            _ => self.decisions[node] = Some(self.channels[node][value]),
        }
        self.steps[node] += 1;
    }
}

/// Explores the protocol with two OS threads; returns the number of executions that commit, and of
/// those that do not.
fn commit(participants: usize) -> Result<[u64; 2], Misuse> {
    let nodes = participants + 1;
    let mut settings = Builder::new();
    settings.workers = Some(2);
    let mut engine = Engine::new(&settings, nodes)?;
    let outcomes = engine.explore(|execution| {
        let mut world = World {
            channels: vec![Vec::new(); nodes],
            votes: vec![None; nodes],
            decisions: vec![None; nodes],
            steps: vec![0; nodes],
            yes: 0,
        };
        let ended = loop {
            let thread = match execution.turn()? {
                Turn::Begins(thread) => thread,
                Turn::Ran(thread, outcome) => {
                    world.happens(thread.0, outcome);
                    thread
                }
                Turn::Ended(ended) => break ended,
            };
            match world.next(thread.0) {
                Some(operation) => execution.announce(thread, operation)?,
                None => execution.finish_thread(thread)?,
            }
        };
        assert_eq!(ended, Ended::Complete, "{:?}", execution.schedule());
        let all_agree = world.votes[1..].iter().all(|vote| *vote == Some(true));
        for decision in world.decisions {
            assert_eq!(decision, Some(all_agree), "{:?}", execution.schedule());
        }
        Ok(all_agree)
    })?;
    assert!(engine.is_complete());
    Ok([true, false].map(|commits| outcomes[&commits]))
}

fn main() -> Result<(), Misuse> {
    // Each order of the votes in the channel, for each way to vote: n! times 2^n.
    for (participants, orders) in [(1, 1), (2, 2), (3, 6), (5, 120)] {
        let [commit, abort] = commit(participants)?;
        println!("{participants} participants: {commit} executions commit, {abort} abort");
        assert_eq!(commit, orders);
        assert_eq!(commit + abort, orders << participants);
    }
    Ok(())
}
