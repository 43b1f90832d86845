//! How is a number of things said?

use crate::rt::engine::estimate::MOST;

/// `1 step`, `2 steps`: the number with its unit, which is given for one.
pub(crate) fn counted(number: u64, unit: &str) -> String {
    let ending = match number {
        1 => "",
        _ if unit.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {unit}{ending}")
}

/// An estimated number: as it is, or two significant digits of it where more would be too long to read.
pub(crate) fn estimated(number: f64) -> String {
    match number {
        MOST.. => format!("more than {MOST:.0e}"),
        1e9.. => format!("about {number:.0e}"),
        _ => format!("about {number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_not_longer_than_a_word() {
        assert_eq!(estimated(462_225.4), "about 462225");
        assert_eq!(estimated(6.4e12), "about 6e12");
        assert_eq!(estimated(MOST), "more than 1e200");
    }

    #[test]
    fn one_thing_is_said_in_the_singular() {
        assert_eq!(counted(0, "event"), "0 events");
        assert_eq!(counted(1, "event"), "1 event");
        assert_eq!(counted(1, "context switch"), "1 context switch");
        assert_eq!(counted(2, "context switch"), "2 context switches");
    }
}
