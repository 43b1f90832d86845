//! What do channels do? The same in every schedule.

use std::time::Duration;

use super::sync::mpsc::{
    self, Receiver, RecvError, RecvTimeoutError, SendError, Sender, SyncSender, TryRecvError,
    TrySendError,
};
use super::thread;

pub fn messages_come_in_the_order_of_each_sender() -> Vec<String> {
    let (sender, receiver): (Sender<u8>, Receiver<u8>) = mpsc::channel();
    let other = sender.clone();
    let theirs = thread::spawn(move || {
        for message in [10, 11] {
            other.send(message).unwrap();
        }
    });
    for message in [20, 21] {
        sender.send(message).unwrap();
    }
    let mut seen = vec![format!("{sender:?} {receiver:?} {:?}", receiver.iter())];
    drop(sender);
    let all: Vec<u8> = receiver.iter().collect();
    theirs.join().unwrap();
    let of = |tens: u8| all.iter().filter(|&m| m / 10 == tens).collect::<Vec<_>>();
    seen.push(format!("{:?} {:?} {:?}", of(1), of(2), receiver.recv()));
    seen
}

pub fn an_empty_channel_and_one_without_senders_differ() -> Vec<String> {
    let (sender, receiver) = mpsc::channel::<u8>();
    let mut seen = vec![format!(
        "{:?} {:?}",
        receiver.try_recv(),
        receiver.try_iter()
    )];
    let short = Duration::from_millis(1);
    seen.push(format!("{:?}", receiver.recv_timeout(short)));
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    sender.send(3).unwrap();
    seen.push(format!(
        "{:?} {:?}",
        receiver.try_recv(),
        receiver.try_iter().collect::<Vec<_>>()
    ));
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(
        receiver.recv_timeout(short),
        Err(RecvTimeoutError::Disconnected)
    );
    assert_eq!(receiver.recv(), Err(RecvError));
    seen.push(format!("{:?}", receiver.into_iter().next()));
    seen
}

pub fn a_message_without_receiver_comes_back() -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    drop(receiver);
    assert_eq!(sender.send("back"), Err(SendError("back")));
    let (sender, receiver) = mpsc::sync_channel(1);
    drop(receiver);
    assert_eq!(sender.try_send(1), Err(TrySendError::Disconnected(1)));
    vec![format!("{:?} {sender:?}", sender.send(2))]
}

pub fn a_bounded_channel_holds_as_many_as_it_may() -> Vec<String> {
    let (sender, receiver): (SyncSender<u8>, Receiver<u8>) = mpsc::sync_channel(2);
    let mut seen = vec![format!("{:?} {:?}", sender.try_send(1), sender.send(2))];
    seen.push(format!("{:?}", sender.try_send(3)));
    let theirs = sender.clone();
    // Waits until there is room.
    let waiting = thread::spawn(move || theirs.send(3).is_ok());
    seen.push(format!("{:?}", receiver.recv()));
    seen.push(format!("{}", waiting.join().unwrap()));
    drop(sender);
    seen.push(format!("{:?}", receiver.into_iter().collect::<Vec<_>>()));
    seen
}

pub fn a_channel_without_room_hands_over() -> Vec<String> {
    let (sender, receiver) = mpsc::sync_channel(0);
    let mut seen = vec![format!("{:?}", sender.try_send(0))];
    let giver = thread::spawn(move || (sender.send(1), sender.send(2)));
    seen.push(format!(
        "{:?} {:?} {:?}",
        receiver.recv(),
        receiver.recv(),
        giver.join().unwrap()
    ));
    seen.push(format!("{:?}", receiver.recv()));
    seen
}

pub fn a_message_that_nobody_takes_is_dropped_with_its_channel() -> Vec<String> {
    let value = super::sync::Arc::new(());
    let (sender, receiver) = mpsc::channel();
    sender.send(value.clone()).unwrap();
    drop(receiver);
    drop(sender);
    vec![format!("{}", super::sync::Arc::strong_count(&value))]
}

pub fn errors_have_the_texts_of_std() -> Vec<String> {
    vec![
        format!("{} {:?}", SendError(1), SendError(1)),
        format!(
            "{} {}",
            TrySendError::Full(1),
            TrySendError::Disconnected(1)
        ),
        format!(
            "{} {} {}",
            RecvError,
            TryRecvError::Empty,
            TryRecvError::Disconnected
        ),
        format!(
            "{} {}",
            RecvTimeoutError::Timeout,
            RecvTimeoutError::Disconnected
        ),
    ]
}
