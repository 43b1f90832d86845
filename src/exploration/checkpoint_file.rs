//! The file that keeps an unfinished exploration.
//!
//! A file consists of the lines that identify the test, which pass it is in, what the look-out has
//! found, the first waits of loops (`first_waits.rs`), the places at which std permits what may not
//! have been explored (`assumption.rs`), the outcomes that the test has recorded (`outcomes.rs`),
//! the work that the explorer has left (`rt/engine/checkpoint.rs`), and a checksum over all of it.
//! It is written under another name and then renamed, so that a complete file exists whenever the
//! process is killed. A file of another test, or of another build of this test, is refused, because
//! its numbers would have other meanings. A file of another model of the test is left alone, and so
//! is a file that another process has written meanwhile: only the process that has written the file
//! or resumed from it writes it again and removes it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::config::{Builder, FirstPass, Memory, Order};
use crate::exploration::first_waits::FirstWait;
use crate::exploration::progress::{above, above_captured};
use crate::rt::engine::driver::Driver;
use crate::rt::event::Site;
use crate::rt::statics::image::Image;
use crate::verdict::assumption::PlacesMet;
use crate::verdict::outcomes::Outcomes;

/// The first line of every file, up to the number of the format.
const BEGINS: &str = "dpor checkpoint ";

/// That number, which changes with the format.
const FORMAT: &str = "18";

/// The line of an exploration that is not in the pass under C11 behind a first one.
const FIRST: &str = "first";

/// The beginning of the line of one that is.
const SECOND: &str = "second ";

/// The names of the lines that identify the test, its model, and the settings.
const TEST: &str = "test";
const MODEL: &str = "model";
const SETTINGS: &str = "settings";

/// The end of the name of a file that is being written.
const BESIDE: &str = ".new";

/// The facts in a file apart from the explorer's work.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) waits: Vec<FirstWait>,
    pub(crate) met: PlacesMet,
    pub(crate) outcomes: Outcomes,
    /// The operation that the look-out has found.
    pub(crate) weak: Option<String>,
}

/// The file of one exploration.
pub(crate) struct Checkpoint {
    file: PathBuf,
    claim: Claim,
    /// Whether the existing file, if any, belongs to this exploration.
    is_ours: bool,
    /// Number of executions between two writes.
    interval: u64,
    /// The identity of the exploration: names of lines, and the lines.
    identity: Vec<(&'static str, String)>,
    /// The pass before this one, if there was one.
    first_pass: Option<Box<FirstPass>>,
    /// Number of executions that were begun before the last write.
    written: u64,
    /// Whether standard error has said that the file cannot be written.
    told: bool,
}

impl Checkpoint {
    /// Returns the file that the settings name, if they name one. `site` is the place of the model.
    pub(crate) fn new(
        settings: &Builder,
        site: &dyn std::fmt::Display,
    ) -> Result<Option<Checkpoint>, String> {
        let Some(file) = &settings.checkpoint_file else {
            return Ok(None);
        };
        // The second pass belongs to the same settings as the first one.
        let (memory, order) = match &settings.first_pass {
            Some(first) => (Memory::Auto, first.order),
            None => (settings.memory, settings.order),
        };
        let shard = match settings.shard {
            Some(shard) => format!(", shard {shard}"),
            None => String::new(),
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
                    "algorithm {}, order {}, memory {}, stale_try_lock {}, spin_bound {}, await_loops {:?}, spurious_failures {}, spurious_wakeups {}, timeout_bound {}, \
                     max_rounds {}, catch_panics {}, detached_may_block {}, expect_explicit_explore {}, check_leaks {}{shard}",
                    settings.algorithm_of_search(),
                    order.name(),
                    memory.name(),
                    settings.stale_try_lock,
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
            first_pass: settings.first_pass.clone(),
            written: 0,
            told: false,
        }))
    }

    /// Resumes from the file, if there is one, and returns the facts in it. `None` if the file
    /// belongs to another model of the test: this model then has no file, and standard error says
    /// so.
    pub(crate) fn resume(&mut self, driver: &mut Driver) -> Result<Option<Known>, String> {
        // Leftover files are removed here too, because not every run reaches the end of its
        // exploration: without this, a torn file would stay for good if the last run fails or if
        // there is no last run.
        for torn in self.left_over() {
            // If it cannot be removed, standard error says so at the end.
            let _ = fs::remove_file(torn);
        }
        // Reading something other than a regular file might never end, and might never yield a
        // byte.
        if let Ok(known) = fs::metadata(&self.file)
            && !known.is_file()
        {
            let file = self.file.display();
            let what = if known.is_dir() {
                "a directory"
            } else {
                "a device or a pipe"
            };
            return Err(format!(
                "the checkpoint {file} (DPOR_CHECKPOINT_FILE) is {what}, and not a file"
            ));
        }
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // The second pass finds none if its beginning could not be written, which was told.
                return match self.first_pass {
                    None => self.try_to_write().map(|()| Some(Known::default())),
                    Some(_) => Ok(Some(Known::default())),
                };
            }
            Err(error) => return Err(self.refusal(&format!("cannot be read: {error}"))),
        };
        let damaged = || self.refusal("is damaged");
        let mut rest = match self.content(&bytes) {
            // Another process has written it since this one has come to its second pass.
            Err(_) if self.first_pass.is_some() => return Ok(None),
            content => content?,
        };
        for (what, ours) in &self.identity {
            let theirs = line(&mut rest).ok_or_else(damaged)?;
            if theirs != ours && self.first_pass.is_some() {
                return Ok(None);
            }
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
        let pass = line(&mut rest).ok_or_else(damaged)?;
        if pass != self.pass() {
            return Ok(None);
        }
        let weak = line(&mut rest).ok_or_else(damaged)?;
        let weak = (!weak.is_empty()).then(|| weak.to_owned());
        let mut waits = Vec::new();
        loop {
            match line(&mut rest).ok_or_else(damaged)? {
                "" => break,
                wait => waits.push(FirstWait::parse(wait).ok_or_else(damaged)?),
            }
        }
        let mut met = PlacesMet::default();
        loop {
            match line(&mut rest).ok_or_else(damaged)? {
                "" => break,
                place => met.add_line(place).ok_or_else(damaged)?,
            }
        }
        let outcomes = read_outcomes(&mut rest).ok_or_else(damaged)?;
        // At the beginning of the second pass there is no work yet.
        let has_begun = !rest.is_empty() || self.first_pass.is_none();
        if has_begun && !driver.restore(rest, &Image) {
            return Err(damaged());
        }
        self.written = driver.stats.begun();
        self.is_ours = true;
        Ok(Some(Known {
            waits,
            met,
            outcomes,
            weak,
        }))
    }

    /// The lines and the work in a file, without the first line and the checksum.
    fn content<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], String> {
        // A file that the user has named by mistake must not be removed. A torn file may be shorter
        // than the first line.
        let begins = BEGINS.as_bytes();
        if !bytes.starts_with(begins) && !begins.starts_with(bytes) {
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
        let format = line(&mut rest).and_then(|line| line.strip_prefix(BEGINS));
        match format.ok_or_else(damaged)? {
            FORMAT => Ok(rest),
            other => Err(self.refusal(&format!(
                "has the format {other}, and this version of dpor reads the format {FORMAT}"
            ))),
        }
    }

    /// The line that says which pass it is, and what the pass before has found.
    fn pass(&self) -> String {
        match &self.first_pass {
            None => FIRST.to_owned(),
            Some(first) => format!("{SECOND}{} {}", first.executions, first.operation),
        }
    }

    /// What the first pass has found, if the file is in the second one.
    fn first_pass_in(&self, order: Order) -> Option<FirstPass> {
        let is_file = fs::metadata(&self.file).is_ok_and(|known| known.is_file());
        let bytes = is_file.then(|| fs::read(&self.file).ok())??;
        let mut rest = self.content(&bytes).ok()?;
        for (_, ours) in &self.identity {
            (line(&mut rest)? == ours).then_some(())?;
        }
        let second = line(&mut rest)?.strip_prefix(SECOND)?;
        let (executions, operation) = second.split_once(' ')?;
        Some(FirstPass {
            operation: operation.to_owned(),
            executions: executions.parse().ok()?,
            order,
        })
    }

    /// Replaces the file by one at the beginning of the second pass, which goes on from there.
    pub(crate) fn begin_second_pass(&mut self, first: FirstPass) {
        if self.is_anothers() {
            return;
        }
        self.first_pass = Some(Box::new(first));
        if let Err(error) = self.write(&Known::default(), &[])
            && !std::mem::replace(&mut self.told, true)
        {
            above(|| eprintln!("dpor: {}", self.unwritten(&error)));
        }
    }

    /// Checks that a file can be written here. An error is more useful before the exploration than
    /// after it.
    fn try_to_write(&self) -> Result<(), String> {
        let beside = self.beside();
        let tried = File::create(&beside).and_then(|_| fs::remove_file(&beside));
        tried.map_err(|error| self.unwritten(&error))
    }

    fn unwritten(&self, error: &dyn std::fmt::Display) -> String {
        let file = self.file.display();
        format!("the checkpoint {file} (DPOR_CHECKPOINT_FILE) cannot be written: {error}")
    }

    /// Restarts the exploration: the content of the file is of no use any more.
    pub(crate) fn restart(&mut self) {
        self.written = 0;
    }

    /// Number of executions begun at which the file is due.
    pub(crate) fn next(&self) -> u64 {
        self.written + self.interval
    }

    /// The lines that identify the exploration, each with the name of its line.
    pub(crate) fn identity(&self) -> &[(&'static str, String)] {
        &self.identity
    }

    /// Writes the file if the interval is over, and always if a limit has `stopped` the
    /// exploration.
    pub(crate) fn tick(&mut self, driver: &Driver, known: impl FnOnce() -> Known, stopped: bool) {
        let begun = driver.stats.begun();
        if begun - self.written < self.interval && !stopped {
            return;
        }
        let Some(bytes) = driver.save(&Image) else {
            return;
        };
        self.written = begun;
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
            above(|| eprintln!("dpor: {}", self.unwritten(&error)));
        }
    }

    pub(crate) fn write(&self, known: &Known, payload: &[u8]) -> std::io::Result<()> {
        let Known {
            waits,
            met,
            outcomes,
            weak,
        } = known;
        let mut bytes = format!("{BEGINS}{FORMAT}\n").into_bytes();
        for (_, line) in &self.identity {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        for line in [&self.pass(), weak.as_deref().unwrap_or_default()] {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        for wait in waits {
            bytes.extend_from_slice(wait.line().as_bytes());
            bytes.push(b'\n');
        }
        // An empty line ends the first waits, and another one the places.
        bytes.push(b'\n');
        for place in met.lines() {
            bytes.extend_from_slice(place.as_bytes());
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
        // An outcome may have several lines, so its length comes first.
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
            // On a full disk the partial file takes space. It may not exist at all.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Whether the existing file was written by another process.
    fn is_anothers(&self) -> bool {
        !self.is_ours && self.file.exists()
    }

    /// The name under which the file is written before it is renamed. It contains the number of the
    /// process, so that another process writes elsewhere.
    fn beside(&self) -> PathBuf {
        let mut beside = self.file.clone().into_os_string();
        beside.push(format!(".{}{BESIDE}", std::process::id()));
        beside.into()
    }

    /// Removes the file and the partial files of killed processes: everything has been explored, so
    /// there is nothing to resume.
    pub(crate) fn remove(&self) {
        if self.is_anothers() {
            return;
        }
        // The file itself is removed last, so that no partial file is left once it is gone.
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

    /// Returns the partial files ([`Checkpoint::beside`]) of processes that were killed while they
    /// wrote. The partial file of a living process is not among them.
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

    /// Returns why the file is refused: it says `theirs` where `ours` is expected.
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

/// What the first pass of an exploration with these settings has found, if the file that they name
/// is in the second one.
pub(crate) fn first_pass(settings: &Builder, site: Site) -> Option<FirstPass> {
    if settings.memory != Memory::Auto || settings.checkpoint_file.is_none() {
        return None;
    }
    // What is wrong with the file is told when the first pass takes it up.
    let file = Checkpoint::new(settings, site).ok()??;
    file.first_pass_in(settings.order)
}

/// Whether another process has this number. The process itself does not count, because it does not
/// write while it asks.
#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    let Ok(number @ 1..) = i32::try_from(process) else {
        return false;
    };
    // SAFETY: signal 0 is never delivered; the call only checks whether a signal could be sent.
    let sent = unsafe { libc::kill(number, 0) };
    let is_there = sent == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    is_there && process != std::process::id()
}

/// Whether another process may have this number. The system cannot be asked, so partial files of
/// other processes stay.
#[cfg(not(unix))]
fn is_alive(process: u32) -> bool {
    process != std::process::id()
}

/// The claim of one exploration of this process to a file, by its absolute path. Dropping the claim
/// ends it.
struct Claim(PathBuf);

/// The claimed files, each with its test.
static CLAIMED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

fn claimed() -> MutexGuard<'static, Vec<(PathBuf, String)>> {
    // No panic can leave the list half changed.
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Claim {
    /// Claims the file for a test. An error is the test that holds the claim.
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

/// Takes the outcomes off the bytes, up to the empty line that ends them.
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

/// Returns a checksum (FNV-1a), which differs after any change of a single byte.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    let step = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The result of [`build`], computed once because the program has some megabytes.
static BUILD: OnceLock<Result<String, String>> = OnceLock::new();

/// Returns what distinguishes this program from another build of it: a hash of its file.
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
