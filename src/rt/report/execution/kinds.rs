//! Which words stand for operations, objects and ends in data for machines?
//!
//! One lower-case word each, which never changes: `docs/REPORTS.md` promises them. Both matches are
//! exhaustive, so a new operation does not compile until it has its word.

use std::sync::atomic::Ordering;

use crate::rt::event::operation::{Choice, OpKind, Rmw};
use crate::rt::event::verdict::{Effect, End, Pruned, Wrong};

/// The word for an operation.
pub(super) const fn operation(kind: &OpKind) -> &'static str {
    match kind {
        OpKind::Load { .. } => "load",
        OpKind::Store { .. } => "store",
        OpKind::Rmw { rmw, .. } => match rmw {
            Rmw::Swap => "swap",
            Rmw::Add => "fetch_add",
            Rmw::Sub => "fetch_sub",
            Rmw::And => "fetch_and",
            Rmw::Nand | Rmw::NandBool => "fetch_nand",
            Rmw::Or => "fetch_or",
            Rmw::Xor => "fetch_xor",
            Rmw::Max | Rmw::MaxSigned => "fetch_max",
            Rmw::Min | Rmw::MinSigned => "fetch_min",
        },
        OpKind::CompareExchange { .. } => "compare_exchange",
        OpKind::Lock => "lock",
        OpKind::TryLock => "try_lock",
        OpKind::Unlock { .. } => "unlock",
        OpKind::Retain => "arc_clone",
        OpKind::Release { told: false } => "arc_drop",
        OpKind::Release { told: true } => "arc_into_inner",
        OpKind::RetainWeak => "weak_clone",
        OpKind::ReleaseWeak => "weak_drop",
        OpKind::FirstReference => "arc_first",
        OpKind::ReadCount { .. } => "arc_count",
        OpKind::TakeUnique => "arc_try_unwrap",
        OpKind::Upgrade => "weak_upgrade",
        OpKind::RetainRaw => "arc_increment",
        OpKind::Spawn { .. } => "spawn",
        OpKind::Exit => "end",
        OpKind::Join { .. } => "join",
        OpKind::IsFinished => "is_finished",
        OpKind::Park => "park",
        OpKind::ParkTimeout => "park_timeout",
        OpKind::EndForNoReason => "end_for_no_reason",
        OpKind::Unpark => "unpark",
        OpKind::ReadLock => "read",
        OpKind::TryRead => "try_read",
        OpKind::UnlockRead => "unlock_read",
        OpKind::WriteLock => "write",
        OpKind::TryWrite => "try_write",
        OpKind::UnlockWrite { .. } => "unlock_write",
        OpKind::Downgrade => "downgrade",
        OpKind::Enqueue { .. } => "wait",
        OpKind::Awake { timed: false } => "awake",
        OpKind::Awake { timed: true } => "awake_timeout",
        OpKind::NotifyOne => "notify_one",
        OpKind::NotifyAll => "notify_all",
        OpKind::Arrive => "barrier_arrive",
        OpKind::Leave { .. } => "barrier_leave",
        OpKind::CallOnce { .. } => "once_begin",
        OpKind::EndOnce { .. } => "once_end",
        OpKind::CheckOnce => "once_check",
        OpKind::WaitOnce { .. } => "once_wait",
        OpKind::Send => "send",
        OpKind::TrySend => "try_send",
        OpKind::Taken { .. } => "send_taken",
        OpKind::RecvWait => "recv_wait",
        OpKind::Recv { timed: false } => "recv",
        OpKind::Recv { timed: true } => "recv_timeout",
        OpKind::TryRecv => "try_recv",
        OpKind::AddSender => "sender_clone",
        OpKind::DropSender => "sender_drop",
        OpKind::DropReceiver { .. } => "receiver_drop",
        OpKind::Touch(touch) => touch.word(),
        OpKind::Choose { what, .. } => match what {
            Choice::Value | Choice::MayWakeUp | Choice::HasWokenUp => "choose",
            Choice::Clock | Choice::TimePasses => "clock_read",
        },
        OpKind::GiveUp { .. } => "give_up",
        OpKind::Resume => "go_on",
        OpKind::Start => "start",
        OpKind::Atomically { .. } => "atomically",
        OpKind::Wait { .. } => "spin",
    }
}

/// The memory ordering that an operation was called with; of a compare-exchange, the ordering for
/// its outcome.
pub(super) fn ordering(kind: &OpKind, succeeded: bool) -> Option<&'static str> {
    kind.ordering(succeeded).map(word)
}

/// The word for an ordering.
pub(super) const fn word(order: Ordering) -> &'static str {
    match order {
        Ordering::Relaxed => "Relaxed",
        Ordering::Acquire => "Acquire",
        Ordering::Release => "Release",
        Ordering::AcqRel => "AcqRel",
        _ => "SeqCst",
    }
}

/// The word for the way in which an execution ended.
pub(super) const fn end(end: &End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Deadlock(_) => "deadlock",
        End::Livelock { .. } => "livelock",
        End::TooManyEvents { .. }
        | End::TooManyThreads { .. }
        | End::NoStack { .. }
        | End::NoClocks { .. } => "limit",
        End::Panicked { .. } => "panic",
        End::StackOverflow { .. } => "stack_overflow",
        End::MemoryFault { .. } => "memory_fault",
        End::Stale { .. } => "schedule",
        End::NotDeterministic(_) => "not_deterministic",
        End::DataRace(_) => "data_race",
        End::BadMemory(bad) => match bad.wrong {
            Wrong::Operation(..) | Wrong::Access(..) | Wrong::Raw { .. } => "use_after_free",
            Wrong::FreedTwice | Wrong::Layout { .. } | Wrong::Inside { .. } => "wrong_free",
        },
        End::Leaked(_) => "leak",
        End::Outside(_) => "outside",
        End::Pruned(Pruned::Asleep | Pruned::EndsAreSeen | Pruned::LeftLoop) => "asleep",
        End::Pruned(Pruned::Assumed) => "assumed",
        End::Pruned(Pruned::Stopped) => "stopped",
        End::Pruned(Pruned::Rounds) => "rounds",
        End::Pruned(Pruned::InVain) => "in_vain",
    }
}

/// The word for the effect of an access on memory.
pub(super) const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::AtomicRead => "atomic_read",
        Effect::AtomicWrite => "atomic_write",
        Effect::Free => "free",
        Effect::End => "end",
        Effect::Make => "make",
    }
}
