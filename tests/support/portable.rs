//! What does a report say that is the same wherever and however the tests are run?

/// The report with the command of who has no flags in the environment, and asks for no profile and no platform.
pub fn portable(report: &str) -> String {
    let line = |line: &str| match line.strip_prefix("replay ") {
        None => line.to_owned(),
        Some(command) => {
            let (schedule, _) = command.split_once("\" ").expect("a schedule in quotes");
            let (_, test) = command.rsplit_once(" --exact ").expect("a test");
            let program = env!("CARGO_CRATE_NAME");
            format!("replay {schedule}\" cargo test --test {program} -- --exact {test}")
        }
    };
    report.lines().map(line).collect::<Vec<_>>().join("\n")
}
