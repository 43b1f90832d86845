//! Follows the standard output of the tests: passes it on, and notes which tests failed.
//!
//! The summary says what came of each model, and not what came of its test: a test may expect a
//! failure. The harness says that, in its standard form or, under nextest, as lines of JSON.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read, Write};

use serde::Deserialize;

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Standard,
    /// Nextest's events. Its output for people goes to standard error.
    Json,
}

/// The facts that the harness has told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Number of tests that ran.
    pub(crate) ran: u64,
    pub(crate) failed: BTreeSet<String>,
    /// Number of test programs that ended before they had told their result.
    pub(crate) crashed: u64,
}

/// Follows the output to its end.
pub(crate) fn follow(mut from: impl Read, form: Form) -> Told {
    let mut watch = Watch::default();
    let mut out = Out::new();
    let mut buffer = [0; 8192];
    let mut line = Vec::new();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            let ends = part.ends_with(b"\n");
            if form == Form::Standard {
                out.write(part, &line);
            }
            if ends {
                watch.line(String::from_utf8_lossy(&line).trim_end(), form);
                line.clear();
            }
        }
        out.flush();
    }
    if !line.is_empty() {
        watch.line(String::from_utf8_lossy(&line).trim_end(), form);
    }
    watch.end()
}

/// Standard output. The harness uses no colours in a pipe, so they are added here for a terminal.
struct Out {
    out: anstream::Stdout,
    coloured: bool,
}

impl Out {
    fn new() -> Out {
        Out {
            out: anstream::stdout(),
            coloured: std::io::stdout().is_terminal(),
        }
    }

    /// Writes a part of a line. `line` is the line so far, with this part.
    fn write(&mut self, part: &[u8], line: &[u8]) {
        let coloured = if self.coloured {
            coloured(part, line)
        } else {
            None
        };
        let _ = match coloured {
            Some(text) => self.out.write_all(text.as_bytes()),
            None => self.out.write_all(part),
        };
    }

    fn flush(&mut self) {
        let _ = self.out.flush();
    }
}

/// Returns the part with its last word in colour, if that is the result of a test. The harness may
/// write the word and the end of the line apart.
fn coloured(part: &[u8], line: &[u8]) -> Option<String> {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let (part, line) = (
        std::str::from_utf8(part).ok()?,
        std::str::from_utf8(line).ok()?,
    );
    let (_, word) = line.strip_prefix("test ")?.trim_end().rsplit_once("... ")?;
    let colour = match word {
        "ok" => Green,
        "FAILED" => Red,
        word if word.starts_with("ignored") => Yellow,
        _ => return None,
    };
    let (before, end) = part.rsplit_once(word)?;
    let style = colour.on_default();
    Some(format!("{before}{style}{word}{style:#}{end}"))
}

/// The lines so far.
#[derive(Default)]
struct Watch {
    told: Told,
    /// Whether a program has begun and not told its result.
    runs: bool,
    /// The names since the last line `failures:`. The report of a test may have such a line, too,
    /// so the names count only if the result follows.
    names: Option<Vec<String>>,
}

/// An event of nextest.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    name: Option<String>,
}

impl Watch {
    fn line(&mut self, line: &str, form: Form) {
        match form {
            Form::Standard => self.standard(line),
            Form::Json => self.json(line),
        }
    }

    fn standard(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("running ")
            && (count.ends_with(" tests") || count == "1 test")
        {
            self.told.crashed += u64::from(self.runs);
            self.runs = true;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.runs = false;
            let counts = result.split([';', '.']).map(str::trim);
            let of = |count: &str, word| count.strip_suffix(word)?.trim().parse::<u64>().ok();
            for count in counts {
                let count = of(count, "passed").or_else(|| of(count, "failed"));
                self.told.ran += count.unwrap_or_default();
            }
            self.told
                .failed
                .extend(self.names.take().into_iter().flatten());
        } else if line == "failures:" {
            self.names = Some(Vec::new());
        } else if let Some(names) = &mut self.names {
            match line.strip_prefix("    ") {
                Some(name) => names.push(name.to_owned()),
                None if line.is_empty() => {}
                None => self.names = None,
            }
        }
    }

    fn json(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            return;
        };
        if event.kind != "test" || !matches!(&*event.event, "ok" | "failed") {
            return;
        }
        self.told.ran += 1;
        if let (Some(name), "failed") = (event.name, &*event.event) {
            // The name begins with those of the package and the program.
            let name = name.split_once('$').map_or(&*name, |(_, test)| test);
            self.told.failed.insert(name.to_owned());
        }
    }

    fn end(mut self) -> Told {
        self.told.crashed += u64::from(self.runs);
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, form: Form) -> Told {
        let mut watch = Watch::default();
        text.lines().for_each(|line| watch.line(line, form));
        watch.end()
    }

    #[test]
    fn failed_tests_are_those_of_the_last_list() {
        let text = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n\
                    failures:\n    not this\nbut text\n\n\nfailures:\n    b::c\n    d e\n\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        let failed = ["b::c", "d e"].map(str::to_owned);
        let expected = Told {
            ran: 3,
            failed: failed.into(),
            crashed: 0,
        };
        assert_eq!(told(text, Form::Standard), expected);
    }

    #[test]
    fn the_result_of_a_test_has_a_colour() {
        let green = "\u{1b}[32mok\u{1b}[0m";
        let whole = coloured(b"test a ... ok\n", b"test a ... ok\n");
        assert_eq!(whole, Some(format!("test a ... {green}\n")));
        assert_eq!(coloured(b"ok", b"test a ... ok"), Some(green.to_owned()));
        for (part, line) in [("\n", "test a ... ok\n"), ("ok\n", "it is ... ok\n")] {
            assert_eq!(coloured(part.as_bytes(), line.as_bytes()), None);
        }
    }

    #[test]
    fn a_program_without_a_result_has_crashed() {
        let text = "running 1 test\nrunning 0 tests\ntest result: ok. 0 passed; 0 failed\nrunning 2 tests\n";
        assert_eq!(told(text, Form::Standard).crashed, 2);
    }

    #[test]
    fn events_of_nextest_are_counted() {
        let text = r#"{"type":"suite","event":"started","test_count":2}
{"type":"test","event":"started","name":"queue::races$a::b"}
{"type":"test","event":"failed","name":"queue::races$a::b","exec_time":0.1}
no event
{"type":"test","event":"ok","name":"queue$c"}"#;
        let told = told(text, Form::Json);
        assert_eq!((told.ran, told.failed), (2, ["a::b".to_owned()].into()));
    }
}
