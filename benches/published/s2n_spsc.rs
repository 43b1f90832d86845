//! Is a channel that both sides close freed only after its last use (s2n-quic-core 0.91.0,
//! `sync::spsc`)?
//!
//! Copied by `run` into the tests of s2n-quic-core. Its channel has the atomics and the waker of
//! `dpor`, as it has those of loom in its own loom tests.

use s2n_quic_core::sync::spsc::channel;

#[test]
fn s2n_spsc() {
    dpor::model(|| {
        let (sender, receiver) = channel::<u32>(1);
        let other = dpor::thread::spawn(move || drop(sender));
        drop(receiver);
        other.join().unwrap();
    });
}
