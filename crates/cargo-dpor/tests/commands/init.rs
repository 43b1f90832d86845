//! `cargo dpor init`.

use crate::support::{Crate, ended, library};

#[test]
fn a_fresh_crate_is_set_up_once() {
    let made = Crate::new("fresh", "[dependencies] # none yet\n");
    made.write("src/lib.rs", "//! A crate.\n#![deny(missing_docs)]\n\n/// Adds.\npub fn add(a: u64, b: u64) -> u64 {\n    a + b\n}\n");
    let path = library().display().to_string();
    let init = ["init", "--path", &path, "--editor", "--ci"];
    let before = made.read("Cargo.toml");
    let dry = [&init[..], &["--dry-run"]].concat();
    made.dpor(&dry).with(0).says(&[
        "would change Cargo.toml",
        "would create src/sync.rs",
        "+ mod sync;",
    ]);
    assert_eq!(made.read("Cargo.toml"), before, "a dry run changes nothing");
    assert!(!made.path("src/sync.rs").exists());

    made.dpor(&init).with(0).says(&[
        "changed Cargo.toml",
        "+ [target.'cfg(dpor)'.dependencies]",
        "+ unexpected_cfgs = { level = \"warn\", check-cfg = [\"cfg(dpor)\"] }",
        "+ dpor.opt-level = 3",
        "changed src/lib.rs",
        "created src/sync.rs",
        "created tests/models.rs",
        "created .vscode/settings.json",
        "created .github/workflows/dpor.yml",
        "next: cargo dpor test",
    ]);
    assert!(
        made.read("Cargo.toml").starts_with(&before),
        "what was there stays as it was"
    );
    assert!(
        made.read("src/lib.rs")
            .contains("#![deny(missing_docs)]\n\nmod sync;\n\n/// Adds.\n")
    );
    assert!(made.read(".vscode/settings.json").contains("\"dpor\""));
    assert!(
        made.read(".github/workflows/dpor.yml")
            .contains("cargo dpor test")
    );

    let files = [
        "Cargo.toml",
        "src/lib.rs",
        "src/sync.rs",
        "tests/models.rs",
        ".vscode/settings.json",
    ];
    let texts = files.map(|file| made.read(file));
    let told = made
        .dpor(&init)
        .with(0)
        .says(&["nothing to change: fresh is set up"])
        .out;
    assert!(
        !told.contains("changed ")
            || told.matches("changed ").count() == told.matches("unchanged ").count(),
        "{told}"
    );
    assert_eq!(files.map(|file| made.read(file)), texts);

    let ended_ = made
        .dpor(&["test"])
        .with(0)
        .says(&["1 model: 1 complete", "models no_update_is_lost"]);
    assert!(!ended_.err.contains("warning"), "{}", ended_.err);
    // Without the cfg, the wrapper of the cell and the switch compile as they are.
    let plain = ended(made.command("cargo").args(["test", "--lib"])).with(0);
    assert!(!plain.err.contains("warning"), "{}", plain.err);
}

#[test]
fn a_workspace_member_is_set_up_where_its_manifests_say() {
    let made = Crate::empty();
    made.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"3\"\n\n[workspace.lints.rust]\nunsafe_code = \"deny\"\n",
    );
    made.package("one", "one", "[lints]\nworkspace = true\n");
    made.package("two", "two", "");
    made.lock("");
    let path = library().display().to_string();
    let told = made.dpor(&["init", "--path", &path]).with(2).err;
    assert!(
        told.contains("name one of them with -p: one, two"),
        "{told}"
    );
    let told = made
        .dpor(&["init", "--path", &path, "-p", "three"])
        .with(2)
        .err;
    assert!(
        told.contains("no workspace member is named `three`"),
        "{told}"
    );
    made.dpor(&["init", "--path", &path, "-p", "one"])
        .with(0)
        .says(&["next: cargo dpor test -p one"]);
    let root = made.read("Cargo.toml");
    assert!(
        root.contains("check-cfg = [\"cfg(dpor)\"]") && root.contains("dpor.opt-level = 3"),
        "{root}"
    );
    let member = made.read("one/Cargo.toml");
    assert!(
        !member.contains("check-cfg") && !member.contains("profile"),
        "{member}"
    );
    assert!(!made.read("two/Cargo.toml").contains("dpor"));
    made.dpor(&["init", "-p", "one"])
        .with(0)
        .says(&["nothing to change: one is set up"]);
    made.dpor(&["test", "-p", "one"])
        .with(0)
        .says(&["1 model: 1 complete"]);
    made.dpor(&["test", "-p", "two"])
        .with(4)
        .says(&["no selected package depends on dpor"]);
    // As in the folder of that member.
    made.dpor(&["test", "--manifest-path", "two/Cargo.toml"])
        .with(4)
        .says(&["no selected package depends on dpor"]);
}

#[test]
fn a_crate_for_loom_keeps_its_tests() {
    let made = Crate::new(
        "for_loom",
        "[target.'cfg(loom)'.dev-dependencies]\nloom = { version = \"0.7\", features = [\"futures\", \"serde\"] } # the checker\n\n\
         [lints.rust]\nunexpected_cfgs = { level = \"warn\", check-cfg = ['cfg(loom)'] }\n",
    );
    made.write(
        "tests/loom.rs",
        r#"#![cfg(loom)]
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn counts() {
    loom::model(|| {
        let counter = Arc::new(AtomicUsize::new(0));
        let theirs = counter.clone();
        let other = loom::thread::spawn(move || theirs.fetch_add(1, Ordering::Relaxed));
        counter.fetch_add(1, Ordering::Relaxed);
        other.join().unwrap();
        assert_eq!(counter.load(Ordering::Relaxed), 2);
    });
}
"#,
    );
    let path = library().display().to_string();
    made.dpor(&["init", "--path", &path]).with(0).says(&[
        "dpor has no feature serde: dropped",
        "`loom` in target.'cfg(loom)'.dev-dependencies is dpor now: `cargo dpor test` sets `--cfg loom`",
        "docs/LOOM.md",
    ]);
    let manifest = made.read("Cargo.toml");
    let line = format!(
        "loom = {{ package = \"dpor\", path = \"{path}\", features = [\"futures\"] }} # the checker\n"
    );
    assert!(manifest.contains(&line), "{manifest}");
    assert!(!made.path("src/sync.rs").exists() && !made.path("tests/models.rs").exists());
    made.dpor(&["init", "--path", &path])
        .with(0)
        .says(&["nothing to change"]);
    made.dpor(&["test"])
        .with(0)
        .says(&["1 model: 1 complete", "loom counts"]);
}

#[test]
fn loom_of_the_workspace_is_renamed_there() {
    let made = Crate::empty();
    made.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"one\"]\nresolver = \"3\"\n\n[workspace.dependencies]\nloom = \"0.7\"\n",
    );
    made.package(
        "one",
        "one",
        "[features]\nmodel = [\"dep:loom\"]\n\n\
         [target.'cfg(one_loom)'.dependencies]\nloom.workspace = true\nloom.optional = true\n",
    );
    let path = library().display().to_string();
    made.dpor(&["init", "--path", &path, "-p", "one"])
        .with(0)
        .says(&[
            "every member that inherits loom",
            "`cargo dpor test --features model` sets `--cfg one_loom`",
        ]);
    let root = made.read("Cargo.toml");
    assert!(
        root.contains(&format!(
            "loom = {{ package = \"dpor\", path = \"{path}\" }}\n"
        )),
        "{root}"
    );
    let member = made.read("one/Cargo.toml");
    // The cfg has a name of its own, so the feature asks for loom's signatures.
    assert!(
        member.contains("loom.features = [\"loom\"]") && member.contains("cfg(one_loom)"),
        "{member}"
    );
    made.dpor(&["init", "--path", &path, "-p", "one"])
        .with(0)
        .says(&["nothing to change"]);
}

#[test]
fn what_cannot_be_set_up_is_told_and_left_alone() {
    let made = Crate::new("odd", "");
    made.write(
        "src/lib.rs",
        "use std::sync;\n\npub fn f(_: &sync::Mutex<u8>) {}\n",
    );
    let told = made.dpor(&["init", "--path", "src"]).with(2).err;
    assert!(told.contains("--path src: "), "{told}");
    let path = made.path("").display().to_string();
    let told = made.dpor(&["init", "--path", &path]).with(2).err;
    assert!(
        told.contains("this is the package `odd`, not `dpor`"),
        "{told}"
    );
    // The name is taken.
    let path = library().display().to_string();
    made.dpor(&["init", "--path", &path])
        .with(0)
        .says(&["created src/model_sync.rs", "+ mod model_sync;"]);
    made.dpor(&["init"]).with(0).says(&["nothing to change"]);
    let broken = "pub fn f( {}\n";
    made.write("src/lib.rs", broken);
    let told = made.dpor(&["init"]).with(2).err;
    assert!(told.contains("src/lib.rs:1:"), "{told}");
}
