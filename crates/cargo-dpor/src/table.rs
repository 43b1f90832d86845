//! The table of models, worst first.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use crate::summary::Line;

/// How a model ended, from the worst to the best.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It failed, and so did its test.
    Failed,
    /// A limit, a bound or the test itself left traces out.
    NotInFull,
    /// It was explored in full, and no two of its operations conflict.
    TestsNothing,
    /// It failed, and its test passed.
    FailedAsExpected,
    Replayed,
    /// The part of it that was asked for was explored in full.
    InPart,
    Complete,
}

/// A line of the summary, and how it ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Model {
    pub(crate) outcome: Outcome,
    #[serde(flatten)]
    pub(crate) line: Line,
}

/// The result of all tests together.
pub(crate) struct Ended<'a> {
    pub(crate) passed: bool,
    pub(crate) failed: &'a BTreeSet<String>,
}

impl Model {
    pub(crate) fn new(line: Line, ended: &Ended<'_>) -> Model {
        let count = |verdict| line.verdicts.get(verdict).copied().unwrap_or_default();
        let others = line.other_verdicts(&["complete", "failed", "replayed", "shard"]);
        // Without a list of failed tests each failure may be one of a test that has failed.
        let test_failed = !ended.passed
            && (ended.failed.is_empty()
                || line.test().is_none_or(|test| ended.failed.contains(test)));
        let outcome = if count("failed") > 0 && test_failed {
            Outcome::Failed
        } else if others > 0 {
            Outcome::NotInFull
        } else if !line.vacuous.is_empty() {
            Outcome::TestsNothing
        } else if count("failed") > 0 {
            Outcome::FailedAsExpected
        } else if count("replayed") > 0 {
            Outcome::Replayed
        } else if count("shard") > 0 {
            Outcome::InPart
        } else {
            Outcome::Complete
        };
        Model { outcome, line }
    }

    /// The word for the table.
    fn verdict(&self) -> String {
        match self.outcome {
            Outcome::Failed => "failed".to_owned(),
            Outcome::TestsNothing => "tests nothing".to_owned(),
            Outcome::FailedAsExpected => "fails as expected".to_owned(),
            Outcome::Replayed => "replayed".to_owned(),
            Outcome::InPart => match &self.line.shard {
                Some(shard) => format!("part {shard}"),
                None => "in part".to_owned(),
            },
            Outcome::Complete => "complete".to_owned(),
            Outcome::NotInFull => {
                let known = ["complete", "failed", "replayed", "shard"];
                let mut verdicts = self.line.verdicts.keys();
                let verdict = verdicts.find(|verdict| !known.contains(&&***verdict));
                verdict.map_or_else(|| "not in full".to_owned(), |it| it.replace('_', " "))
            }
        }
    }

    fn style(&self) -> Style {
        match self.outcome {
            Outcome::Failed => AnsiColor::Red.on_default().bold(),
            Outcome::NotInFull | Outcome::TestsNothing => AnsiColor::Yellow.on_default(),
            _ => AnsiColor::Green.on_default(),
        }
    }

    /// The memory model of the executions that were explored.
    fn memory(&self) -> &'static str {
        let has = |word| self.line.weak.0.contains_key(word);
        if has("explored") || has("asked") {
            "c11"
        } else if has("possible") {
            "sc, of more"
        } else if has("unasked") {
            "sc"
        } else if has("impossible") {
            "sc, as c11"
        } else {
            ""
        }
    }

    /// What was not explored, or why the model tests nothing.
    fn remarks(&self) -> String {
        let reason = match self.outcome {
            Outcome::Failed | Outcome::NotInFull => self.line.reason.clone(),
            Outcome::TestsNothing => Some(self.line.vacuous.join(", ").replace('_', " ")),
            _ => None,
        };
        let assumption = |it: &crate::summary::Assumption| {
            let places = match it.places.len() {
                1 => "1 place".to_owned(),
                places => format!("{places} places"),
            };
            format!("{} ({places})", it.kind.replace('_', " "))
        };
        let assumed: Vec<_> = self.line.assumptions.iter().map(assumption).collect();
        let assumed =
            (!assumed.is_empty()).then(|| format!("not explored: {}", assumed.join(", ")));
        let further = (self.line.further.0.iter()).filter(|pass| pass.complete);
        let further = further.map(|pass| pass.kind.replace('_', " "));
        let further: Vec<_> = further.collect();
        let further =
            (!further.is_empty()).then(|| format!("also explored: {}", further.join(", ")));
        let remarks: Vec<_> = reason.into_iter().chain(further).chain(assumed).collect();
        remarks.join("; ")
    }
}

/// Sorts the models, the worst first, and among equals the slowest first.
pub(crate) fn sort(models: &mut [Model]) {
    models.sort_by(|a, b| {
        let seconds = b.line.seconds.total_cmp(&a.line.seconds);
        (a.outcome.cmp(&b.outcome))
            .then(seconds)
            .then_with(|| a.line.name().cmp(b.line.name()))
    });
}

/// Prints the table and the line of totals.
pub(crate) fn print(models: &[Model]) {
    let mut packages: Vec<_> = models.iter().map(|model| &model.line.package).collect();
    packages.sort();
    packages.dedup();
    let mut places = BTreeMap::<(&Option<String>, &str, &str), u32>::new();
    for Model { line, .. } in models {
        *places
            .entry((&line.package, &line.target, line.name()))
            .or_default() += 1;
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // A library of an earlier version does not say it.
    let has_memory = models.iter().any(|model| !model.memory().is_empty());
    let memory = |text: &'static str| has_memory.then(|| text.to_owned());
    let header = ["verdict", "executions", "seconds"].map(str::to_owned);
    let header = header.into_iter().chain(memory("memory"));
    table.set_header(header.chain(["model".to_owned(), String::new()]));
    for model in models {
        let line = &model.line;
        let mut name = format!("{} {}", line.target, line.name());
        if packages.len() > 1 && line.package.as_ref().is_some_and(|it| *it != line.target) {
            name = format!("{}/{name}", line.package.as_deref().unwrap_or_default());
        }
        if places[&(&line.package, &*line.target, line.name())] > 1 && line.test().is_some() {
            name.push_str(&format!(" at {}", line.place));
        }
        let figures = [
            model.verdict(),
            thousands(line.executions),
            format!("{:.3}", line.seconds),
        ];
        let words = [
            // A name or a panic's message may have any characters in it.
            one_line(&name, 100),
            one_line(&model.remarks(), 160),
        ];
        table.add_row(
            figures
                .into_iter()
                .chain(memory(model.memory()))
                .chain(words),
        );
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if number == 1 || number == 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    say!();
    let mut styles = models.iter().map(|model| (model.verdict(), model.style()));
    for (number, row) in table.lines().enumerate() {
        let row = row.trim_end();
        let styled = match number {
            0 => None,
            _ => styles.next(),
        };
        match styled.and_then(|(word, style)| Some((row.find(&word)?, word, style))) {
            Some((at, word, style)) => {
                let (before, rest) = row.split_at(at);
                let rest = &rest[word.len()..];
                say!("{before}{style}{word}{style:#}{rest}");
            }
            None => say!("{row}"),
        }
    }
    say!();
    say!("{}", totals(models));
}

fn totals(models: &[Model]) -> String {
    let count = |outcome| {
        models
            .iter()
            .filter(|model| model.outcome == outcome)
            .count()
    };
    let counts = [
        (count(Outcome::Failed), "failed"),
        (count(Outcome::NotInFull), "not explored in full"),
        (count(Outcome::TestsNothing), "with nothing tested"),
        (count(Outcome::FailedAsExpected), "failed as expected"),
        (count(Outcome::Replayed), "replayed"),
        (count(Outcome::Complete), "complete"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let executions: u64 = models.iter().map(|model| model.line.executions).sum();
    let seconds: f64 = models.iter().map(|model| model.line.seconds).sum();
    let models = match models.len() {
        1 => "1 model".to_owned(),
        models => format!("{models} models"),
    };
    let counts = counts.join(", ");
    format!(
        "{models}: {counts}; {} executions, {seconds:.1} s",
        thousands(executions)
    )
}

/// Replaces control characters, and shortens the text.
fn one_line(text: &str, most: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = plain.clone().take(most).collect();
    if plain.count() > most {
        short.push('…');
    }
    short
}

pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(verdicts: &[(&str, u64)], test: &str, passed: bool, failed: &[&str]) -> Model {
        let line = Line {
            test: Some(test.to_owned()),
            verdicts: verdicts
                .iter()
                .map(|&(name, count)| (name.to_owned(), count))
                .collect(),
            ..Line::default()
        };
        let failed = failed.iter().map(|&test| test.to_owned()).collect();
        Model::new(
            line,
            &Ended {
                passed,
                failed: &failed,
            },
        )
    }

    #[test]
    fn the_harness_decides_whether_a_failure_was_expected() {
        let fails = [("failed", 1), ("complete", 2)];
        let outcome = |passed, failed: &[&str]| model(&fails, "a", passed, failed).outcome;
        assert_eq!(outcome(true, &[]), Outcome::FailedAsExpected);
        assert_eq!(outcome(false, &["b"]), Outcome::FailedAsExpected);
        assert_eq!(outcome(false, &["a"]), Outcome::Failed);
        assert_eq!(outcome(false, &[]), Outcome::Failed);
    }

    #[test]
    fn the_memory_model_is_the_weakest_that_was_explored() {
        let mut model = model(&[("complete", 2)], "a", true, &[]);
        assert_eq!(model.memory(), "");
        model.line.weak.0.insert("impossible".to_owned(), 1);
        assert_eq!(model.memory(), "sc, as c11");
        model.line.weak.0.insert("explored".to_owned(), 1);
        assert_eq!(model.memory(), "c11");
    }

    #[test]
    fn the_worst_model_is_the_first() {
        let mut models = [
            model(&[("complete", 1)], "complete", false, &["f"]),
            model(&[("stopped", 1)], "stopped", false, &["f"]),
            model(&[("failed", 1)], "f", false, &["f"]),
        ];
        sort(&mut models);
        let names: Vec<_> = models.iter().map(|model| model.line.name()).collect();
        assert_eq!(names, ["f", "stopped", "complete"]);
        let told = totals(&models);
        assert!(
            told.starts_with("3 models: 1 failed, 1 not explored in full, 1 complete;"),
            "{told}"
        );
    }

    #[test]
    fn text_of_the_test_stays_on_its_row() {
        assert_eq!(one_line("a\nb\u{1b}c", 9), "a b c");
        assert_eq!(one_line("abcd", 2), "ab…");
        assert_eq!(thousands(1234567), "1,234,567");
    }
}
