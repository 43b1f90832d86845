//! Measures one program on one checker, alone in a process.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::measure::{End, Measured};
use crate::{PEERS, Peer, limit, names};

/// How often each program is measured. A machine with other users is slower now and then, for
/// longer than one measurement takes. The checkers take turns, so that each has the same chance of
/// a fast period.
const TURNS: usize = 5;

/// The output of a child process.
pub(crate) struct Line {
    pub(crate) measured: Measured,
    /// The peak of the resident memory, in megabytes.
    pub(crate) memory: f64,
}

/// A line, or the reason why there is none.
pub(crate) type Outcome = Result<Line, &'static str>;

/// Returns the peak of the resident memory of this process, in megabytes, if the system reports it.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1024.0
}

/// Measures in this process and prints the line.
pub(crate) fn run(peer: &str, name: &str) {
    let peer = PEERS.iter().find(|known| known.name == peer);
    let name = names().into_iter().find(|known| *known == name);
    let (Some(peer), Some(name)) = (peer, name) else {
        panic!("no such measurement");
    };
    let m = (peer.measure)(name);
    let end = match m.end {
        End::Verdict => "verdict",
        End::Bug => "bug",
        End::Limit => "limit",
    };
    println!(
        "\nmeasured {} {} {} {} {end} {}",
        m.executions,
        m.steps,
        m.seconds,
        m.known,
        memory()
    );
}

/// Measures in a child process. An error is the reason why the child printed no line.
fn measured(peer: &Peer, name: &str) -> Outcome {
    let program = std::env::current_exe().expect("a program has a path");
    let mut child = Command::new(program)
        .args(["--child", peer.name, name])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a program can be started");
    let start = Instant::now();
    while child
        .try_wait()
        .expect("a child can be waited for")
        .is_none()
    {
        if start.elapsed() > 5 * limit() {
            // The kill fails if the child has just ended.
            let _ = child.kill();
            let _ = child.wait();
            return Err("killed");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut text = String::new();
    let mut output = child.stdout.take().expect("its output is ours");
    output.read_to_string(&mut text).map_err(|_| "fails")?;
    parsed(&text).ok_or("fails")
}

fn parsed(text: &str) -> Option<Line> {
    let line = text.lines().find_map(|l| l.strip_prefix("measured "))?;
    let words: Vec<&str> = line.split(' ').collect();
    let [executions, steps, seconds, known, end, memory] = words[..] else {
        return None;
    };
    Some(Line {
        measured: Measured {
            executions: executions.parse().ok()?,
            steps: steps.parse().ok()?,
            seconds: seconds.parse().ok()?,
            known: known.parse().ok()?,
            end: match end {
                "verdict" => End::Verdict,
                "bug" => End::Bug,
                _ => End::Limit,
            },
        },
        memory: memory.parse().ok()?,
    })
}

/// Returns the fastest measurement of each checker that runs the program.
pub(crate) fn in_turns(name: &str) -> Vec<(&'static str, Outcome)> {
    let peers = PEERS.iter().filter(|peer| (peer.runs)().contains(&name));
    let mut fastest: Vec<(&Peer, Outcome)> = peers.map(|peer| (peer, Err("fails"))).collect();
    for turn in 0..TURNS {
        for (peer, fastest) in &mut fastest {
            // A checker that did not finish the first time will not finish the next time.
            if turn > 0 && fastest.is_err() {
                continue;
            }
            match (measured(peer, name), &fastest) {
                (Ok(line), Ok(old)) if !line.measured.beats(&old.measured) => {}
                (Err(_), Ok(_)) => {}
                (line, _) => *fastest = line,
            }
        }
    }
    fastest
        .into_iter()
        .map(|(peer, fastest)| (peer.name, fastest))
        .collect()
}
