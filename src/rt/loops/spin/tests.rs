//! Is a reset log like a new one, and do the fast path and the full path of a round agree?

use std::panic::Location;

use crate::rt::event::mix::mix;
use crate::rt::loops::spin::*;

#[test]
fn a_log_that_is_reset_is_like_a_new_one() {
    let site = Location::caller();
    let (one, other) = (ObjectId(1), ObjectId(2));
    let used: [&dyn Fn(&mut SpinLog); 5] = [
        &|log| {
            log.note_more(one, 1, 1);
            log.note(other, 1, 2, false);
        },
        &|log| {
            log.come_back(site, one, 1, 1);
            log.note(one, 1, 1, true);
            log.come_back(site, one, 1, 1);
            log.note_more(other, 1, 1);
            assert!(log.repeats_itself(site, one).is_some());
        },
        // The loop only reads.
        &|log| {
            let mut waits = false;
            for _ in 0..5 {
                log.note_more(one, 1, 1);
                waits = log.hint(site, 1);
            }
            assert!(waits);
        },
        // The loop makes a change, and undoes it or not.
        &|log| {
            for left in [1, 1, 1, 2] {
                log.count_round(site);
                for (found, left) in [(1, 2), (2, left)] {
                    if !log.note(one, found, left, false) {
                        log.note_more(one, found, left);
                    }
                }
                log.hint(site, 1);
            }
            log.touch_memory(1);
            log.note_more(one, 1, 2);
            assert!(log.follows());
        },
        // The calls that would be its first iteration are left out.
        &|log| {
            log.hint(site, 1);
            log.change();
            log.count_round(site);
        },
    ];
    for uses in used {
        let mut log = SpinLog::default();
        uses(&mut log);
        log.reset();
        assert_eq!(format!("{log:?}"), format!("{:?}", SpinLog::default()));
    }
}

/// An action of a thread in a loop.
#[derive(Clone, Copy)]
enum Does {
    Reads(ObjectId, u64),
    Changes(ObjectId),
    ComesToHint(usize),
}

/// A loop of these actions, with another action now and then.
fn rounds(seed: u64) -> Vec<Does> {
    let mut drawn = seed;
    let mut draw = |most: u64| {
        drawn = mix(drawn.wrapping_add(STEP));
        drawn % most
    };
    let mut does = |changes: u64| match draw(3 + changes) {
        0 => Does::ComesToHint(draw(2) as usize),
        1 | 2 => Does::Reads(ObjectId(draw(3) as u32), draw(2)),
        _ => Does::Changes(ObjectId(draw(3) as u32)),
    };
    let body: Vec<Does> = (0..2 + seed % 6).map(|_| does(seed % 2)).collect();
    let mut all = Vec::new();
    for round in 0..30 {
        all.extend_from_slice(&body);
        if round % 11 == 10 {
            all.push(does(1));
        }
    }
    all
}

#[test]
fn looking_again_comes_to_the_same_as_any_other_round() {
    let hints = [Location::caller(), here()];
    let (mut again, mut waits) = (0, [0; 2]);
    for seed in 0..3000 {
        let bound = (seed / 6 % 3) as u32;
        let (mut log, mut other) = (SpinLog::default(), SpinLog::default());
        for does in rounds(seed) {
            let (object, found, left) = match does {
                Does::Reads(object, value) => (object, value, value),
                Does::Changes(object) => (object, 1, 2),
                Does::ComesToHint(hint) => {
                    let hint = hints[hint];
                    let shortly = log.look_again(hint, bound);
                    again += usize::from(shortly.is_some());
                    let is_to_wait = shortly.unwrap_or_else(|| log.hint(hint, bound));
                    assert_eq!(is_to_wait, other.hint(hint, bound), "seed {seed}");
                    if is_to_wait {
                        assert_eq!(log.awaited(), other.awaited(), "seed {seed}");
                        let in_cycle = log.awaits_in_cycle();
                        assert_eq!(in_cycle, other.awaits_in_cycle(), "seed {seed}");
                        waits[usize::from(in_cycle.is_none())] += 1;
                    }
                    assert_eq!(log.is_alike(), other.is_alike());
                    continue;
                }
            };
            for log in [&mut log, &mut other] {
                if !log.note(object, found, left, false) {
                    log.note_more(object, found, left);
                }
            }
        }
    }
    assert!(
        again > 1000 && waits.iter().all(|&times| times > 1000),
        "{again} {waits:?}"
    );
}

#[track_caller]
fn here() -> Site {
    Location::caller()
}
