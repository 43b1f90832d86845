//! Where do the random numbers of sampling come from?
//!
//! SplitMix64: a counter that passes through a mixing function ([`mix`]). The same seed gives the
//! same numbers on every machine, and every execution has a stream of its own, so that the n-th
//! execution does not depend on the length of the others.

use crate::rt::event::mix::{STEP, mix};

/// A stream of random numbers.
///
/// The stream computes the next number in advance, when the one before it is taken: a caller uses
/// its number at once to look up the thread that it picks, and a new number takes a processor as
/// long as three dependent multiplications.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    counter: u64,
    next: u64,
}

impl Rng {
    /// The stream with this number, under this seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Rng {
        let first = mix(seed.wrapping_add(STEP));
        Rng::at(first ^ stream.wrapping_mul(STEP))
    }

    /// The stream behind this counter.
    #[inline]
    fn at(before: u64) -> Rng {
        let counter = before.wrapping_add(STEP);
        Rng {
            counter,
            next: mix(counter),
        }
    }

    /// Passes over this many numbers.
    #[inline]
    pub(crate) fn skip(&mut self, numbers: u64) {
        if numbers > 0 {
            *self = Rng::at(self.counter.wrapping_add(STEP.wrapping_mul(numbers - 1)));
        }
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let next = self.next;
        *self = Rng::at(self.counter);
        next
    }

    /// A number below `n`, which must not be 0. The bias is below `n` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let below = self.foresee(n);
        self.skip(1);
        below
    }

    /// The next result of [`Rng::below`].
    #[inline]
    pub(crate) fn foresee(&self, n: u64) -> u64 {
        ((u128::from(self.next) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_another_stream_gives_others() {
        let numbers = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            [rng.below(1000), rng.below(1000), rng.below(1000)]
        };
        assert_eq!(numbers(7, 3), numbers(7, 3));
        assert_ne!(numbers(7, 3), numbers(7, 4));
        assert_ne!(numbers(7, 3), numbers(8, 3));
    }

    #[test]
    fn numbers_that_are_passed_over_are_those_that_would_have_come() {
        let mut one = Rng::new(7, 3);
        let mut other = one.clone();
        for _ in 0..5 {
            one.next();
        }
        other.skip(0);
        other.skip(5);
        assert_eq!(one.foresee(1000), other.below(1000));
        assert_ne!(one.next(), one.next());
    }

    #[test]
    fn numbers_below_n_are_spread_evenly() {
        let mut rng = Rng::new(1, 0);
        let mut counts = [0; 5];
        for _ in 0..50_000 {
            counts[rng.below(5) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&n| (9_500..10_500).contains(&n)),
            "{counts:?}"
        );
    }
}
