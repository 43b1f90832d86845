//! Numbers the models of a test, and finds the model for which a schedule is.
//!
//! A test may have several models, and a schedule of one of them does not apply to the others.
//! Those are explored as usual, because the test may depend on their results. Models are counted on
//! each OS thread, because the standard harness starts one thread for each test.

use std::borrow::Cow;
use std::cell::Cell;

thread_local! {
    /// Number of models that have begun on this OS thread.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// The text in front of the number of a model.
const MODEL: &str = "model ";

/// Counts the model that begins now.
pub(crate) fn begin() {
    BEGUN.set(BEGUN.get() + 1);
}

/// Returns the schedule of the model that began last, in the form for `DPOR_REPLAY`:
/// `model 3: v2 main*2`, or without a number for the first model.
pub(crate) fn numbered(schedule: &str) -> Cow<'_, str> {
    of_model(last(), schedule)
}

/// Returns the schedule of the model with this number, in that form.
pub(crate) fn of_model(nth: u64, schedule: &str) -> Cow<'_, str> {
    match nth {
        0 | 1 => Cow::Borrowed(schedule),
        nth => Cow::Owned(format!("{MODEL}{nth}: {schedule}")),
    }
}

/// Returns the number of the model that began last.
pub(crate) fn last() -> u64 {
    BEGUN.get().max(1)
}

/// Splits a text that may name its model into the schedule and the number of the model.
pub(crate) fn unnumbered(text: &str) -> Result<(&str, u64), String> {
    let Some(rest) = text.trim_start().strip_prefix(MODEL) else {
        return Ok((text, 1));
    };
    let parted = rest
        .split_once(':')
        .map(|(nth, schedule)| (nth.trim(), schedule));
    let read = |(nth, schedule): (&str, _)| {
        let digits = nth.bytes().all(|byte| byte.is_ascii_digit());
        let nth: u64 = digits.then_some(nth)?.parse().ok()?;
        (nth > 0).then_some((schedule, nth))
    };
    parted.and_then(read).ok_or_else(|| {
        let found: String = rest.chars().take(10).collect();
        format!("expected the number of a model of the test, from 1, and a colon behind `model`; there is `{found}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_for_the_model_that_it_was_found_in() {
        let said = |text| unnumbered(text).expect("well formed");
        begin();
        assert_eq!(numbered("v2 main"), "v2 main");
        assert_eq!(last(), 1);
        begin();
        assert_eq!(numbered("v2 main"), "model 2: v2 main");
        assert_eq!(last(), 2);
        assert_eq!(said("v2 main"), ("v2 main", 1));
        assert_eq!(said("model 2: v2 main"), (" v2 main", 2));
    }

    #[test]
    fn what_is_no_number_of_a_model_is_refused() {
        for text in [
            "model : v2",
            "model 0: v2",
            "model +1: v2",
            "model 3 v2 main",
        ] {
            let error = unnumbered(text).expect_err(text);
            let rest: String = text["model ".len()..].chars().take(10).collect();
            assert!(
                error.starts_with("expected the number of a model"),
                "{error}"
            );
            assert!(error.ends_with(&format!("there is `{rest}`")), "{error}");
        }
    }
}
