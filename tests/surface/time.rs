//! What is in `std::time`?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`Instant`" as Instant {
            [now: fn() -> This]
            [elapsed: fn(&This) -> Duration]
            [duration_since: fn(&This, This) -> Duration]
            [checked_duration_since: fn(&This, This) -> Option<Duration>]
            [saturating_duration_since: fn(&This, This) -> Duration]
            [checked_add: fn(&This, Duration) -> Option<This>]
            [checked_sub: fn(&This, Duration) -> Option<This>]
            [impl Add<Duration, Output = This>] [impl Sub<Duration, Output = This>] [impl Sub<This, Output = Duration>]
            [impl AddAssign<Duration>] [impl SubAssign<Duration>]
            [impl Send] [impl Sync] [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl PartialOrd] [impl Ord]
            [impl Hash] [impl Debug] [impl UnwindSafe] [impl RefUnwindSafe] [impl Unpin]
        } "in a model any time may pass between two reads: both sides of a deadline are explored";
        reexported "`Duration`" as Duration { [impl Copy] };
        reexported "`TryFromFloatSecsError`" as TryFromFloatSecsError { [impl Error] };
        reexported "`SystemTime`, `UNIX_EPOCH`" as SystemTime {
            [now: fn() -> This]
            [checked_add: fn(&This, Duration) -> Option<This>]
        } "std's own clock, which the model does not see";
        reexported "`SystemTimeError`" as SystemTimeError { [impl Error] };
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::error::Error;
            use std::fmt::Debug;
            use std::hash::Hash;
            use std::ops::*;
            use std::panic::{RefUnwindSafe, UnwindSafe};

            use ::$side::time::*;

            #[test]
            fn $test() {
                rows!(check $side;);
            }
        }
    };
}
compiles!(std every_item_is_in_std);
compiles!(dpor every_item_is_in_dpor);
