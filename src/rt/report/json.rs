//! How is an execution written for other programs?
//!
//! As JSON, in the format that `docs/REPORTS.md` describes. One line per thread, object, event and race,
//! so that two files can be compared line by line and a long one can be searched with `grep`.

use std::io::{Result, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::execution::Execution;

/// The execution as JSON, with a line break at the end.
pub(crate) fn render(execution: &Execution) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines::default());
    let written = execution.serialize(&mut serializer);
    let text = written.map(|()| String::from_utf8(bytes));
    let Ok(Ok(mut text)) = text else {
        unreachable!("dpor bug: an execution is plain data, so it can be written as JSON")
    };
    text.push('\n');
    text
}

/// Breaks lines between the fields of the outermost object and between the items of its lists.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// Whether the value that is being written has anything in it.
    filled: bool,
}

/// How deep values are that stand on lines of their own.
const DEPTH: usize = 2;

impl Lines {
    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> Result<()> {
        self.depth -= 1;
        if self.filled && self.depth < DEPTH {
            self.line(out)?;
        }
        self.filled = true;
        out.write_all(bracket)
    }

    fn line<W: ?Sized + Write>(&self, out: &mut W) -> Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b" "))
    }

    fn item<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.depth <= DEPTH {
            self.line(out)?;
        }
        Ok(())
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> Result<()> {
        self.item(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> Result<()> {
        self.item(out, first)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> Result<()> {
        self.filled = true;
        Ok(())
    }
}
