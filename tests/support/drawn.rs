//! What do the tests of drawn programs have in common?

use dpor::sync::mpsc::{Receiver, Sender as Any, SyncSender, channel, sync_channel};

/// A number of programs, or the first one's seed, from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number of programs"),
        Err(_) => default,
    }
}

/// The program without what does not matter for its being `wrong`: as long as one of the `simpler` ones is, too, it is taken
/// instead.
pub fn smallest<P>(
    mut program: P,
    simpler: impl Fn(&P) -> Vec<P>,
    wrong: impl Fn(&P) -> bool,
) -> P {
    while let Some(less) = simpler(&program).into_iter().find(&wrong) {
        program = less;
    }
    program
}

/// Sends into a channel of either kind.
#[derive(Clone)]
pub enum Sender {
    Any(Any<usize>),
    Bounded(SyncSender<usize>),
}

/// A channel with `room` for so many messages; `None` is for any number.
pub fn channel_for(room: Option<usize>) -> (Sender, Receiver<usize>) {
    match room {
        None => {
            let (sender, receiver) = channel();
            (Sender::Any(sender), receiver)
        }
        Some(room) => {
            let (sender, receiver) = sync_channel(room);
            (Sender::Bounded(sender), receiver)
        }
    }
}
