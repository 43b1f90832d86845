//! The tests of the event and the slot: for each way to build the crate.

#[cfg(not(dpor))]
#[test]
fn an_event_fires_once() {
    let event = setup::Event::new();
    assert!(event.fire());
    assert!(!event.fire());
    event.wait();
}

#[cfg(dpor)]
#[test]
fn one_of_two_threads_fires_and_the_third_sees_it() {
    use dpor::thread;
    use std::sync::Arc;

    dpor::model(|| {
        let event = Arc::new(setup::Event::new());
        let fire = |event: &Arc<setup::Event>| {
            let event = event.clone();
            thread::spawn(move || event.fire())
        };
        let (a, b) = (fire(&event), fire(&event));
        event.wait();
        assert!(a.join().unwrap() != b.join().unwrap());
    });
}

#[cfg(not(dpor))]
#[test]
fn a_slot_is_filled_once() {
    let slot = setup::Slot::new();
    assert_eq!(slot.fill(1), Ok(()));
    assert_eq!(slot.fill(2), Err(2));
    assert_eq!(*slot.wait(), 1);
}

#[cfg(dpor)]
#[test]
fn who_waits_for_a_slot_reads_what_was_put_in() {
    use dpor::thread;
    use std::sync::Arc;

    // With `Relaxed` in `Event::fire` or `Event::wait` this is a data race.
    dpor::model(|| {
        let slot = Arc::new(setup::Slot::new());
        let threads = [1, 2].map(|value| {
            let slot = slot.clone();
            thread::spawn(move || slot.fill(value).is_ok())
        });
        let value = *slot.wait();
        let filled = threads.map(|thread| thread.join().unwrap());
        assert_eq!(filled, [value == 1, value == 2]);
    });
}
