//! Where is an unfinished exploration kept, and when is it taken up again?
//!
//! A file holds the lines that say what it belongs to, then those of the loops that have waited
//! (`first_waits.rs`), what the test has said that executions came to (`outcomes.rs`), what the
//! explorer still has to do (`rt/engine/checkpoint.rs`), and a checksum over all of it. It is
//! written beside its place and then renamed, so that there is a whole one at any time, whenever
//! the process is killed. A file that belongs to another test, or to another build of this one, is
//! refused: the numbers in it would mean something else. One that belongs to another model of the
//! test is left to that one, and so is one that another process has written meanwhile: only who has
//! written the file or taken it up writes it again and removes it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::config::Builder;
use crate::exploration::first_waits::FirstWait;
use crate::exploration::progress::{above, above_captured};
use crate::rt::engine::driver::Driver;
use crate::rt::statics::image::Image;
use crate::verdict::outcomes::Outcomes;

/// The first line of every file. The number changes with the format.
const MAGIC: &str = "dpor checkpoint 11";

/// How it begins, whatever the number.
const BEGINS: &str = "dpor checkpoint ";

/// What the lines are called that say which test the file belongs to, which of its models, and
/// which settings.
const TEST: &str = "test";
const MODEL: &str = "model";
const SETTINGS: &str = "settings";

/// How the name ends of a file that is being written.
const BESIDE: &str = ".new";

/// What it knows besides what the explorer still has to do: the first waits, and what executions
/// came to.
pub(crate) type Known = (Vec<FirstWait>, Outcomes);

/// The file of one exploration.
pub(crate) struct Checkpoint {
    file: PathBuf,
    claim: Claim,
    /// Whether what is there is this exploration's, if there is anything.
    is_ours: bool,
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
            (TEST, name.to_owned()),
            ("build", BUILD.get_or_init(build).clone()?),
            (MODEL, site.to_string()),
            (
                SETTINGS,
                format!(
                    "order {}, spin_bound {}, await_loops {}, spurious_failures {}, spurious_wakeups {}, timeout_bound {}, \
                     max_rounds {}, catch_panics {}, detached_may_block {}, expect_explicit_explore {}, check_leaks {}",
                    settings.order.name(),
                    settings.spin_bound,
                    settings.await_loops,
                    settings.spurious_failures,
                    settings.spurious_wakeups,
                    settings.timeout_bound,
                    settings
                        .max_rounds
                        .map_or("none".to_owned(), |most| most.to_string()),
                    settings.catch_panics,
                    settings.detached_may_block,
                    settings.expect_explicit_explore,
                    settings.check_leaks
                ),
            ),
        ];
        let claim = Claim::new(file, name).map_err(|other| {
            format!(
                "the checkpoint {} (DPOR_CHECKPOINT_FILE) is that of the test `{other}`, which runs at the same time; \
                 name another file for this test",
                file.display()
            )
        })?;
        Ok(Some(Checkpoint {
            file: file.clone(),
            claim,
            is_ours: false,
            interval: settings.checkpoint_interval as u64,
            identity,
            written: 0,
            told: false,
        }))
    }

    /// Takes up what the file holds, if there is one, and gives what it knows besides. `None` if it
    /// belongs to another model of the test, which has been told then: this one has no file.
    pub(crate) fn resume(&mut self, driver: &mut Driver) -> Result<Option<Known>, String> {
        // Not every run comes to the end, where nothing may be left: a file that was torn would
        // stay for good where the last run fails, or where there is none.
        for torn in self.left_over() {
            // Should it stay, it is told at the end.
            let _ = fs::remove_file(torn);
        }
        // What is no file may never end, or never come to anything.
        if let Ok(known) = fs::metadata(&self.file)
            && !known.is_file()
        {
            let file = self.file.display();
            let what = match known.is_dir() {
                true => "a directory",
                false => "a device or a pipe",
            };
            return Err(format!(
                "the checkpoint {file} (DPOR_CHECKPOINT_FILE) is {what}, and not a file"
            ));
        }
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.try_to_write().map(|()| Some(Known::default()));
            }
            Err(error) => return Err(self.refusal(&format!("cannot be read: {error}"))),
        };
        // What somebody has named by mistake is not to be removed. One that is torn is as long as
        // it is.
        let begins = BEGINS.as_bytes();
        if !bytes.starts_with(begins) && !begins.starts_with(&bytes) {
            let file = self.file.display();
            return Err(format!(
                "the file {file} (DPOR_CHECKPOINT_FILE) is no checkpoint of dpor's, and stays as it is; name another one"
            ));
        }
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
                return Err(self.misfit(what, theirs, ours));
            }
        }
        let mut waits = Vec::new();
        loop {
            match line(&mut rest).ok_or_else(damaged)? {
                "" => break,
                wait => waits.push(FirstWait::parse(wait).ok_or_else(damaged)?),
            }
        }
        let outcomes = read_outcomes(&mut rest).ok_or_else(damaged)?;
        if !driver.restore(rest, &Image) {
            return Err(damaged());
        }
        self.written = driver.stats.begun();
        self.is_ours = true;
        Ok(Some((waits, outcomes)))
    }

    /// Whether a file can be written here, which is better known before the exploration than after
    /// it.
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
    pub(crate) fn restart(&mut self) {
        self.written = 0;
    }

    /// Writes the file if it is time to, or in any case if the exploration has been `stopped`.
    pub(crate) fn tick(&mut self, driver: &Driver, known: impl FnOnce() -> Known, stopped: bool) {
        let begun = driver.stats.begun();
        if begun - self.written < self.interval && !stopped {
            return;
        }
        let Some(bytes) = driver.save(&Image) else {
            return;
        };
        self.written = begun;
        let file = self.file.display();
        let written = bytes.and_then(|bytes| {
            if self.is_anothers() {
                return Err("another process has written it meanwhile".to_owned());
            }
            let written = self.write(&known(), &bytes);
            written.map_err(|error| error.to_string())
        });
        self.is_ours |= written.is_ok();
        if let Err(error) = written
            && !std::mem::replace(&mut self.told, true)
        {
            let what = "(DPOR_CHECKPOINT_FILE) cannot be written";
            above(|| eprintln!("dpor: the checkpoint {file} {what}: {error}"));
        }
    }

    fn write(&self, (waits, outcomes): &Known, payload: &[u8]) -> std::io::Result<()> {
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
        // A text may have several lines, so how long it is comes first.
        for (outcome, executions) in outcomes.said() {
            let head = format!("{executions} {}\n", outcome.len());
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(outcome.as_bytes());
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&fnv(&bytes).to_le_bytes());
        let beside = self.beside();
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &self.file)
        });
        if written.is_err() {
            // Where the disk is full, what there is of it takes room. It may not be there at all.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Whether somebody else has written what is there.
    fn is_anothers(&self) -> bool {
        !self.is_ours && self.file.exists()
    }

    /// Where the file is written before it gets its name. Another process writes elsewhere.
    fn beside(&self) -> PathBuf {
        let mut beside = self.file.clone().into_os_string();
        beside.push(format!(".{}{BESIDE}", std::process::id()));
        beside.into()
    }

    /// Everything has been explored: there is nothing to take up any more, and what a killed
    /// process was writing is of no use either.
    pub(crate) fn remove(&self) {
        if self.is_anothers() {
            return;
        }
        // The file itself is the last, so that nothing is left once it is gone.
        for file in self.left_over().into_iter().chain([self.file.clone()]) {
            if let Err(error) = fs::remove_file(&file)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                let file = file.display();
                let what = "is of no use any more, but stays";
                above(|| eprintln!("dpor: the checkpoint {file} {what}: {error}"));
            }
        }
    }

    /// What processes have left that were killed while they wrote ([`Checkpoint::beside`]). What a
    /// living one writes is its own.
    fn left_over(&self) -> Vec<PathBuf> {
        let Claim(file) = &self.claim;
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
            return Vec::new();
        };
        let name = name.as_encoded_bytes();
        let is_beside = |path: &PathBuf| {
            let beside = path
                .file_name()
                .map_or(&[][..], |name| name.as_encoded_bytes());
            let number = beside
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(b"."));
            let number = number.and_then(|rest| rest.strip_suffix(BESIDE.as_bytes()));
            let number = number.and_then(|number| std::str::from_utf8(number).ok());
            let digits = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            digits.is_some_and(|digits| !digits.is_empty() && !digits.parse().is_ok_and(is_alive))
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(is_beside)
            .collect()
    }

    /// Why the file is refused, which is `theirs` where it should be `ours`.
    fn misfit(&self, what: &str, theirs: &str, ours: &str) -> String {
        let another = format!("belongs to another {what}: `{theirs}`, and not `{ours}`");
        match what {
            TEST => self.refused(
                &another,
                "name another file for this test, or remove this one",
            ),
            SETTINGS => {
                let pairs = theirs.split(", ").zip(ours.split(", "));
                let mut misfits = pairs.filter(|(theirs, ours)| theirs != ours);
                let (theirs, ours) = misfits.next().unwrap_or((theirs, ours));
                self.refused(
                    &format!("was written with the setting {theirs}, and not {ours}"),
                    "set that again to go on, or remove the file",
                )
            }
            _ => self.refusal(&another),
        }
    }

    fn refusal(&self, why: &str) -> String {
        self.refused(why, "remove the file")
    }

    fn refused(&self, why: &str, advice: &str) -> String {
        let file = self.file.display();
        format!("the checkpoint {file} (DPOR_CHECKPOINT_FILE) {why}; {advice} to start anew")
    }
}

/// Whether there is a process of this number besides this one, which does not write while it asks.
#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    let Ok(number @ 1..) = i32::try_from(process) else {
        return false;
    };
    // SAFETY: signal 0 is none: it is only looked whether it could be sent.
    let sent = unsafe { libc::kill(number, 0) };
    let is_there = sent == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    is_there && process != std::process::id()
}

/// Whether there may be a process of this number besides this one. It cannot be asked, so what
/// another one has left stays.
#[cfg(not(unix))]
fn is_alive(process: u32) -> bool {
    process != std::process::id()
}

/// The right of one exploration of this process to a file, which is named from the root, until it
/// is dropped.
struct Claim(PathBuf);

/// Which files are claimed, and for which tests.
static CLAIMED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

fn claimed() -> MutexGuard<'static, Vec<(PathBuf, String)>> {
    // Nothing in here is left half done.
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Claim {
    /// Claims the file for a test. An error is the test that has it.
    fn new(file: &Path, test: &str) -> Result<Claim, String> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let mut claimed = claimed();
        match claimed.iter().find(|(other, _)| *other == file) {
            Some((_, other)) => Err(other.clone()),
            None => {
                claimed.push((file.clone(), test.to_owned()));
                Ok(Claim(file))
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        claimed().retain(|(file, _)| *file != self.0);
    }
}

/// Takes what executions came to off the bytes, which an empty line ends.
fn read_outcomes(bytes: &mut &[u8]) -> Option<Outcomes> {
    let mut outcomes = Outcomes::default();
    loop {
        let head = line(bytes)?;
        if head.is_empty() {
            return Some(outcomes);
        }
        let (executions, length) = head.split_once(' ')?;
        let (outcome, rest) = bytes.split_at_checked(length.parse().ok()?)?;
        *bytes = rest;
        let outcome = String::from_utf8(outcome.to_vec()).ok()?;
        outcomes.put(outcome, executions.parse().ok()?);
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
