//! Writes numbers with their units.

/// Returns `1 step`, `2 steps`: the number with its unit, which is given in the singular.
pub(crate) fn counted(number: u64, unit: &str) -> String {
    let ending = match number {
        1 => "",
        _ if unit.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {unit}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_said_in_the_singular() {
        assert_eq!(counted(0, "event"), "0 events");
        assert_eq!(counted(1, "event"), "1 event");
        assert_eq!(counted(1, "context switch"), "1 context switch");
        assert_eq!(counted(2, "context switch"), "2 context switches");
    }
}
