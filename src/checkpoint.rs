//! Where is an unfinished exploration kept, and when is it taken up again?
//!
//! A file holds the lines that say what it belongs to, then those of the loops that have waited (`gives_up.rs`), what the
//! explorer still has to do (`rt/explore/checkpoint.rs`), and a checksum over both. It is written beside its place and then
//! renamed, so that there is a whole one at any time, whenever the process is killed. A file that
//! belongs to another test, or to another build of this one, is refused: the numbers in it
//! would mean something else. One that belongs to another model of the test is left to that one.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::config::Builder;
use crate::gives_up::FirstWait;
use crate::progress::{above, above_captured};
use crate::rt::exec::image::Image;
use crate::rt::explore::driver::Driver;

/// The first line of every file. The number changes with the format.
const MAGIC: &str = "dpor checkpoint 6";

/// What the line is called that says which of the models of a test the file belongs to.
const MODEL: &str = "model";

/// The file of one exploration.
pub(crate) struct Checkpoint {
    file: PathBuf,
    /// How many executions there are between two writes.
    interval: u64,
    /// What the file belongs to: names of lines, and the lines.
    identity: Vec<(&'static str, String)>,
    /// How many executions had begun when it was last written.
    written: u64,
    /// Whether the user knows that it cannot be written.
    told: bool,
}

impl Checkpoint {
    /// The file that the settings ask for, if they do. `site` is where the model stands.
    pub(crate) fn new(
        settings: &Builder,
        site: &dyn std::fmt::Display,
    ) -> Result<Option<Checkpoint>, String> {
        let Some(file) = &settings.checkpoint_file else {
            return Ok(None);
        };
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        let identity = vec![
            ("version of dpor", env!("CARGO_PKG_VERSION").to_owned()),
            ("test", name.to_owned()),
            ("build", BUILD.get_or_init(build).clone()?),
            (MODEL, site.to_string()),
            (
                "setting",
                format!(
                    "order {}, spin_bound {}, spurious_failures {}, spurious_wakeups {}, timeout_bound {}, \
                     max_rounds {}, catch_panics {}, expect_explicit_explore {}, check_leaks {}",
                    settings.order.name(),
                    settings.spin_bound,
                    settings.spurious_failures,
                    settings.spurious_wakeups,
                    settings.timeout_bound,
                    settings
                        .max_rounds
                        .map_or("none".to_owned(), |most| most.to_string()),
                    settings.catch_panics,
                    settings.expect_explicit_explore,
                    settings.check_leaks
                ),
            ),
        ];
        Ok(Some(Checkpoint {
            file: file.clone(),
            interval: settings.checkpoint_interval as u64,
            identity,
            written: 0,
            told: false,
        }))
    }

    /// Takes up what the file holds, if there is one, and gives the first waits at hints that it knows of. `None` if it
    /// belongs to another model of the test, which has been told then: this one has no file.
    pub(crate) fn resume(&mut self, driver: &mut Driver) -> Result<Option<Vec<FirstWait>>, String> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.try_to_write().map(|()| Some(Vec::new()));
            }
            Err(_) if self.file.is_dir() => {
                return Err(format!(
                    "the checkpoint {} (DPOR_CHECKPOINT_FILE) is a directory, and not a file",
                    self.file.display()
                ));
            }
            Err(error) => return Err(self.refusal(&format!("cannot be read: {error}"))),
        };
        let damaged = || self.refusal("is damaged");
        let (content, checksum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
        if fnv(content) != u64::from_le_bytes(*checksum) {
            return Err(damaged());
        }
        let mut rest = content;
        if line(&mut rest) != Some(MAGIC) {
            return Err(self.refusal("has a format that this version of dpor does not know"));
        }
        for (what, ours) in &self.identity {
            let theirs = line(&mut rest).ok_or_else(damaged)?;
            if theirs != ours && *what == MODEL {
                let told = format!(
                    "dpor: the checkpoint {} (DPOR_CHECKPOINT_FILE) is for the model at {theirs} of this test, and stays \
                     as it is; the model at {ours} is explored without a checkpoint\n",
                    self.file.display()
                );
                above_captured(&told);
                return Ok(None);
            }
            if theirs != ours {
                return Err(self.refusal(&format!(
                    "belongs to another {what}: `{theirs}`, and not `{ours}`"
                )));
            }
        }
        let mut waits = Vec::new();
        loop {
            match line(&mut rest).ok_or_else(damaged)? {
                "" => break,
                wait => waits.push(FirstWait::parse(wait).ok_or_else(damaged)?),
            }
        }
        if !driver.restore(rest, &Image) {
            return Err(damaged());
        }
        self.written = driver.stats.begun();
        Ok(Some(waits))
    }

    /// Whether a file can be written here, which is better known before the exploration than after it.
    fn try_to_write(&self) -> Result<(), String> {
        let beside = self.beside();
        let tried = File::create(&beside).and_then(|_| fs::remove_file(&beside));
        tried.map_err(|error| {
            format!(
                "the checkpoint {} (DPOR_CHECKPOINT_FILE) cannot be written: {error}",
                self.file.display()
            )
        })
    }

    /// The exploration begins anew: what the file holds is of no use any more.
    pub(crate) fn begin_anew(&mut self) {
        self.written = 0;
    }

    /// Writes the file if it is time to, or in any case if the exploration has been `stopped`.
    pub(crate) fn tick(
        &mut self,
        driver: &Driver,
        waits: impl FnOnce() -> Vec<FirstWait>,
        stopped: bool,
    ) {
        let begun = driver.stats.begun();
        if begun - self.written < self.interval && !stopped {
            return;
        }
        let Some(bytes) = driver.save(&Image) else {
            return;
        };
        self.written = begun;
        let file = self.file.display();
        if let Err(error) = bytes.and_then(|bytes| {
            let written = self.write(&waits(), &bytes);
            written.map_err(|error| error.to_string())
        }) && !std::mem::replace(&mut self.told, true)
        {
            let what = "(DPOR_CHECKPOINT_FILE) cannot be written";
            above(|| eprintln!("dpor: the checkpoint {file} {what}: {error}"));
        }
    }

    fn write(&self, waits: &[FirstWait], payload: &[u8]) -> std::io::Result<()> {
        let mut bytes = format!("{MAGIC}\n").into_bytes();
        for (_, line) in &self.identity {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        for wait in waits {
            bytes.extend_from_slice(wait.line().as_bytes());
            bytes.push(b'\n');
        }
        // An empty line ends these.
        bytes.push(b'\n');
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&fnv(&bytes).to_le_bytes());
        let beside = self.beside();
        let mut file = File::create(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &self.file)
    }

    /// Where the file is written before it gets its name.
    fn beside(&self) -> PathBuf {
        let mut beside = self.file.clone().into_os_string();
        beside.push(".new");
        beside.into()
    }

    /// Everything has been explored: there is nothing to take up any more, and what a killed process
    /// was writing is of no use either.
    pub(crate) fn remove(&self) {
        for file in [&self.file, &self.beside()] {
            if let Err(error) = fs::remove_file(file)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                let file = file.display();
                let what = "is of no use any more, but stays";
                above(|| eprintln!("dpor: the checkpoint {file} {what}: {error}"));
            }
        }
    }

    fn refusal(&self, why: &str) -> String {
        format!(
            "the checkpoint {} (DPOR_CHECKPOINT_FILE) {why}; remove the file to start anew",
            self.file.display()
        )
    }
}

/// Takes the next line off the bytes.
fn line<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    std::str::from_utf8(line).ok()
}

/// A checksum that no change of one byte survives (FNV-1a).
fn fnv(bytes: &[u8]) -> u64 {
    let step = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// [`build`], found out once: the program has some megabytes.
static BUILD: OnceLock<Result<String, String>> = OnceLock::new();

/// What tells this program from another build of it: a hash of its file.
fn build() -> Result<String, String> {
    let hash = |path: &Path| {
        let mut file = File::open(path)?;
        let mut hasher = DefaultHasher::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(format!("{:016x}", hasher.finish())),
                read => hasher.write(&buffer[..read]),
            }
        }
    };
    std::env::current_exe()
        .and_then(|path| hash(&path))
        .map_err(|error: std::io::Error| {
            format!("a checkpoint needs the program's own file, which cannot be read: {error}")
        })
}
