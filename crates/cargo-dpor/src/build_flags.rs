//! The flags of the compiler: those that cargo would use anyway, and the cfgs.
//!
//! Cargo takes its flags from one source alone: `CARGO_ENCODED_RUSTFLAGS`, or else `RUSTFLAGS`, or
//! else `target.*.rustflags`, or else `build.rustflags`. A cfg that is added by one of them would
//! switch off the others, so the flags of the source that counts are repeated with the cfgs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_config2::{Config, Flags};

use crate::cargo_args::CargoArgs;

/// The variables to set, and those to remove.
#[derive(Debug, Default)]
pub(crate) struct BuildFlags {
    set: Vec<(&'static str, String)>,
    remove: Vec<&'static str>,
}

impl BuildFlags {
    /// Returns the flags of a build from this directory with these arguments, under these cfgs.
    pub(crate) fn new(
        directory: &Path,
        arguments: &CargoArgs<'_>,
        cfgs: &BTreeSet<String>,
    ) -> Result<BuildFlags> {
        for value in arguments.values(&["--config"]) {
            let of_a_file = std::fs::read_to_string(value).unwrap_or_default();
            ensure!(
                !value.contains("rustflags") && !of_a_file.contains("rustflags"),
                "--config {value}: the flags of the compiler would replace the cfg, or be replaced; \
                 put them into .cargo/config.toml or into RUSTFLAGS"
            );
        }
        let config = Config::load_with_cwd(directory).context("cargo's configuration")?;
        let targets = arguments.values(&["--target"]);
        let targets = (config.build_target_for_config(targets)).context("cargo's configuration")?;
        let mut all: Vec<[Option<Flags>; 2]> = Vec::new();
        for target in &targets {
            all.push([config.rustflags(target)?, config.rustdocflags(target)?]);
        }
        let words = |flags: &Option<Flags>| -> Vec<String> {
            flags
                .as_ref()
                .map_or_else(Vec::new, |flags| flags.flags.clone())
        };
        let mut found = BuildFlags::default();
        let variables = [
            ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"),
            ("RUSTDOCFLAGS", "CARGO_ENCODED_RUSTDOCFLAGS"),
        ];
        for (nth, (plain, encoded)) in variables.into_iter().enumerate() {
            let mut of_targets = all.iter().map(|flags| words(&flags[nth]));
            let first = of_targets.next().unwrap_or_default();
            ensure!(
                of_targets.all(|other| other == first),
                "the targets have different {plain}; run `cargo dpor test` with one --target at a time"
            );
            found.add(plain, encoded, with_cfgs(first, cfgs));
        }
        Ok(found)
    }

    fn add(&mut self, plain: &'static str, encoded: &'static str, flags: Vec<String>) {
        // The commands that a report prints have the plain variable.
        if flags.iter().all(|flag| !flag.contains(' ')) {
            self.set.push((plain, flags.join(" ")));
            self.remove.push(encoded);
        } else {
            self.set.push((encoded, flags.join("\x1f")));
        }
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        for name in &self.remove {
            command.env_remove(name);
        }
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
    }
}

/// Adds the cfgs that the flags do not have.
fn with_cfgs(mut flags: Vec<String>, cfgs: &BTreeSet<String>) -> Vec<String> {
    for cfg in cfgs {
        let joined = format!("--cfg={cfg}");
        let apart = |pair: &[String]| pair[0] == "--cfg" && pair[1] == *cfg;
        if !flags.contains(&joined) && !flags.windows(2).any(apart) {
            flags.extend(["--cfg".to_owned(), cfg.clone()]);
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cfg_is_added_once() {
        let cfgs = BTreeSet::from(["dpor".to_owned()]);
        let added = |flags: &[&str]| {
            let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
            with_cfgs(flags, &cfgs).join(" ")
        };
        assert_eq!(added(&["-Copt-level=1"]), "-Copt-level=1 --cfg dpor");
        assert_eq!(added(&["--cfg", "dpor"]), "--cfg dpor");
        assert_eq!(added(&["--cfg=dpor"]), "--cfg=dpor");
        assert_eq!(added(&["--cfg", "loom"]), "--cfg loom --cfg dpor");
    }

    #[test]
    fn a_flag_with_a_space_is_passed_encoded() {
        let mut flags = BuildFlags::default();
        flags.add("PLAIN", "ENCODED", vec!["a".to_owned(), "b c".to_owned()]);
        assert_eq!(flags.set, [("ENCODED", "a\x1fb c".to_owned())]);
        assert!(flags.remove.is_empty());
    }
}
