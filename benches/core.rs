//! What share of the time does the exploration take, and how fast is the core alone?
//!
//! `cargo bench --features bench --bench core` explores programs, runs the same executions from a
//! record without exploration, in turns, and prints the least times: nanoseconds per event of both,
//! and the ratio of the first to the second, the *floor*. The abstract programs of the core's own
//! tests come first; these have neither closures nor stacks. Live programs follow.

mod programs;

use dpor::bench::{Measured, abstract_programs, live};

use programs::*;

fn print(name: &str, measured: Measured) {
    let Measured {
        executions,
        events,
        exploring,
        floor,
    } = measured;
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e9 / events as f64;
    println!(
        "{name:<24} {executions:>10} {events:>11} {:>10.1} {:>10.1} {:>10.2}",
        each(exploring),
        each(floor),
        each(exploring) / each(floor)
    );
}

fn head(kind: &str) {
    println!(
        "{kind:<24} {:>10} {:>11} {:>10} {:>10} {:>10}",
        "executions", "events", "ns/event", "floor", "to floor"
    );
}

fn main() {
    head("abstract");
    for (name, measured) in abstract_programs() {
        print(name, measured);
    }
    head("live");
    print("readers(8)", live(|| readers(8)));
    print("readers(13)", live(|| readers(13)));
    print("lastzero(10)", live(|| lastzero(10)));
    print("indexer(15)", live(|| indexer(15)));
    print("filesystem(22)", live(|| filesystem(22)));
    print("lost_update(4)", live(|| lost_update(4)));
    print("counter(5)", live(|| counter(5)));
    print("spsc(4)", live(|| spsc(4)));
    print("length(2, 10000)", live(|| length(2, 10_000)));
    print("handoff(10000)", live(|| handoff(10_000)));
    print("independent(2, 10000)", live(|| independent(2, 10_000)));
    print("switch(2, 20000)", live(|| switch(2, 20_000)));
}
