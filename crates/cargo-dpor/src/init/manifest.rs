//! Edits manifests. What is not changed keeps its formatting.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use cargo_metadata::cargo_platform::Platform;
use toml_edit::{
    Array, Document, DocumentMut, Formatted, InlineTable, Item, Key, Table, TableLike, Value,
};

use crate::init::changes::{Changes, shown};
use crate::init::source::Source;
use crate::project::{DPOR, collect};

/// A manifest that is edited.
pub(crate) struct Manifest<'a> {
    file: &'a Path,
    text: String,
    document: DocumentMut,
}

/// The tables of a manifest that hold dependencies.
const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// The names of features that `dpor` has for users of loom.
const OF_LOOM: [&str; 2] = ["futures", "checkpoint"];

/// A dependency on loom that has become one on `dpor`.
pub(crate) struct Renamed {
    /// Where it stands: `target.'cfg(loom)'.dependencies`.
    pub(crate) table: String,
    /// The cfgs under which it is used, if its table names some.
    pub(crate) cfgs: BTreeSet<String>,
    /// Features of loom that `dpor` does not have.
    pub(crate) dropped: Vec<String>,
    /// Whether its source stands in the manifest of the workspace.
    pub(crate) inherited: bool,
    /// The feature that switches it on, if it is optional.
    pub(crate) feature: Option<String>,
}

impl<'a> Manifest<'a> {
    pub(crate) fn read(changes: &Changes, file: &'a Path) -> Result<Manifest<'a>> {
        let text = changes
            .text(file)?
            .with_context(|| format!("{}: no such file", shown(file)))?;
        let parsed = Document::parse(text.clone()).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            anyhow!("{}: {}", place(file, &text, at), error.message())
        })?;
        Ok(Manifest {
            file,
            text,
            document: parsed.into_mut(),
        })
    }

    pub(crate) fn write(self, changes: &mut Changes) -> Result<()> {
        changes.set(self.file, self.document.to_string())
    }

    /// Returns the error that the value behind these keys is not what cargo wants there.
    fn misfit(&self, keys: &[&str], wanted: &str) -> anyhow::Error {
        let parsed = Document::parse(self.text.as_str()).ok();
        let mut item = parsed.as_ref().map(Document::as_item);
        for key in keys {
            item = item.and_then(|item| item.get(key));
        }
        let at = item.and_then(Item::span).map_or(0, |span| span.start);
        let place = place(self.file, &self.text, at);
        anyhow!("{place}: `{}` is expected to be {wanted}", keys.join("."))
    }

    /// Returns the table behind these keys, which is made if it is not there.
    fn table(&mut self, keys: &[&str]) -> Result<&mut dyn TableLike> {
        if let Some(length) = (1..=keys.len()).find(|length| {
            let item = self.item(&keys[..*length]);
            item.is_some_and(|item| !item.is_table_like())
        }) {
            return Err(self.misfit(&keys[..length], "a table"));
        }
        let mut item = self.document.as_item_mut();
        for key in keys {
            let inline = item.is_inline_table();
            // The keys of platforms stand in single quotes in most manifests.
            let key = match Key::parse(&format!("'{key}'")) {
                Ok(parsed) if key.contains('(') && parsed.len() == 1 => parsed[0].clone(),
                _ => Key::new(*key),
            };
            if let Some(table) = item.as_table_mut() {
                if !table.contains_key(key.get()) {
                    let mut made = Table::new();
                    made.set_implicit(true);
                    table.insert_formatted(&key, Item::Table(made));
                }
            } else if inline && let Some(table) = item.as_inline_table_mut() {
                table.get_or_insert(key.get(), Value::InlineTable(InlineTable::new()));
            }
            item = item.get_mut(key.get()).context("a table that was made")?;
        }
        item.as_table_like_mut().context("a table")
    }

    fn item(&self, keys: &[&str]) -> Option<&Item> {
        let root = Some(self.document.as_item());
        keys.iter()
            .fold(root, |item, key| item.and_then(|item| item.get(key)))
    }

    /// Returns the keys of all tables that hold dependencies of the package.
    fn dependency_tables(&self) -> Vec<Vec<String>> {
        let targets = self.item(&["target"]).and_then(Item::as_table_like);
        let targets = targets.into_iter().flat_map(TableLike::iter);
        let of_target = targets.flat_map(|(target, _)| {
            DEPENDENCIES.map(|kind| ["target", target, kind].map(str::to_owned).to_vec())
        });
        let plain = DEPENDENCIES.map(|kind| vec![kind.to_owned()]);
        let all = plain.into_iter().chain(of_target);
        all.filter(|keys| self.item(&borrowed(keys)).is_some())
            .collect()
    }

    /// Returns the tables and the names of all dependencies for which `is` holds. It is asked with
    /// the name and the package.
    fn dependencies(&self, is: impl Fn(&str, Option<&str>) -> bool) -> Vec<(Vec<String>, String)> {
        let mut found = Vec::new();
        for table in self.dependency_tables() {
            let item = self.item(&borrowed(&table)).and_then(Item::as_table_like);
            for (name, item) in item.into_iter().flat_map(TableLike::iter) {
                if is(name, item.get("package").and_then(Item::as_str)) {
                    found.push((table.clone(), name.to_owned()));
                }
            }
        }
        found
    }

    /// Returns where the manifest depends on `dpor`, under any name.
    pub(crate) fn on_dpor(&self) -> Option<(String, BTreeSet<String>)> {
        let is = |name: &str, package: Option<&str>| package.unwrap_or(name) == DPOR;
        let (table, name) = self.dependencies(is).into_iter().next()?;
        let mut cfgs = cfgs_of(&table);
        if cfgs.is_empty() {
            cfgs.insert(if name == "loom" {
                name.clone()
            } else {
                DPOR.to_owned()
            });
        }
        Some((format!("{}: {name}", joined(&table)), cfgs))
    }

    /// Whether the manifest takes a dependency of this name from the workspace.
    pub(crate) fn workspace_renames(&self, name: &str) -> bool {
        let package = self.item(&["workspace", "dependencies", name, "package"]);
        package.and_then(Item::as_str) == Some(DPOR)
    }

    /// Returns whether some dependency named loom is inherited from the workspace.
    pub(crate) fn inherits_loom(&self) -> bool {
        self.dependencies(is_loom).iter().any(|(table, name)| {
            let keys = borrowed(table);
            let dependency = self.item(&keys).and_then(|it| it.get(name));
            dependency.is_some_and(is_inherited)
        })
    }

    /// Adds the dependency, under `cfg(dpor)`.
    pub(crate) fn add_dpor(&mut self, source: &Source) -> Result<()> {
        let directory = self.file.parent().unwrap_or(Path::new("")).to_owned();
        let (key, value) = source.entry(&directory)?;
        let value = match source {
            Source::Version(_) => value,
            _ => {
                let mut table = InlineTable::new();
                table.insert(key, value);
                Value::InlineTable(table)
            }
        };
        let table = self.table(&["target", "cfg(dpor)", "dependencies"])?;
        table.insert(DPOR, Item::Value(value));
        Ok(())
    }

    /// Makes each dependency on loom one on `dpor` under loom's name.
    pub(crate) fn rename_loom(
        &mut self,
        source: &Source,
        feature: impl Fn(&BTreeSet<String>) -> bool,
    ) -> Result<Vec<Renamed>> {
        let mut renamed = Vec::new();
        for (table, name) in self.dependencies(is_loom) {
            let cfgs = cfgs_of(&table);
            let mut keys = borrowed(&table);
            keys.push(&name);
            let inherited = self.item(&keys).is_some_and(is_inherited);
            let optional = self
                .item(&keys)
                .and_then(|it| it.get("optional")?.as_bool());
            let feature_of = optional
                .unwrap_or_default()
                .then(|| self.feature_for(&name));
            let source = (!inherited).then_some(source);
            let dropped = self.point_to_dpor(&keys, source, feature(&cfgs))?;
            renamed.push(Renamed {
                table: joined(&table),
                cfgs,
                dropped,
                inherited,
                feature: feature_of,
            });
        }
        Ok(renamed)
    }

    /// Returns the feature that switches an optional dependency on. One that no feature names has a
    /// feature of its own name.
    fn feature_for(&self, dependency: &str) -> String {
        let named = format!("dep:{dependency}");
        let features = self.item(&["features"]).and_then(Item::as_table_like);
        let mut features = features.into_iter().flat_map(TableLike::iter);
        let feature = features.find(|(_, item)| {
            let mut parts = item.as_array().into_iter().flatten();
            parts.any(|part| part.as_str() == Some(&named))
        });
        feature.map_or(dependency, |(name, _)| name).to_owned()
    }

    /// Makes the dependency on loom that members inherit one on `dpor`.
    pub(crate) fn rename_inherited_loom(&mut self, source: &Source) -> Result<Vec<String>> {
        let keys = ["workspace", "dependencies", "loom"];
        self.point_to_dpor(&keys, Some(source), false)
    }

    /// Changes the source of a dependency, if a new one is given, and its features. Returns the
    /// features that `dpor` does not have.
    fn point_to_dpor(
        &mut self,
        keys: &[&str],
        source: Option<&Source>,
        wants_feature: bool,
    ) -> Result<Vec<String>> {
        let directory = self.file.parent().unwrap_or(Path::new("")).to_owned();
        let mut item = self.document.as_item_mut();
        for key in keys {
            item = item.get_mut(key).with_context(|| keys.join("."))?;
        }
        // A version alone becomes a table, with the comments around it.
        if let Item::Value(Value::String(version)) = item {
            let decor = version.decor().clone();
            let mut table = InlineTable::new();
            *table.decor_mut() = decor;
            *item = Item::Value(Value::InlineTable(table));
        }
        let Some(table) = item.as_table_like_mut() else {
            return Err(self.misfit(keys, "a version or a table"));
        };
        let mut dropped = Vec::new();
        let mut features = Vec::new();
        if let Some(named) = table.get("features").and_then(Item::as_array) {
            for feature in named.iter().filter_map(Value::as_str) {
                match OF_LOOM.contains(&feature) {
                    true => features.push(feature.to_owned()),
                    false => dropped.push(feature.to_owned()),
                }
            }
        }
        if wants_feature {
            features.push("loom".to_owned());
        }
        let text = |text: &str| Item::Value(Value::String(Formatted::new(text.to_owned())));
        if let Some(source) = source {
            for key in ["version", "path", "git", "branch", "tag", "rev", "registry"] {
                table.remove(key);
            }
            let (key, value) = source.entry(&directory)?;
            // The name of the package comes first.
            let others: Vec<_> = table.iter().map(|(key, _)| key.to_owned()).collect();
            let others = others
                .into_iter()
                .filter_map(|key| Some((key.clone(), table.remove(&key)?)));
            let others: Vec<_> = others.collect();
            table.insert("package", text(DPOR));
            table.insert(key, Item::Value(value));
            for (key, item) in others {
                table.insert(&key, item);
            }
        }
        match features.is_empty() {
            true => {
                table.remove("features");
            }
            false => {
                let mut array = Array::new();
                features
                    .iter()
                    .for_each(|feature| array.push(feature.as_str()));
                table.insert("features", Item::Value(Value::Array(array)));
            }
        }
        if let Item::Value(Value::InlineTable(table)) = item {
            table.fmt();
        }
        Ok(dropped)
    }

    /// Whether the lints are those of the workspace.
    pub(crate) fn inherits_lints(&self) -> bool {
        let inherits = self.item(&["lints", "workspace"]).and_then(Item::as_bool);
        inherits.unwrap_or_default()
    }

    /// Adds the cfg to those that the compiler expects. Returns whether it was not among them.
    pub(crate) fn expect_cfg(&mut self, of_workspace: bool, cfg: &str) -> Result<bool> {
        let keys: &[&str] = match of_workspace {
            true => &["workspace", "lints", "rust"],
            false => &["lints", "rust"],
        };
        const LINT: &str = "unexpected_cfgs";
        let lint: Vec<&str> = keys.iter().copied().chain([LINT]).collect();
        let check: Vec<&str> = lint.iter().copied().chain(["check-cfg"]).collect();
        let expected = format!("cfg({cfg})");
        match self.item(&lint) {
            None => {
                let mut table = InlineTable::new();
                table.insert("level", "warn".into());
                table.insert("check-cfg", Array::from_iter([expected]).into());
                let lints = self.table(keys)?;
                lints.insert(LINT, Item::Value(table.into()));
                return Ok(true);
            }
            Some(item) if item.as_str() == Some("allow") => return Ok(false),
            Some(item) if item.is_str() => {
                let level = item.as_str().unwrap_or("warn").to_owned();
                let mut table = InlineTable::new();
                table.insert("level", level.into());
                table.insert("check-cfg", Array::from_iter([expected]).into());
                let lints = self.table(keys)?;
                lints.insert(LINT, Item::Value(table.into()));
                return Ok(true);
            }
            Some(item) if item.is_table_like() => {}
            Some(_) => return Err(self.misfit(&lint, "a level or a table")),
        }
        let has = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.any(|word| word == cfg)
        };
        match self.item(&check) {
            None => {
                let list = Item::Value(Array::from_iter([expected]).into());
                self.table(&lint)?.insert("check-cfg", list);
                return Ok(true);
            }
            Some(item) => match item.as_array() {
                Some(list) if list.iter().any(has) => return Ok(false),
                Some(_) => {}
                None => return Err(self.misfit(&check, "an array")),
            },
        }
        let list = self
            .table(&lint)?
            .get_mut("check-cfg")
            .and_then(Item::as_array_mut);
        let list = list.context("an array")?;
        // A list with one item on each line stays one.
        let last = list.iter().last().map(|last| last.decor().clone());
        let mut value = Value::from(expected);
        match last.filter(|_| list.len() > 1 || list.trailing_comma()) {
            Some(decor) => {
                *value.decor_mut() = decor;
                list.push_formatted(value);
            }
            None => list.push(value),
        }
        Ok(true)
    }

    /// Lets the compiler optimise these packages in the profile of tests. Returns those for which
    /// the manifest had said nothing.
    pub(crate) fn optimise(&mut self, packages: &[&'static str]) -> Result<Vec<&'static str>> {
        let level = |keys: &[&str]| {
            let level = self.item(keys)?;
            level
                .as_integer()
                .map(|level| level >= 2)
                .or(level.as_str().map(|_| true))
        };
        let all = ["profile", "dev", "opt-level"];
        let others = ["profile", "dev", "package", "*", "opt-level"];
        if level(&all) == Some(true) || level(&others) == Some(true) {
            return Ok(Vec::new());
        }
        let mut added = Vec::new();
        for &package in packages {
            let keys = ["profile", "dev", "package", package];
            if self
                .item(&keys)
                .and_then(|item| item.get("opt-level"))
                .is_some()
            {
                continue;
            }
            added.push(package);
            let is_there = self.item(&keys).is_some();
            let table = self.table(&keys[..3])?;
            if !is_there {
                let mut own = Table::new();
                own.set_dotted(true);
                table.insert(package, Item::Table(own));
            }
            let own = table.get_mut(package).and_then(Item::as_table_like_mut);
            let own = own.context("the table of a package")?;
            own.insert("opt-level", toml_edit::value(3));
            // The library is large. In one unit and without debug information, which reports do not
            // need of it, it is built in half of the time.
            if package == DPOR {
                for (key, value) in [
                    ("codegen-units", toml_edit::value(1)),
                    ("debug", toml_edit::value(false)),
                ] {
                    if !own.contains_key(key) {
                        own.insert(key, value);
                    }
                }
            }
        }
        Ok(added)
    }
}

fn is_loom(name: &str, package: Option<&str>) -> bool {
    package.unwrap_or(name) == "loom"
}

fn is_inherited(dependency: &Item) -> bool {
    let inherits = dependency.get("workspace").and_then(Item::as_bool);
    inherits.unwrap_or_default()
}

fn borrowed(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

fn joined(keys: &[String]) -> String {
    let quoted = keys.iter().map(|key| match key.contains('(') {
        true => format!("'{key}'"),
        false => key.clone(),
    });
    quoted.collect::<Vec<_>>().join(".")
}

/// Returns the cfgs that a table of dependencies names.
fn cfgs_of(table: &[String]) -> BTreeSet<String> {
    let mut cfgs = BTreeSet::new();
    if let [_, target, _] = table
        && let Ok(Platform::Cfg(expression)) = target.parse()
    {
        collect(&expression, &mut cfgs);
    }
    cfgs
}

/// Names a place in a file: `Cargo.toml:3:5`.
pub(crate) fn place(file: &Path, text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("{}:{line}:{column}", shown(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the manifest after the change.
    fn changed<T>(
        text: &str,
        change: impl FnOnce(&mut Manifest<'_>) -> Result<T>,
    ) -> Result<String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("Cargo.toml");
        std::fs::write(&file, text).expect("a file");
        let mut changes = Changes::default();
        let mut manifest = Manifest::read(&changes, &file)?;
        change(&mut manifest)?;
        manifest.write(&mut changes)?;
        Ok(changes.text(&file)?.unwrap_or_default())
    }

    fn version() -> Source {
        Source::Version("0.1".to_owned())
    }

    #[test]
    fn new_tables_stand_at_the_end_and_nothing_else_moves() {
        let text = "[package] # a comment\nname   = \"a\"\n\n[dependencies]\nserde = \"1\" # why\n";
        let added = changed(text, |manifest| {
            manifest.add_dpor(&version())?;
            manifest.expect_cfg(false, "dpor")?;
            manifest.optimise(&["dpor", "generator"])
        });
        let expected = format!(
            "{text}\n[target.'cfg(dpor)'.dependencies]\ndpor = \"0.1\"\n\n[lints.rust]\nunexpected_cfgs = {{ level = \"warn\", \
             check-cfg = [\"cfg(dpor)\"] }}\n\n[profile.dev.package]\ndpor.opt-level = 3\n\
             dpor.codegen-units = 1\ndpor.debug = false\ngenerator.opt-level = 3\n"
        );
        assert_eq!(added.expect("well-formed"), expected);
    }

    #[test]
    fn a_list_of_cfgs_keeps_its_form() {
        let expect = |text: &str| changed(text, |manifest| manifest.expect_cfg(false, "dpor"));
        for (text, expected) in [
            (
                "[lints.rust]\nunexpected_cfgs = { level = \"deny\", check-cfg = [\"cfg(a)\"] }\n",
                "[lints.rust]\nunexpected_cfgs = { level = \"deny\", check-cfg = [\"cfg(a)\", \"cfg(dpor)\"] }\n",
            ),
            (
                "[lints.rust.unexpected_cfgs]\nlevel = \"warn\"\ncheck-cfg = [\n    'cfg(a)',\n]\n",
                "[lints.rust.unexpected_cfgs]\nlevel = \"warn\"\ncheck-cfg = [\n    'cfg(a)',\n    \"cfg(dpor)\",\n]\n",
            ),
            (
                "[lints.rust]\nunexpected_cfgs = \"deny\"\n",
                "[lints.rust]\nunexpected_cfgs = { level = \"deny\", check-cfg = [\"cfg(dpor)\"] }\n",
            ),
            (
                "lints = { rust = { unsafe_code = \"deny\" } }\n",
                "lints = { rust = { unsafe_code = \"deny\" , unexpected_cfgs = { level = \"warn\", check-cfg = [\"cfg(dpor)\"] } } }\n",
            ),
        ] {
            assert_eq!(expect(text).expect("well-formed"), expected);
            assert_eq!(
                expect(expected).expect("well-formed"),
                expected,
                "a second time"
            );
        }
        let has = "[lints.rust]\nunexpected_cfgs = { level = \"warn\", check-cfg = ['cfg(loom, dpor)'] }\n";
        assert_eq!(expect(has).expect("well-formed"), has);
    }

    #[test]
    fn loom_is_renamed_in_each_form() {
        let rename = |text: &str, feature| {
            changed(text, |manifest| {
                manifest.rename_loom(&version(), |_| feature)
            })
        };
        for (text, feature, expected) in [
            (
                "[dev-dependencies]\nloom = \"0.7\" # why\n",
                false,
                "[dev-dependencies]\nloom = { package = \"dpor\", version = \"0.1\" } # why\n",
            ),
            (
                "[target.'cfg(loom)'.dev-dependencies]\nloom = { version = \"0.7\", features = [\"futures\", \"serde\"], optional = true }\n",
                false,
                "[target.'cfg(loom)'.dev-dependencies]\nloom = { package = \"dpor\", version = \"0.1\", features = [\"futures\"], optional = true }\n",
            ),
            (
                "[dependencies.loom]\nversion = \"0.7\"\noptional = true\n",
                true,
                "[dependencies.loom]\npackage = \"dpor\"\nversion = \"0.1\"\noptional = true\nfeatures = [\"loom\"]\n",
            ),
        ] {
            assert_eq!(rename(text, feature).expect("well-formed"), expected);
            assert_eq!(
                rename(expected, feature).expect("well-formed"),
                expected,
                "a second time"
            );
        }
    }

    #[test]
    fn an_error_names_the_line() {
        let error = |text: &str| {
            let add = |manifest: &mut Manifest<'_>| {
                manifest.add_dpor(&version())?;
                manifest.expect_cfg(false, "dpor")
            };
            changed(text, add).expect_err("an error").to_string()
        };
        let told = error("[package]\nname = \n");
        assert!(told.contains("Cargo.toml:2:8: "), "{told}");
        let told = error("[package]\nname = \"a\"\n\n[target]\n\"cfg(dpor)\" = 1\n");
        let expected = "Cargo.toml:5:15: `target.cfg(dpor)` is expected to be a table";
        assert!(told.ends_with(expected), "{told}");
        let told = error("[lints.rust]\nunexpected_cfgs = 3\n");
        assert!(
            told.contains("Cargo.toml:2:19: `lints.rust.unexpected_cfgs` is "),
            "{told}"
        );
    }
}
