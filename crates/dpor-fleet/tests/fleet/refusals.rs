//! What is refused, and in which words.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use crate::runs::this;
use crate::server::Server;

/// Creates a run, and returns once it is there.
fn create(server: &Server, run: &str) {
    let this = this();
    let arguments = [
        "lead",
        run,
        "--",
        &this,
        "--ignored",
        "--exact",
        "models::explored::counts",
    ];
    let mut lead = server.lead(&arguments);
    lead.kill().expect("it waits for workers");
    lead.wait().expect("it was killed");
}

#[test]
fn another_build_and_other_settings_are_refused() {
    let Some(server) = Server::new() else {
        return;
    };
    create(&server, "ours");
    // The same program with another byte at the end of its file.
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other");
    std::fs::copy(this(), &other).expect("a copy");
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&other)
        .expect("it is there");
    file.write_all(b"x").expect("one byte");
    drop(file);
    let other = other.to_str().expect("a path of UTF-8");
    let (code, told) = server.told(&["work", "ours", "--", other]);
    assert_eq!(code, Some(2), "{told}");
    assert!(
        told.contains("is another build than that of the run ours: its hash is "),
        "{told}"
    );
    let test = ["--ignored", "--exact", "models::explored::counts"];
    let lead = |program: &str, arguments: &[&str]| {
        let mut all = vec!["lead", "ours", "--", program];
        all.extend(arguments);
        server.fleet(&all)
    };
    let refused = |mut command: std::process::Command, reason: &str| {
        let output = command.output().expect("dpor-fleet runs");
        let told = crate::server::text(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(reason), "{reason}: {told}");
    };
    refused(lead(other, &test), "with a program of another build");
    refused(
        lead(&this(), &test[1..]),
        "with the arguments [\"--ignored\", ",
    );
    let mut settings = lead(&this(), &test);
    settings.env("DPOR_CATCH_PANICS", "1");
    refused(
        settings,
        "with the settings {} instead of {\"DPOR_CATCH_PANICS\": \"1\"}",
    );
    for (name, reason) in [
        (
            "DPOR_MAX_DURATION",
            "it would limit each task, and not the run",
        ),
        ("DPOR_WORKERS", "use `dpor-fleet work --jobs`"),
        ("DPOR_CHECKPOINT_FILE", "the database is the checkpoint"),
    ] {
        let mut limited = lead(&this(), &test);
        limited.env(name, "1");
        refused(limited, &format!("{name} is set, but "));
        let mut limited = lead(&this(), &test);
        limited.env(name, "1");
        refused(limited, reason);
    }
    refused(
        lead("./no-such-program", &test),
        "the program ./no-such-program: No such file",
    );
    refused(
        server.fleet(&["lead", "new"]),
        "there is no run new: create it with",
    );
    refused(server.fleet(&["stop", "new"]), "there is no run new");
    let unreachable = [
        "work",
        "ours",
        "--patience",
        "0",
        "--database",
        "host=127.0.0.1 port=1 user=x",
    ];
    refused(
        server.fleet(&unreachable),
        "the database cannot be reached (--patience 0)",
    );
    let wrong = ["work", "ours", "--database", "host=127.0.0.1 nonsense=1"];
    refused(server.fleet(&wrong), "invalid connection string");
}
