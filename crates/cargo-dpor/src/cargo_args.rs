//! The arguments that are passed on to cargo, as far as this command has to know them.

use std::path::PathBuf;

/// Arguments of `cargo test`, or of `cargo nextest run`.
pub(crate) struct CargoArgs<'a> {
    /// The arguments in front of `--`.
    own: &'a [String],
    /// The arguments from `--` on.
    rest: &'a [String],
}

/// The options that decide what is built, and whether each takes a value.
const OF_THE_BUILD: [(&str, bool); 19] = [
    ("--features", true),
    ("-F", true),
    ("--all-features", false),
    ("--no-default-features", false),
    ("--release", false),
    ("-r", false),
    ("--profile", true),
    ("--cargo-profile", true),
    ("--target", true),
    ("--locked", false),
    ("--offline", false),
    ("--frozen", false),
    ("--manifest-path", true),
    ("--config", true),
    ("-Z", true),
    ("--ignore-rust-version", false),
    ("--jobs", true),
    ("-j", true),
    ("--build-jobs", true),
];

impl<'a> CargoArgs<'a> {
    pub(crate) fn new(words: &'a [String]) -> CargoArgs<'a> {
        let end = (words.iter().position(|word| word == "--")).unwrap_or(words.len());
        let (own, rest) = words.split_at(end);
        CargoArgs { own, rest }
    }

    pub(crate) fn own(&self) -> &'a [String] {
        self.own
    }

    pub(crate) fn rest(&self) -> &'a [String] {
        self.rest
    }

    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.own.iter().any(|word| names.contains(&&**word))
    }

    /// Returns all values of an option: `--name value`, `--name=value`, `-n value`, `-nvalue`.
    pub(crate) fn values(&self, names: &[&str]) -> Vec<&'a str> {
        let mut found = Vec::new();
        let mut words = self.own.iter();
        while let Some(word) = words.next() {
            if names.contains(&&**word) {
                found.extend(words.next().map(String::as_str));
                continue;
            }
            let joined = names.iter().find_map(|name| {
                let value = word.strip_prefix(name)?;
                match value.strip_prefix('=') {
                    Some(value) => Some(value),
                    None => (!name.starts_with("--")).then_some(value),
                }
            });
            found.extend(joined);
        }
        found
    }

    pub(crate) fn manifest_path(&self) -> Option<PathBuf> {
        self.values(&["--manifest-path"]).pop().map(PathBuf::from)
    }

    /// Returns the arguments that decide what is built, as arguments of `cargo test`.
    pub(crate) fn of_the_build(&self, nextest: bool) -> Vec<String> {
        let mut kept = Vec::new();
        let mut words = self.own.iter();
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or_default();
            let option = OF_THE_BUILD.iter().find(|(option, _)| *option == name);
            let Some(&(name, takes_value)) = option else {
                continue;
            };
            let value = match word.split_once('=') {
                Some((_, value)) => Some(value.to_owned()),
                None if takes_value => words.next().cloned(),
                None => None,
            };
            // The profile of nextest is one of its configuration.
            let name = match name {
                "--profile" if nextest => continue,
                "--cargo-profile" => "--profile",
                "--build-jobs" => "--jobs",
                "--jobs" | "-j" if nextest => continue,
                name => name,
            };
            kept.push(name.to_owned());
            kept.extend(value);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_the_build_is_kept_and_filters_are_not() {
        let line = "-p queue --features=a,b pops --profile ci --target x -- --exact pops -F";
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let arguments = CargoArgs::new(&words);
        assert_eq!(arguments.values(&["-p", "--package"]), ["queue"]);
        assert_eq!(arguments.rest()[0], "--");
        let kept = arguments.of_the_build(false).join(" ");
        assert_eq!(kept, "--features a,b --profile ci --target x");
        let kept = arguments.of_the_build(true).join(" ");
        assert_eq!(kept, "--features a,b --target x");
    }
}
