//! In which order do messages arrive, and when is a channel empty, full or disconnected?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicBool;
use dpor::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use dpor::thread;

use super::{count, outcomes, set};

#[test]
fn try_recv_sees_both_empty_and_full_and_disconnected() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || sender.send(5).unwrap());
        let first = receiver.try_recv();
        other.join().unwrap();
        let second = receiver.try_recv();
        let name = |r: Result<i32, TryRecvError>| match r {
            Ok(n) => n.to_string(),
            Err(TryRecvError::Empty) => "empty".to_owned(),
            Err(TryRecvError::Disconnected) => "disconnected".to_owned(),
        };
        (name(first), name(second))
    });
    let seen: Vec<(&str, &str)> = seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(seen, [("5", "disconnected"), ("empty", "5")]);
}

#[test]
fn the_last_sender_that_goes_lets_the_receiver_go() {
    let traces = count(|| {
        let (sender, receiver) = mpsc::channel::<()>();
        let another = sender.clone();
        thread::spawn(move || drop(sender));
        thread::spawn(move || drop(another));
        assert!(receiver.recv().is_err());
    });
    assert_eq!(traces, 1);
}

#[test]
fn messages_of_two_senders_come_in_any_order_and_each_senders_in_its_own() {
    let (seen, executions) = outcomes(|| {
        let (sender, receiver) = mpsc::channel();
        let other = sender.clone();
        thread::spawn(move || {
            other.send(10).unwrap();
            other.send(11).unwrap();
        });
        thread::spawn(move || sender.send(20).unwrap());
        receiver.iter().collect::<Vec<i32>>()
    });
    let seen: Vec<Vec<i32>> = seen.into_keys().collect();
    assert_eq!(seen, [[10, 11, 20], [10, 20, 11], [20, 10, 11]]);
    assert_eq!(executions, 3);
}

#[test]
fn a_bounded_channel_is_full_or_has_room() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::sync_channel(1);
        sender.send(1).unwrap();
        let other = thread::spawn(move || (receiver.recv().unwrap(), receiver));
        let result = match sender.try_send(2) {
            Ok(()) => "sent",
            Err(TrySendError::Full(2)) => "full",
            Err(_) => "other",
        };
        assert_eq!(other.join().unwrap().0, 1);
        result
    });
    assert_eq!(seen, ["full", "sent"]);
}

#[test]
fn a_bounded_send_waits_for_room_and_a_pipeline_has_one_execution() {
    let traces = count(|| {
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::spawn(move || (0..4).for_each(|i| sender.send(i).unwrap()));
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    });
    assert_eq!(traces, 1);
}

#[test]
fn a_rendezvous_hands_over_or_finds_nobody() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let other = thread::spawn(move || receiver.recv_timeout(Duration::from_secs(1)));
        let sent = sender.try_send(3).is_ok();
        let received = other.join().unwrap();
        (sent, received.unwrap_or(0))
    });
    assert_eq!(seen, [(false, 0), (true, 3)]);
    let traces = count(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let passed = Arc::new(AtomicBool::new(false));
        let theirs = passed.clone();
        let other = thread::spawn(move || {
            theirs.store(true, SeqCst);
            receiver.recv().unwrap()
        });
        sender.send(3).unwrap();
        assert!(passed.load(SeqCst), "the receiver has come");
        assert_eq!(other.join().unwrap(), 3);
    });
    assert_eq!(traces, 1);
}

#[test]
fn a_send_to_a_receiver_that_is_gone_gives_the_message_back() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let other = thread::spawn(move || drop(receiver));
        let back = sender.send(String::from("back")).map_err(|error| error.0);
        other.join().unwrap();
        back
    });
    assert_eq!(seen, [Err(String::from("back"))]);
}

#[test]
fn recv_timeout_sees_a_message_or_the_time() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(1));
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(_) => "message",
            Err(RecvTimeoutError::Timeout) => "time",
            Err(RecvTimeoutError::Disconnected) => "disconnected",
        }
    });
    assert_eq!(seen, ["message", "time"]);
}
