//! Are samples of random programs among their traces?
//!
//! The tests also compare `Able`'s set of enabled threads with a fresh check at each step.

use crate::rt::engine::strategies::pct::Pct;
use crate::rt::engine::strategies::pos::Pos;
use crate::rt::engine::strategies::sample::{Sampler, Walk};
use crate::rt::engine::testing::{explore_up_to, explore_with};
use crate::rt::engine::tests::random::program;
use crate::rt::engine::{Explorer, TieBreak};

#[test]
fn a_depth_beyond_every_execution_costs_no_more_than_one_as_long() {
    for seed in 1..30 {
        let program = program(seed);
        let sampled = |depth| {
            let sampler = Box::new(Sampler::new(Pct::new(depth), seed, 10));
            let samples = explore_with(&program, sampler, true, u64::MAX);
            samples.expect("there is no limit").traces
        };
        assert_eq!(sampled(usize::MAX), sampled(10_000), "seed {seed}");
    }
}

#[test]
fn samples_are_among_the_traces() {
    let samplers: [fn(u64) -> Box<dyn Explorer>; 3] = [
        |seed| Box::new(Sampler::new(Walk, seed, 10)),
        |seed| Box::new(Sampler::new(Pct::new(3), seed, 10)),
        |seed| Box::new(Sampler::new(Pos::default(), seed, 10)),
    ];
    let mut sampled = 0;
    for seed in 1..1500 {
        let program = program(seed);
        let Some(traces) = explore_up_to(&program, "optimal", TieBreak::Last, 600) else {
            continue;
        };
        for sampler in samplers {
            let Some(samples) = explore_with(&program, sampler(seed), true, u64::MAX) else {
                panic!("there is no limit")
            };
            let none = samples
                .traces
                .keys()
                .find(|sample| !traces.traces.contains_key(sample));
            assert_eq!(
                none,
                None,
                "seed {seed} draws what is no trace of\n{}",
                program.listing()
            );
            sampled += samples.traces.len();
        }
    }
    assert!(sampled > 10_000, "only {sampled} samples");
}
