//! The tests of the event: one for each way to build the crate.

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
