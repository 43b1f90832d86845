//! Which rows of a table, or steps of a schedule, are rounds of one loop?
//!
//! A loop repeats the same few rows, maybe with several threads in turn. One round of them and a
//! count say as much, and leave room for the other rows.

/// The longest round that is recognised, in rows: a few threads with a few rows each.
const LENGTH_MAX: usize = 24;

/// A reader reads a few rows faster than a line that counts them, so two rounds stay as they are.
const TIMES_MIN: usize = 3;

/// Consecutive rows: one round of `length` rows, repeated `times` times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rounds {
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) times: usize,
}

/// Splits `rows` rows into rounds. A row that no other row repeats is a round of its own. `same`
/// says whether the second row may stand for another round of the first.
pub(crate) fn rounds(rows: usize, same: impl Fn(usize, usize) -> bool) -> Vec<Rounds> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < rows {
        let at = |length: usize| {
            let pairs = (start..rows - length).take_while(|&row| same(row, row + length));
            let times = pairs.count() / length + 1;
            Rounds {
                start,
                length,
                times,
            }
        };
        let lengths = 1..=LENGTH_MAX.min(rows - start - 1);
        let repeated = lengths.map(at).filter(|it| it.times >= TIMES_MIN);
        // The round that leaves out most rows; of two that leave out as many, the shorter one.
        let best = repeated.max_by_key(|it| ((it.times - 1) * it.length, LENGTH_MAX - it.length));
        let next = best.unwrap_or(Rounds {
            start,
            length: 1,
            times: 1,
        });
        start += next.length * next.times;
        found.push(next);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &str) -> Vec<(usize, usize, usize)> {
        let rows = rows.as_bytes();
        let found = rounds(rows.len(), |a, b| rows[a] == rows[b]);
        let all = found.iter().map(|it| it.length * it.times).sum::<usize>();
        assert_eq!(all, rows.len(), "every row is in one of the rounds");
        let repeated = found.iter().filter(|it| it.times > 1);
        repeated.map(|it| (it.start, it.length, it.times)).collect()
    }

    #[test]
    fn a_block_that_is_repeated_is_found_where_it_begins() {
        assert_eq!(of(""), []);
        assert_eq!(of("a"), []);
        assert_eq!(of("abcd"), []);
        assert_eq!(of("xyababababa"), [(2, 2, 4)]);
        assert_eq!(of("aabbaabbaabbc"), [(0, 4, 3)]);
        assert_eq!(of("aaabcbcbcddd"), [(0, 1, 3), (3, 2, 3), (9, 1, 3)]);
    }

    #[test]
    fn two_rounds_stay_as_they_are() {
        assert_eq!(of("xababy"), []);
        assert_eq!(of("xaay"), []);
    }

    #[test]
    fn a_round_that_is_too_long_is_none() {
        let alphabet = "abcdefghijklmnopqrstuvwxyz";
        assert_eq!(of(&alphabet[..LENGTH_MAX].repeat(3)), [(0, LENGTH_MAX, 3)]);
        assert_eq!(of(&alphabet[..LENGTH_MAX + 1].repeat(3)), []);
    }
}
