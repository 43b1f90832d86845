//! Is what a test asks to see shown, and nothing else?
//!
//! Each test runs one of the models below in a process of its own and reads what it prints.

use std::sync::atomic::Ordering::{self, SeqCst};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, mpsc};
use dpor::{Builder, Executions, thread};

use crate::children::process_of;

/// What the model of this name prints on standard error, with these variables.
fn shown(model: &str, variables: &[(&str, &str)]) -> String {
    let name = format!("shown::model_{model}");
    let mut command = process_of(&name);
    command
        .arg("--nocapture")
        .env("SHOWN_MODEL", model)
        .env_remove("RUST_BACKTRACE");
    for (variable, value) in variables {
        command.env(variable, value);
    }
    let output = command.output().expect("it runs");
    String::from_utf8(output.stderr).expect("text")
}

/// Whether the model of this name is to be explored: it is in the process of a test above.
fn asked(model: &str) -> bool {
    std::env::var("SHOWN_MODEL").is_ok_and(|asked| asked == model)
}

/// Not a test of its own: it passes, with two executions, of which one is given up as well.
#[test]
fn model_passing() {
    if !asked("passing") {
        return;
    }
    let report = Builder::new().check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let shared = x.clone();
        let writer = thread::Builder::new().name("writer".to_owned());
        let writer = writer.spawn(move || shared.store(1, SeqCst));
        x.load(SeqCst);
        writer.unwrap().join().unwrap();
        dpor::assume(dpor::choose(2) == 0);
    });
    assert_eq!((report.executions, report.pruned), (2, 2));
}

#[test]
fn executions_that_pass_are_shown_with_number_schedule_and_table() {
    let text = shown("passing", &[("DPOR_TRACE", "all")]);
    let heads: Vec<&str> = text.lines().filter(|l| l.starts_with("dpor: ")).collect();
    assert_eq!(heads.len(), 4, "{text}");
    for (index, head) in heads.iter().enumerate() {
        let start = format!("dpor: execution {} (", index + 1);
        assert!(head.starts_with(&start), "{head}");
        assert!(head.contains(" events): v2 main"), "{head}");
    }
    let given_up = heads
        .iter()
        .filter(|head| head.contains("(given up by `assume(false)`, "));
    assert_eq!(given_up.count(), 2, "{text}");
    let columns =
        |line: &&str| line.contains('#') && line.contains("writer") && line.contains("where");
    assert_eq!(text.lines().filter(columns).count(), 4, "{text}");
    assert!(
        text.contains("x = 0") && text.contains("shared = 1"),
        "{text}"
    );
}

#[test]
fn one_execution_can_be_chosen_and_is_the_one_of_that_number() {
    let every = shown("passing", &[("DPOR_TRACE", "all")]);
    let third = shown("passing", &[("DPOR_TRACE", "3")]);
    let heads: Vec<&str> = third.lines().filter(|l| l.starts_with("dpor: ")).collect();
    assert_eq!(heads.len(), 1, "{third}");
    assert!(heads[0].starts_with("dpor: execution 3 ("), "{third}");
    assert!(every.contains(heads[0]), "{every}");
    let none = shown("passing", &[("DPOR_TRACE", "5")]);
    let told = "dpor: there is no execution 5 of the model at tests/reports/shown.rs:";
    assert!(none.contains(told), "{none}");
    assert!(
        none.contains("(DPOR_TRACE): it has had 4 executions"),
        "{none}"
    );
}

/// Not a test of its own: it passes.
#[test]
fn model_iterating() {
    if !asked("iterating") {
        return;
    }
    dpor::model(|| {
        let (sender, receiver) = mpsc::channel();
        let theirs = sender.clone();
        let sends = thread::spawn(move || theirs.send(()).unwrap());
        for () in receiver.iter().take(1) {}
        let _ended: Vec<_> = [sends].map(thread::JoinHandle::join).into();
        drop(sender);
        // The second time it is not looked up any more.
        let changed = AtomicUsize::new(0);
        let store: fn(&AtomicUsize, usize, Ordering) = AtomicUsize::store;
        changed.store(1, SeqCst);
        store(&changed, 2, SeqCst);
    });
}

#[test]
fn what_others_call_is_shown_where_the_program_has_them_call_it() {
    let text = shown("iterating", &[("DPOR_TRACE", "all")]);
    for what in ["receive message 0", "join main.1", ":= 2 (was 1)"] {
        let row = text.lines().find(|line| line.contains(what));
        let row = row.unwrap_or_else(|| panic!("no {what} in {text}"));
        if crate::needs::lines("no place is looked up") {
            assert!(row.contains("tests/reports/shown.rs:"), "{text}");
        }
    }
}

#[test]
fn nothing_is_shown_unless_it_is_asked_for() {
    let text = shown("passing", &[]);
    assert!(!text.contains("dpor:"), "{text}");
}

#[test]
fn what_is_shown_is_written_as_well_where_there_is_a_directory() {
    let name = format!("dpor-shown-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let mut builder = Builder::new();
    builder.report_dir = Some(folder.clone());
    builder.trace = Some(Executions::Only(2));
    builder.check(|| {
        let name = thread::Builder::new().name("chooser".to_owned());
        let chooser = name.spawn(|| assert!(dpor::choose(3) < 3));
        chooser.unwrap().join().unwrap();
    });
    let stem = "shown.what_is_shown_is_written_as_well_where_there_is_a_directory-execution-2";
    let json = std::fs::read_to_string(folder.join(format!("{stem}.json"))).expect("it is there");
    let files = std::fs::read_dir(&folder).expect("it can be read").count();
    // If it stays, nothing but the temporary folder is a little fuller.
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(files, 3);
    let execution: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(execution["execution"], 2);
    assert_eq!(execution["outcome"]["kind"], "complete");
    assert_eq!(execution["threads"][1]["name"], "chooser");
}

/// Not a test of its own: a lost update that tells what it does.
#[test]
fn model_talking() {
    if asked("talking") {
        dpor::model(talking);
    }
}

fn talking() {
    let x = Arc::new(AtomicUsize::new(0));
    let add = |x: &AtomicUsize, by: &'static str| {
        let span = tracing::debug_span!("add", by);
        let _inside = span.enter();
        let seen = x.load(SeqCst);
        tracing::debug!(seen, "adding");
        x.store(seen + 1, SeqCst);
        tracing::info!(target: "sums", sum = ?x, "added");
    };
    let shared = x.clone();
    let writer = thread::Builder::new().name("writer".to_owned());
    let writer = writer.spawn(move || add(&shared, "a thread"));
    add(&x, "main");
    writer.unwrap().join().unwrap();
    assert_eq!(x.load(SeqCst), 2);
}

/// The lines of the log in a report.
fn log_of(report: &str) -> Vec<&str> {
    let lines = report.lines().skip_while(|line| !line.starts_with("log "));
    lines
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .collect()
}

#[test]
fn the_log_of_the_failing_execution_and_of_no_other_is_in_its_report() {
    let failure = Builder::new().explore(talking).expect_err("it fails");
    let report = failure.to_string();
    let lines = log_of(&report);
    assert_eq!(lines.len(), 4, "{report}");
    for thread in ["main", "writer"] {
        let mine: Vec<&&str> = (lines.iter())
            .filter(|line| line.split_whitespace().nth(1) == Some(thread))
            .collect();
        assert_eq!(mine.len(), 2, "{report}");
        let by = if thread == "main" { "main" } else { "a thread" };
        let first = format!("DEBUG reports::shown: add{{by=\"{by}\"}}: adding seen=0");
        assert!(mine[0].ends_with(&first), "{report}");
        // The value is the one of that moment.
        let second = format!("INFO  sums: add{{by=\"{by}\"}}: added sum=1");
        assert!(mine[1].ends_with(&second), "{report}");
    }
    // Each line is behind the event with which its thread has last done something.
    let execution: serde_json::Value = serde_json::from_str(&failure.json()).expect("JSON");
    let log = execution["log"].as_array().expect("a list");
    assert_eq!(log.len(), lines.len());
    for (line, said) in lines.iter().zip(log) {
        let text = said["text"].as_str().expect("text");
        assert!(line.ends_with(text), "{line}: {said}");
        assert_eq!(said["place"]["file"], "tests/reports/shown.rs");
        let after: usize = line.split_whitespace().next().unwrap().parse().unwrap();
        let thread = line.split_whitespace().nth(1).unwrap();
        assert_eq!(said["after"], after);
        let event = &execution["events"][after - 1];
        assert_eq!(said["thread"], event["thread"]);
        let whose = event["thread"].as_u64().unwrap() as usize;
        let whose = &execution["threads"][whose];
        assert!(
            whose["name"] == thread || whose["path"] == thread,
            "{line}: {event}"
        );
    }
}

/// Counts how often it is put into words.
struct Worded<'a>(&'a std::sync::atomic::AtomicUsize);

impl std::fmt::Debug for Worded<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fetch_add(1, SeqCst);
        f.write_str("worded")
    }
}

#[test]
fn what_is_said_is_put_into_words_only_for_who_reads_it() {
    static TIMES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let explored = |fails: bool, change: &dyn Fn(&mut Builder)| {
        TIMES.store(0, SeqCst);
        let mut builder = Builder::new();
        change(&mut builder);
        let explored = builder.explore(move || {
            let x = Arc::new(AtomicUsize::new(0));
            let shared = x.clone();
            let other = thread::spawn(move || {
                // What is said may be computed with operations, whoever listens.
                tracing::info!(value = ?Worded(&TIMES), seen = shared.fetch_add(1, SeqCst), "added");
            });
            let first = x.load(SeqCst) == 0;
            other.join().unwrap();
            assert!(first || !fails, "too late");
        });
        (explored, TIMES.load(SeqCst))
    };
    let (passed, times) = explored(false, &|_| ());
    assert_eq!((passed.expect("it passes").executions, times), (2, 0));
    let (passed, times) = explored(false, &|builder| {
        builder.log_filter = Some("info".to_owned());
    });
    assert_eq!((passed.expect("it passes").executions, times), (2, 2));
    // The execution that is shown is heard, be it the one that was found or a simpler one.
    for simplify in [0, 1000] {
        let (failed, times) = explored(true, &|builder| builder.simplify = simplify);
        let report = failed.expect_err("it fails").to_string();
        let lines = log_of(&report);
        assert_eq!(lines.len(), 1, "{report}");
        assert!(
            lines[0].ends_with("INFO  reports::shown: added value=worded seen=0"),
            "{report}"
        );
        assert!(times > 0);
        // One run is enough to hear what was found.
        assert!(simplify > 0 || times == 1, "{times}");
    }
}

#[test]
fn what_another_run_says_counts_as_long_as_it_does_the_same() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let mut builder = Builder::new();
    builder.simplify = 0;
    let failure = builder.explore(|| {
        let run = RUNS.fetch_add(1, SeqCst);
        let x = AtomicUsize::new(0);
        x.load(SeqCst);
        tracing::info!("looked");
        if run == 0 {
            x.store(1, SeqCst);
            panic!("only the first time");
        }
        x.store(1, SeqCst);
        tracing::info!("stored somewhere else");
    });
    let report = failure.expect_err("it fails").to_string();
    let lines = log_of(&report);
    assert_eq!(lines.len(), 1, "{report}");
    assert!(lines[0].ends_with("looked"), "{report}");
}

#[test]
fn a_line_is_its_thread_s_whichever_thread_was_met_first() {
    let mut builder = Builder::new();
    builder.simplify = 0;
    let failure = builder.explore(|| {
        let begun = Arc::new(AtomicUsize::new(0));
        let parent = |says: &'static str| {
            let begun = begun.clone();
            thread::spawn(move || {
                let before = begun.fetch_add(1, SeqCst);
                let child = thread::spawn(move || tracing::info!("{says}"));
                child.join().unwrap();
                before
            })
        };
        let (one, two) = (parent("the child of one"), parent("the child of two"));
        let first = one.join().unwrap() == 0;
        two.join().unwrap();
        assert!(first, "the other one came first");
    });
    let report = failure.expect_err("it fails").to_string();
    let lines = log_of(&report);
    assert_eq!(lines.len(), 2, "{report}");
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let whose = words.last().copied();
        let path = if whose == Some("one") {
            "main.1.1"
        } else {
            "main.2.1"
        };
        assert_eq!(words[1], path, "{report}");
    }
}

#[test]
fn the_log_of_every_execution_is_shown_through_a_filter() {
    let text = shown("talking", &[("DPOR_LOG", "sums=info")]);
    let lines: Vec<&str> = text.lines().filter(|l| l.starts_with("dpor: ")).collect();
    assert!(lines.len() >= 4, "{text}");
    assert!(
        lines[0].starts_with("dpor: execution 1, after event "),
        "{text}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("dpor: execution 2, ")),
        "{text}"
    );
    assert!(
        lines.iter().all(|line| line.contains("INFO  sums: ")),
        "{text}"
    );
    assert!(
        lines.iter().any(|line| line.contains(", writer: ")),
        "{text}"
    );
    assert!(!text.contains("adding"), "{text}");
    let quiet = shown("talking", &[]);
    assert!(!quiet.contains("dpor: execution"), "{quiet}");
    assert!(quiet.contains("adding"), "{quiet}");
}

#[test]
fn a_log_does_not_change_what_is_explored() {
    let explored = |filter: Option<&str>| {
        let mut builder = Builder::new();
        builder.log_filter = filter.map(str::to_owned);
        builder
            .explore(talking)
            .expect_err("it fails")
            .schedule()
            .to_owned()
    };
    assert_eq!(explored(None), explored(Some("sums=trace,shown=debug")));
}

/// A subscriber that only counts.
struct Counting(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl tracing::Subscriber for Counting {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, SeqCst);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_subscriber_of_the_users_own_hears_everything_and_the_report_has_no_log() {
    let heard = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let subscriber = Counting(heard.clone());
    let failure = tracing::subscriber::with_default(subscriber, || {
        Builder::new().explore(talking).expect_err("it fails")
    });
    assert!(heard.load(SeqCst) >= 4);
    assert_eq!(
        log_of(&failure.to_string()),
        Vec::<&str>::new(),
        "{failure}"
    );
}

#[test]
#[should_panic(expected = "log_filter = `a=loud` (DPOR_LOG): expected something such as `debug`")]
fn a_filter_that_makes_no_sense_is_refused() {
    let mut builder = Builder::new();
    builder.log_filter = Some("a=loud".to_owned());
    builder.check(|| ());
}

/// Shows itself with a lock.
struct Locked(dpor::sync::Mutex<u32>);

impl std::fmt::Debug for Locked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", self.0.lock().unwrap())
    }
}

#[test]
fn a_value_that_would_have_to_wait_to_be_shown_holds_nobody_up() {
    let failure = Builder::new().explore(|| {
        let locked = Arc::new(Locked(dpor::sync::Mutex::new(7)));
        tracing::info!(?locked, "free");
        let held = locked.0.lock().unwrap();
        let shared = locked.clone();
        let other = thread::spawn(move || tracing::info!(locked = ?shared, n = 1, "held"));
        other.join().unwrap();
        drop(held);
        tracing::info!(?locked, "free again");
        panic!("seen");
    });
    let failure = failure.expect_err("it fails");
    let report = failure.to_string();
    // To show a value is no event: the only lock is the test's own.
    let events = failure.events().iter();
    let locks = events.filter(|event| event.what.starts_with("lock"));
    assert_eq!(locks.count(), 1, "{report}");
    let lines = log_of(&report);
    assert_eq!(lines.len(), 3, "{report}");
    assert!(lines[0].ends_with("shown: free locked=<7>"), "{report}");
    assert!(
        lines[1].ends_with("shown: held locked=(waits for another thread) n=1"),
        "{report}"
    );
    assert!(
        lines[2].ends_with("shown: free again locked=<7>"),
        "{report}"
    );
}

#[test]
fn a_table_that_is_cut_has_the_two_events_that_the_failure_hangs_on() {
    const THREADS: usize = 80;
    let failure = Builder::new().explore(|| {
        let sum = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let sum = sum.clone();
                thread::spawn(move || sum.store(sum.load(SeqCst) + 1, SeqCst))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // Nothing in this order is repeated three times (Thue and Morse), so these rows are no rounds.
        let own = AtomicUsize::new(0);
        for n in 0..100_usize {
            match n.count_ones() % 2 {
                0 => drop(own.load(SeqCst)),
                _ => own.store(n, SeqCst),
            }
        }
        assert_eq!(sum.load(SeqCst), THREADS);
    });
    let report = failure.expect_err("it fails").to_string();
    let marked = |line: &&str| {
        let number = line.trim_start().split(' ').next().unwrap_or_default();
        number
            .strip_suffix('*')
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    assert_eq!(report.lines().filter(marked).count(), 2, "{report}");
    let notes: Vec<&str> = ["earlier rows)", "rows between)"]
        .into_iter()
        .filter(|note| report.contains(note))
        .collect();
    assert_eq!(notes.len(), 2, "{report}");
}
