//! A library without its features.

use crate::support::{Crate, ended, library, models};

/// A crate that depends on the library without most of its features.
fn light() -> Crate {
    let library = library();
    let made = Crate::new(
        "light",
        &format!(
            "[target.'cfg(dpor)'.dependencies]\n\
             dpor = {{ path = \"{}\", default-features = false, features = [\"allocator\"] }}\n\n\
             [lints.rust]\nunexpected_cfgs = {{ level = \"warn\", check-cfg = [\"cfg(dpor)\"] }}\n",
            library.display()
        ),
    );
    made.write("tests/failing.rs", &models::failing());
    made
}

#[test]
fn what_a_light_build_leaves_out_is_told_where_it_is_asked_for() {
    let made = light();
    let told = |variables: &[(&str, &str)]| {
        let mut command = made.command("cargo");
        command.args(["test", "--quiet", "--test", "failing", "loses"]);
        command.env("RUSTFLAGS", "--cfg dpor");
        command.envs(variables.iter().copied());
        let ended = ended(&mut command);
        ended.out + &ended.err
    };
    let plain = told(&[("DPOR_PROGRESS", "1"), ("DPOR_LOG", "1")]);
    assert!(plain.contains("it fails because"), "{plain}");
    for (variable, value, setting, feature) in [
        ("DPOR_LOG", "debug", "log_filter", "log"),
        ("DPOR_SUMMARY", "summary.json", "summary", "json"),
        ("DPOR_REPORT_DIR", "pages", "report_dir", "page"),
        ("DPOR_CHECKPOINT_FILE", "a", "checkpoint_file", "checkpoint"),
        ("DPOR_WORKERS", "2", "workers", "checkpoint"),
        ("DPOR_SHARD", "1/2", "shard", "checkpoint"),
    ] {
        let said = told(&[(variable, value)]);
        let expected = format!(
            "{setting} ({variable}): this build of dpor leaves its feature `{feature}` out; \
             `cargo dpor` has it, or add `features = [\"{feature}\"]`"
        );
        assert!(said.contains(&expected), "{expected}\n---\n{said}");
    }
}

#[test]
fn the_command_switches_on_what_it_needs() {
    let made = light();
    made.dpor(&["test", "--test", "failing", "--workers", "2"])
        .with(1)
        .says(&["2 models: 1 failed", "cargo dpor replay loses"]);
    made.dpor(&["report"]).with(0).says(&["loses.html"]);
}
