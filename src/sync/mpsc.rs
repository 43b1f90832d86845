//! Queues with many senders and one receiver, as `std::sync::mpsc`.
//!
//! A channel that is created inside a model is modelled: each send and each receive is one visible
//! operation. A channel that is created outside a model is std's.

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::mpsc as real;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use crate::rt::{self, Answer, ObjectKind, OpKind, Outcome, Target};

/// The state that the senders and the receiver of a modelled channel share.
struct Queue<T> {
    /// One more than the capacity, or 0 for an unbounded channel.
    capacity: u64,
    /// Never contended: one modelled thread runs at a time.
    messages: Mutex<VecDeque<(u64, T)>>,
}

/// The result of a failed send or receive if the other end is dropped.
const DISCONNECTED: u64 = 1;

impl<T> Queue<T> {
    fn new(capacity: u64) -> Arc<Queue<T>> {
        Arc::new(Queue {
            capacity,
            messages: Mutex::default(),
        })
    }

    #[track_caller]
    fn perform(&self, kind: OpKind) -> Answer {
        let target = Target {
            address: (&raw const self.capacity).addr(),
            kind: ObjectKind::Channel,
            memory: self.capacity,
        };
        rt::perform(target, kind)
    }

    fn messages(&self) -> MutexGuard<'_, VecDeque<(u64, T)>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, index: u64, message: T) {
        self.messages().push_back((index, message));
    }

    fn pop(&self) -> Option<T> {
        self.messages().pop_front().map(|(_, message)| message)
    }

    /// The message with this number, which no receiver will take.
    fn take_back(&self, index: u64) -> Option<T> {
        let mut messages = self.messages();
        let at = messages.iter().position(|&(i, _)| i == index)?;
        messages.remove(at).map(|(_, message)| message)
    }

    /// Sends a message; waits while there is no room.
    #[track_caller]
    fn send(&self, message: T) -> Result<(), SendError<T>> {
        match rt::waited(self.perform(OpKind::Send)) {
            Answer::Done(Outcome::Success(index)) => {
                self.push(index, message);
                rt::is_done(Location::caller());
                if self.capacity != 1 {
                    return Ok(());
                }
                let answer = self.perform(OpKind::Taken { index });
                rt::is_done(Location::caller());
                match answer {
                    Answer::Done(Outcome::Failure(_)) => match self.take_back(index) {
                        Some(message) => Err(SendError(message)),
                        None => Ok(()),
                    },
                    _ => Ok(()),
                }
            }
            _ => Err(SendError(message)),
        }
    }

    /// Sends if there is room.
    #[track_caller]
    fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.perform(OpKind::TrySend) {
            Answer::Done(Outcome::Success(index)) => {
                self.push(index, message);
                rt::is_done(Location::caller());
                Ok(())
            }
            Answer::Done(Outcome::Failure(why)) if why != DISCONNECTED => {
                Err(TrySendError::Full(message))
            }
            _ => Err(TrySendError::Disconnected(message)),
        }
    }

    /// Receives a message by this operation.
    #[track_caller]
    fn receive(&self, kind: OpKind) -> Result<T, TryRecvError> {
        if let OpKind::Recv { .. } = kind
            && self.capacity == 1
        {
            self.perform(OpKind::RecvWait);
        }
        let mut answer = self.perform(kind);
        if let OpKind::Recv { .. } = kind {
            answer = rt::waited(answer);
        }
        match answer {
            Answer::Done(Outcome::Success(_)) => match self.pop() {
                Some(message) => Ok(message),
                None => panic!("dpor bug: a message was granted that is not there"),
            },
            Answer::Done(Outcome::Failure(why)) if why != DISCONNECTED => Err(TryRecvError::Empty),
            // While the execution is torn down no thread sends any more.
            _ => Err(TryRecvError::Disconnected),
        }
    }
}

/// An end of a channel.
enum End<R, T> {
    Modelled(Arc<Queue<T>>),
    Real(R),
}

/// The sending end of an unbounded channel.
pub struct Sender<T>(End<real::Sender<T>, T>);

/// The sending end of a bounded channel.
pub struct SyncSender<T>(End<real::SyncSender<T>, T>);

/// The receiving end of a channel.
pub struct Receiver<T>(End<real::Receiver<T>, T>);

/// Creates an unbounded channel.
///
/// A channel that is created inside a model must not be used outside the model.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    if rt::current().is_none() {
        let (sender, receiver) = real::channel();
        return (Sender(End::Real(sender)), Receiver(End::Real(receiver)));
    }
    let queue = Queue::new(0);
    (
        Sender(End::Modelled(queue.clone())),
        Receiver(End::Modelled(queue)),
    )
}

/// Creates a channel with room for `bound` messages.
///
/// With a `bound` of 0, a send waits until the receiver takes the message.
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    if rt::current().is_none() {
        let (sender, receiver) = real::sync_channel(bound);
        return (SyncSender(End::Real(sender)), Receiver(End::Real(receiver)));
    }
    let queue = Queue::new((bound as u64).saturating_add(1));
    (
        SyncSender(End::Modelled(queue.clone())),
        Receiver(End::Modelled(queue)),
    )
}

impl<T> Sender<T> {
    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns the message in an error if the receiver is dropped. Success does not mean that the
    /// message will be received.
    #[track_caller]
    pub fn send(&self, t: T) -> Result<(), SendError<T>> {
        match &self.0 {
            End::Modelled(queue) => queue.send(t),
            End::Real(sender) => sender.send(t),
        }
    }
}

impl<T> SyncSender<T> {
    /// Sends a message, and waits while there is no room.
    ///
    /// # Errors
    ///
    /// Returns the message in an error if the receiver is dropped.
    #[track_caller]
    pub fn send(&self, t: T) -> Result<(), SendError<T>> {
        match &self.0 {
            End::Modelled(queue) => queue.send(t),
            End::Real(sender) => sender.send(t),
        }
    }

    /// Sends a message if there is room.
    ///
    /// A channel with a bound of 0 has room if the receiver waits.
    ///
    /// # Errors
    ///
    /// Returns the message in an error if there is no room, or if the receiver is dropped.
    #[track_caller]
    pub fn try_send(&self, t: T) -> Result<(), TrySendError<T>> {
        match &self.0 {
            End::Modelled(queue) => queue.try_send(t),
            End::Real(sender) => sender.try_send(t),
        }
    }
}

macro_rules! sender {
    ($sender:ident) => {
        impl<T> Clone for $sender<T> {
            #[track_caller]
            fn clone(&self) -> Self {
                $sender(match &self.0 {
                    End::Modelled(queue) => {
                        queue.perform(OpKind::AddSender);
                        End::Modelled(queue.clone())
                    }
                    End::Real(sender) => End::Real(sender.clone()),
                })
            }
        }

        impl<T> Drop for $sender<T> {
            fn drop(&mut self) {
                if let End::Modelled(queue) = &self.0 {
                    queue.perform(OpKind::DropSender);
                }
            }
        }

        impl<T> fmt::Debug for $sender<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($sender)).finish_non_exhaustive()
            }
        }
    };
}

sender!(Sender);
sender!(SyncSender);

impl<T> Receiver<T> {
    /// Takes the first message, and waits while there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no message and every sender is dropped.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        match &self.0 {
            End::Modelled(queue) => {
                let received = queue.receive(OpKind::Recv { timed: false });
                received.map_err(|_| RecvError)
            }
            End::Real(receiver) => receiver.recv(),
        }
    }

    /// Takes the first message if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no message; the error says whether every sender is dropped.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match &self.0 {
            End::Modelled(queue) => queue.receive(OpKind::TryRecv),
            End::Real(receiver) => receiver.try_recv(),
        }
    }

    /// Takes the first message, and waits for a message for at most `timeout`.
    ///
    /// Inside a model a timeout and a message in time are both explored.
    ///
    /// # Errors
    ///
    /// Returns an error if no message came in time, or if there is none and every sender is
    /// dropped.
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        match &self.0 {
            End::Modelled(queue) => {
                let received = queue.receive(OpKind::Recv { timed: true });
                received.map_err(|error| match error {
                    TryRecvError::Empty => {
                        rt::let_time_pass(timeout);
                        RecvTimeoutError::Timeout
                    }
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                })
            }
            End::Real(receiver) => receiver.recv_timeout(timeout),
        }
    }

    /// Returns an iterator over the messages, which ends when every sender is dropped.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { rx: self }
    }

    /// Returns an iterator over the messages that are in the channel.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { rx: self }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let End::Modelled(queue) = &self.0 {
            // A sender that waits for the receiver to take its message takes the message back
            // itself.
            let discards = queue.capacity != 1;
            queue.perform(OpKind::DropReceiver { discards });
            while discards && queue.pop().is_some() {}
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// Iterator over the messages of a [`Receiver`], which ends when every sender is dropped.
#[derive(Debug)]
pub struct Iter<'a, T: 'a> {
    rx: &'a Receiver<T>,
}

/// Iterator over the messages that are in the queue of a [`Receiver`].
#[derive(Debug)]
pub struct TryIter<'a, T: 'a> {
    rx: &'a Receiver<T>,
}

/// Iterator over the messages of a [`Receiver`] that it owns, which ends when every sender is
/// dropped.
#[derive(Debug)]
pub struct IntoIter<T> {
    rx: Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.rx.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.rx.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.rx.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { rx: self }
    }
}
