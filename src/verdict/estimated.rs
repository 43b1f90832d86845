//! Writes estimates with few digits.

use crate::rt::engine::estimate::MOST;

/// Returns an estimated number: all of its digits if it is short, otherwise two significant digits.
pub(crate) fn estimated(number: f64) -> String {
    match number {
        MOST.. => format!("more than {MOST:.0e}"),
        1e9.. => format!("about {number:.0e}"),
        _ => format!("about {number:.0}"),
    }
}

/// Returns an estimate that is mostly too low: its first significant digit, rounded down. `None` if
/// that is no more than the `known` number.
pub(crate) fn at_least(number: f64, known: u64) -> Option<String> {
    let unit = 10f64.powi(number.max(1.0).log10().floor() as i32);
    let least = (number / unit).floor() * unit;
    let told = match least {
        MOST.. => format!("{MOST:.0e}"),
        1e9.. => format!("{least:.0e}"),
        _ => format!("{least:.0}"),
    };
    (least > known as f64).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_not_longer_than_a_word() {
        assert_eq!(estimated(462_225.4), "about 462225");
        assert_eq!(estimated(6.4e12), "about 6e12");
        assert_eq!(estimated(MOST), "more than 1e200");
        let told = |number, known| at_least(number, known).unwrap_or_default();
        assert_eq!(told(7.0, 6), "7");
        assert_eq!(told(638_000.0, 138_000), "600000");
        assert_eq!(told(638_000.0, 600_000), "");
        assert_eq!(told(6.97e12, 1), "6e12");
        assert_eq!(told(MOST, 1), "1e200");
    }
}
