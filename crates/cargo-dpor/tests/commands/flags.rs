//! Are the flags of the compiler those that cargo would use anyway, and the cfg?

use crate::support::{Crate, ended};

/// Prints the cfgs that it was compiled with.
const TEST: &str = r#"
#[test]
fn shows() {
    println!("kept={} spaced={} cfg={}", cfg!(kept), cfg!(spaced = "a b"), cfg!(dpor));
}
"#;

/// The configuration, the variables, and whether cargo sets the cfg `kept`.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);

#[test]
fn flags_come_from_the_source_that_cargo_takes() {
    let lint = "[lints.rust]\nunexpected_cfgs = \"allow\"\n";
    let made = Crate::new("flags", lint);
    made.write("tests/shows.rs", TEST);
    let kept = "--cfg kept";
    let encoded = "--cfg\u{1f}kept\u{1f}--cfg\u{1f}spaced=\"a b\"";
    let cases: [Case; 8] = [
        ("", &[], false),
        ("", &[("RUSTFLAGS", kept)], true),
        (
            "",
            &[
                ("CARGO_ENCODED_RUSTFLAGS", encoded),
                ("RUSTFLAGS", "--cfg other"),
            ],
            true,
        ),
        ("[build]\nrustflags = \"--cfg kept\"\n", &[], true),
        (
            "[build]\nrustflags = [\"--cfg\", \"kept\"]\n",
            &[("RUSTFLAGS", "--cfg other")],
            false,
        ),
        (
            "[build]\nrustflags = [\"--cfg\", \"kept\"]\n",
            &[("RUSTFLAGS", "")],
            true,
        ),
        (
            "[target.'cfg(all())']\nrustflags = [\"--cfg\", \"kept\"]\n",
            &[("CARGO_BUILD_RUSTFLAGS", "--cfg other")],
            true,
        ),
        (
            "[target.'cfg(any())']\nrustflags = [\"--cfg\", \"kept\"]\n[build]\nrustflags = \"--cfg other\"",
            &[],
            false,
        ),
    ];
    for (config, variables, is_kept) in cases {
        made.write(".cargo/config.toml", config);
        let arguments = ["test", "--test", "shows", "--", "--nocapture"];
        let told = made.dpor_with(&arguments, variables).with(4).out;
        let mut cargo = made.command("cargo");
        cargo.args(arguments).envs(variables.iter().copied());
        let by_cargo = ended(&mut cargo).with(0).out;
        let line = |out: &str| {
            let found = out
                .lines()
                .find_map(|line| Some(line[line.find("kept=")?..].to_owned()));
            found.unwrap_or_else(|| panic!("{out}"))
        };
        let expected = line(&by_cargo).replace("cfg=false", "cfg=true");
        assert_eq!(line(&told), expected, "{config} {variables:?}");
        // `RUSTFLAGS=` is the one case that is left to cargo's word alone.
        if variables.iter().all(|(_, value)| !value.is_empty()) {
            assert_eq!(
                expected.contains("kept=true"),
                is_kept,
                "{config} {variables:?}"
            );
        }
    }
}

#[test]
fn the_cfg_is_that_of_the_manifest() {
    let lint = "[lints.rust]\nunexpected_cfgs = \"allow\"\n";
    let made = Crate::new("named", lint);
    made.write("tests/shows.rs", TEST);
    let arguments = [
        "test",
        "--cfg",
        "kept",
        "--test",
        "shows",
        "--",
        "--nocapture",
    ];
    made.dpor(&arguments)
        .with(4)
        .says(&["kept=true spaced=false cfg=false"]);
}
