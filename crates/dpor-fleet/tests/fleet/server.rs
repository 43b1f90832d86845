//! A server of a test, on a free port of the loopback, and the commands that use it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use postgres::{Client, NoTls};

pub(crate) struct Server {
    programs: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    process: Option<Child>,
}

/// The newest of the server's folders of programs.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut debian: Vec<_> = debian.flatten().map(|it| it.path().join("bin")).collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian.extend(std::env::split_paths(&path));
    let is_there = |folder: &PathBuf| folder.join("initdb").is_file();
    debian.into_iter().rev().find(is_there)
}

/// The user that runs the server, as the server does not run as root.
fn user() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("Uid:"))?;
    if line.split_whitespace().nth(1) != Some("0") {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let of = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        line.split(':').nth(2)?.parse().ok()
    };
    of("postgres").or_else(|| of("nobody"))
}

impl Server {
    /// A server with nothing in it; `None` where there is no PostgreSQL.
    pub(crate) fn new() -> Option<Server> {
        let Some(programs) = programs() else {
            let required = std::env::var("DPOR_TEST_REQUIRE").unwrap_or_default();
            let is_required = required
                .split(',')
                .any(|it| matches!(it, "all" | "postgresql"));
            let said = "crates/dpor-fleet/tests: there is no PostgreSQL server on this machine";
            assert!(!is_required, "{said}");
            eprintln!("skipped: {said}");
            if let Some(file) = std::env::var_os("DPOR_TEST_SKIPPED") {
                let file = File::options().append(true).create(true).open(file);
                let _ = file.and_then(|mut file| writeln!(file, "{said}"));
            }
            return None;
        };
        let folder = tempfile::Builder::new()
            .prefix("dpor-fleet-server-")
            .tempdir()
            .expect("a folder");
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = port.local_addr().expect("it is bound").port();
        let mut server = Server {
            programs,
            folder,
            port,
            process: None,
        };
        if let Some(user) = user() {
            std::os::unix::fs::chown(server.folder.path(), Some(user), None).expect("root may");
        }
        let made = server
            .command("initdb")
            .args(["--auth=trust", "--username=dpor", "--no-sync", "--pgdata"])
            .arg(server.folder.path().join("data"))
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", text(&made));
        server.start();
        Some(server)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if let Some(user) = user() {
            command.uid(user);
        }
        command
    }

    fn start(&mut self) {
        let process = self
            .command("postgres")
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-p", &self.port.to_string(), "-k"])
            .arg(self.folder.path())
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.expect("postgres runs"));
    }

    /// Kills the server, and starts it again.
    pub(crate) fn restart(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it was killed");
        }
        self.start();
    }

    pub(crate) fn config(&self) -> String {
        format!(
            "host=127.0.0.1 port={} user=dpor dbname=postgres",
            self.port
        )
    }

    /// A connection, as soon as the server answers.
    pub(crate) fn connect(&mut self) -> Client {
        let config = format!("{} options='-c search_path=dpor_fleet_1'", self.config());
        loop {
            match Client::connect(&config, NoTls) {
                Ok(client) => return client,
                Err(error) => {
                    let process = self.process.as_mut().expect("it was started");
                    // The memory of a server that was killed may still be in use.
                    if process.try_wait().expect("a child").is_some() {
                        self.start();
                    }
                    let is_away = error
                        .as_db_error()
                        .is_none_or(|it| it.code().code() == "57P03");
                    assert!(is_away, "{error}");
                }
            }
        }
    }

    /// A command of `dpor-fleet` on this server.
    pub(crate) fn fleet(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpor-fleet"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DPOR_")) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .env("DPOR_FLEET_DATABASE", self.config())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A lead, once its run is there.
    pub(crate) fn lead(&self, arguments: &[&str]) -> Child {
        let mut lead = self.fleet(arguments).spawn().expect("dpor-fleet runs");
        let told = lead.stderr.as_mut().expect("it is piped");
        let mut line = Vec::new();
        let mut byte = [0];
        while line.last() != Some(&b'\n') && told.read(&mut byte).expect("it is open") == 1 {
            line.push(byte[0]);
        }
        let line = String::from_utf8_lossy(&line);
        assert!(line.starts_with("dpor-fleet: the run "), "{line}");
        lead
    }

    /// The end of such a command: its exit code and what it told.
    pub(crate) fn told(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.fleet(arguments).output().expect("dpor-fleet runs");
        (output.status.code(), text(&output))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// All that a command told.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}
