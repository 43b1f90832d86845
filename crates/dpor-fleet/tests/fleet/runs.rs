//! Runs that end, and what died on the way.

use std::process::Child;

use dpor::Builder;

use crate::models;
use crate::server::{Server, text};

/// The arguments of a lead, with small tasks.
fn lead<'a>(run: &'a str, model: &'a str, program: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["lead", run, "--executions", "15", "--", program];
    arguments.extend(["--ignored", "--exact", model]);
    arguments
}

/// This program.
pub(crate) fn this() -> String {
    let path = std::env::current_exe().expect("this program");
    path.to_str().expect("a path of UTF-8").to_owned()
}

/// What a lead tells, with two workers beside it. The numbers of a run are those of one process.
fn end(server: &mut Server, run: &str, model: &str) -> (Option<i32>, String) {
    let this = this();
    let lead = server.lead(&lead(run, model, &this));
    let workers: Vec<Child> = (0..2)
        .map(|_| {
            server
                .fleet(&["work", run, "--jobs", "1"])
                .spawn()
                .expect("a worker")
        })
        .collect();
    for worker in workers {
        let output = worker.wait_with_output().expect("a worker");
        assert!(output.status.success(), "{}", text(&output));
    }
    let output = lead.wait_with_output().expect("a lead");
    (output.status.code(), text(&output))
}

/// Number of rows of a table.
fn number(server: &mut Server, of: &str) -> i64 {
    let count = format!("select count(*) from {of}");
    server
        .connect()
        .query_one(&count, &[])
        .expect("an answer")
        .get(0)
}

/// The settings of one process that explores as workers do.
fn alone() -> Builder {
    let mut settings = models::settings();
    settings.workers = Some(1);
    settings
}

/// The line of a run that explores [`models::counts`].
fn line_of_counts(run: &str) -> String {
    let report = alone().explore(models::counts).expect("it passes");
    assert!(report.executions > 200, "{}", report.executions);
    let outcomes: String = report
        .outcomes
        .iter()
        .map(|(outcome, times)| format!("  {times} times {outcome}\n"))
        .collect();
    format!(
        "{run}: complete, {} executions, {} pruned, {} events, the longest {}\n{outcomes}",
        report.executions, report.pruned, report.events, report.longest
    )
}

#[test]
fn a_run_adds_up_to_what_one_process_explores_whatever_dies() {
    let Some(mut server) = Server::new() else {
        return;
    };
    let this = this();
    let lead = lead("all", "models::explored::counts", &this);
    let leads = [(); 2].map(|()| server.lead(&lead));
    let points = ["taken", "explored", "stored", "published", "committed"];
    let mut deaths = 0;
    while deaths < 12 {
        let dies: Vec<String> = (0..3)
            .map(|at| format!("{}/{}", points[(deaths + at) % 5], 1 + (deaths + at) % 3))
            .collect();
        let mut workers: Vec<Child> = dies
            .iter()
            .map(|dies| {
                let arguments = ["work", "all", "--jobs", "1", "--die-at", dies];
                server.fleet(&arguments).spawn().expect("a worker")
            })
            .collect();
        if deaths == 3 {
            // Whatever a worker does now: it is not asked.
            workers[1].kill().expect("it runs, or has ended");
        }
        if deaths == 6 {
            server.restart();
        }
        for worker in workers {
            let output = worker.wait_with_output().expect("a worker");
            assert_eq!(output.status.code(), None, "{}", text(&output));
            deaths += 1;
        }
    }
    // Those that have died with a task.
    assert!(number(&mut server, "attempt where ended is null") > 3);
    let last = server.told(&["work", "all", "--jobs", "3"]);
    assert_eq!(last.0, Some(0), "{}", last.1);
    for lead in leads {
        let output = lead.wait_with_output().expect("a lead");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(told, line_of_counts("all"));
    }
    assert!(number(&mut server, "result") > 10);
    assert_eq!(number(&mut server, "task where not done"), 0);
}

#[test]
fn the_failure_of_a_run_is_that_of_one_process() {
    let Some(mut server) = Server::new() else {
        return;
    };
    let first = alone().explore(models::fails).expect_err("it fails");
    let report = first.to_string();
    let number = report.split("execution ").nth(1).expect("its number");
    let number = number.split(|it: char| !it.is_ascii_digit()).next();
    let number: u64 = number.and_then(|it| it.parse().ok()).expect("its number");
    assert!(number > 30, "{report}");
    for run in ["once", "again"] {
        let (code, told) = end(&mut server, run, "models::explored::fails");
        assert_eq!(code, Some(1), "{told}");
        let number = format!("{run}: failed, execution {number}, ");
        assert!(told.contains(&number), "{number}: {told}");
        assert!(told.contains("each thread has loaded 0"), "{told}");
        let replay = format!(
            "replay: DPOR_REPLAY='{}' {} --ignored",
            first.schedule(),
            this()
        );
        assert!(told.contains(&replay), "{replay}: {told}");
    }
}

#[test]
fn a_task_on_which_the_program_crashes_is_a_failure_and_no_endless_loop() {
    let Some(mut server) = Server::new() else {
        return;
    };
    let (code, told) = end(&mut server, "crash", "models::explored::crashes");
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("3 crashes (--crashes 3): the program ended with signal: 6"),
        "{told}"
    );
    assert!(
        told.contains("the program did not tell a schedule"),
        "{told}"
    );
    let most = "(select count(*) as times from attempt where ended = 'crashed' group by path) as it \
                where times >= 3";
    assert!(number(&mut server, most) >= 1);
    let more = most.replace(">= 3", "> 3");
    assert_eq!(number(&mut server, &more), 0);
}

#[test]
fn a_task_with_which_workers_vanish_is_a_failure() {
    let Some(server) = Server::new() else {
        return;
    };
    let this = this();
    let mut arguments = lead("gone", "models::explored::counts", &this);
    arguments.splice(2..2, ["--vanished", "2"]);
    let lead = server.lead(&arguments);
    for _ in 0..2 {
        let worker = server.told(&["work", "gone", "--jobs", "1", "--die-at", "explored/1"]);
        assert_eq!(worker.0, None, "{}", worker.1);
    }
    assert_eq!(server.told(&["work", "gone"]).0, Some(0));
    let told = text(&lead.wait_with_output().expect("a lead"));
    assert!(
        told.contains("2 workers have begun a task and vanished (--vanished 2)"),
        "{told}"
    );
}

#[test]
fn a_run_that_was_stopped_goes_on_and_one_that_is_removed_is_gone() {
    let Some(mut server) = Server::new() else {
        return;
    };
    let this = this();
    let arguments = lead("later", "models::explored::counts", &this);
    let leads = server.lead(&arguments);
    let some = server.told(&["work", "later", "--jobs", "1", "--die-at", "committed/2"]);
    assert_eq!(some.0, None, "{}", some.1);
    let stopped = server.told(&["stop", "later"]);
    assert!(
        stopped.1.contains("`dpor-fleet lead later` continues it"),
        "{}",
        stopped.1
    );
    let output = leads.wait_with_output().expect("a lead");
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    assert!(
        text(&output).contains("the run was stopped"),
        "{}",
        text(&output)
    );
    assert!(
        server
            .told(&["work", "later"])
            .1
            .starts_with("0 tasks, 0 executions")
    );
    // The program need not be named again.
    let leads = server.lead(&["lead", "later"]);
    assert_eq!(server.told(&["work", "later", "--jobs", "2"]).0, Some(0));
    let output = leads.wait_with_output().expect("a lead");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        line_of_counts("later")
    );
    assert_eq!(server.told(&["remove", "later"]).0, Some(0));
    let tables = ["run", "task", "result", "attempt"];
    assert_eq!(tables.map(|table| number(&mut server, table)), [0; 4]);
    let gone = server.told(&["work", "later"]);
    assert_eq!(gone.0, Some(2));
    assert!(
        gone.1.contains("there is no run later: create it with"),
        "{}",
        gone.1
    );
}
