//! How does a drawn program send into a channel, whatever room there is in it?

use dpor::sync::mpsc::{Receiver, Sender as Any, SyncSender, channel, sync_channel};

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
