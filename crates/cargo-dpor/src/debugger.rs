//! `cargo dpor replay --debugger`: runs a schedule under gdb or lldb.
//!
//! The debugger is no child of cargo's, which Ctrl-C would end. So cargo only builds the test, and
//! its program gets the folder and the variables that cargo would give it.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Message, Package};

/// The function of std through which each panic goes.
const PANIC: &str = "rust_panic";

/// The debuggers, and whether each is a gdb. Those that come with Rust know its types.
const KNOWN: [(&str, bool); 4] = [
    ("rust-gdb", true),
    ("gdb", true),
    ("rust-lldb", false),
    ("lldb", false),
];

/// A debugger that is installed.
pub(crate) struct Debugger {
    program: &'static str,
    is_gdb: bool,
}

impl Debugger {
    pub(crate) fn find() -> Result<Debugger> {
        let starts = |program: &str| {
            let mut command = Command::new(program);
            command.arg("--version").stdin(Stdio::null());
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let found = KNOWN.into_iter().find(|(program, _)| starts(program));
        let (program, is_gdb) = found.context(
            "no debugger is in PATH; --debugger looks for rust-gdb, gdb, rust-lldb and lldb",
        )?;
        Ok(Debugger { program, is_gdb })
    }

    /// Returns the command that runs a program up to its first panic and shows the stack there. It
    /// then ends, or else asks for commands. The program and its arguments follow.
    pub(crate) fn command(&self, ends: bool) -> Command {
        let mut command = Command::new(self.program);
        let (flag, stop, before) = match self.is_gdb {
            true => ("-ex", format!("break {PANIC}"), "--args"),
            false => ("-o", format!("breakpoint set --name {PANIC}"), "--"),
        };
        if self.is_gdb {
            command.args(["-q", "-ex", "set print thread-events off"]);
        }
        if ends {
            command.arg(if self.is_gdb { "-batch" } else { "--batch" });
        }
        for order in [&*stop, "run", "bt"] {
            command.args([flag, order]);
        }
        command.arg(before);
        command
    }
}

/// Builds the one program of this command of cargo's, and returns its path; `None` if cargo could
/// not build it.
pub(crate) fn build(mut command: Command) -> Result<Option<PathBuf>> {
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cargo")?;
    let mut programs = Vec::new();
    if let Some(out) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(out)) {
            if let Message::CompilerArtifact(made) = message.context("cargo")?
                && made.profile.test
            {
                programs.extend(made.executable);
            }
        }
    }
    if !child.wait().context("cargo")?.success() {
        return Ok(None);
    }
    ensure!(
        programs.len() == 1,
        "cargo has built {} test programs where there is one",
        programs.len()
    );
    Ok(programs.pop().map(Into::into))
}

/// Gives the program of a package the folder and the variables that it has under cargo.
pub(crate) fn as_under_cargo(command: &mut Command, package: &Package) {
    let folder = package.manifest_path.parent();
    if let Some(folder) = folder {
        command
            .current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder);
    }
    command.env("CARGO_PKG_NAME", package.name.as_str());
    command.env("CARGO_PKG_VERSION", package.version.to_string());
}
