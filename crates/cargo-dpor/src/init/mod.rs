//! `cargo dpor init`: sets up a crate.

mod changes;
mod editor;
mod manifest;
mod source;
mod switch;
mod templates;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::Package;

use crate::Exit;
use crate::cli;
use crate::project::{DPOR, Project};
use changes::{Changes, shown};
use manifest::Manifest;
use source::Source;

pub(crate) fn init(arguments: &cli::Init) -> Result<Exit> {
    let source = Source::new(arguments)?;
    let project = Project::read(arguments.manifest_path.clone())?;
    let package = project.package(arguments.package.as_deref())?;
    let mut changes = Changes::default();
    let SetUp { cfgs, features } = manifests(&mut changes, &project, package, &source)?;
    if cfgs.iter().any(|cfg| cfg == DPOR) {
        switch::add(&mut changes, package)?;
        first_test(&mut changes, package)?;
    }
    if arguments.editor {
        editor::add(&mut changes, project.root(), &cfgs)?;
    }
    if arguments.ci {
        ci(&mut changes, project.root(), &source)?;
    }
    changes.print(arguments.dry_run);
    if changes.are_none() {
        say!("nothing to change: {} is set up", package.name);
        return Ok(Exit::Success);
    }
    if arguments.dry_run {
        return Ok(Exit::Success);
    }
    changes.write()?;
    let member = match (project.members().len(), &arguments.package) {
        (1, _) | (_, None) => String::new(),
        (_, Some(name)) => format!(" -p {name}"),
    };
    say!(
        "next: cargo dpor test{}{member}{}",
        project.manifest_argument(),
        features_argument(&features)
    );
    Ok(Exit::Success)
}

/// How the package uses `dpor`.
struct SetUp {
    cfgs: Vec<String>,
    /// The features that switch the dependency on.
    features: BTreeSet<String>,
}

fn features_argument(features: &BTreeSet<String>) -> String {
    let names: Vec<_> = features.iter().map(String::as_str).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" --features {}", names.join(",")),
    }
}

/// Edits the manifests of the package and of the workspace.
fn manifests(
    changes: &mut Changes,
    project: &Project,
    package: &Package,
    source: &Source,
) -> Result<SetUp> {
    let own = package.manifest_path.as_std_path();
    let of_workspace = project.root().join("Cargo.toml");
    let mut manifest = Manifest::read(changes, own)?;
    // A manifest may depend on loom under the name of the workspace's dependency on `dpor`.
    let is_done = manifest.inherits_loom()
        && Manifest::read(changes, &of_workspace)?.workspace_renames("loom");
    let loom = |cfgs: &BTreeSet<String>| !cfgs.contains("loom") && !mentions(package, "cfg(loom)");
    let (cfgs, renamed) = if let Some((place, cfgs)) = manifest.on_dpor() {
        changes.keep(format!("{}: it depends on dpor ({place})", shown(own)));
        (cfgs, Vec::new())
    } else if is_done {
        changes.keep(format!("{}: its loom is dpor", shown(own)));
        (project.cfgs(&[package.name.as_str()]), Vec::new())
    } else {
        let renamed = manifest.rename_loom(source, loom)?;
        let mut cfgs: BTreeSet<String> = renamed.iter().flat_map(|it| it.cfgs.clone()).collect();
        if renamed.is_empty() {
            manifest.add_dpor(source)?;
            cfgs.insert(DPOR.to_owned());
        } else if cfgs.is_empty() {
            cfgs.insert("loom".to_owned());
        }
        (cfgs, renamed)
    };
    let inherits_lints = manifest.inherits_lints();
    if !inherits_lints {
        expect_cfgs(changes, &mut manifest, own, false, &cfgs)?;
    }
    manifest.write(changes)?;
    let mut manifest = Manifest::read(changes, &of_workspace)?;
    if renamed.iter().any(|it| it.inherited) {
        let dropped = manifest.rename_inherited_loom(source)?;
        tell_dropped(changes, &dropped);
        changes.advise("every member that inherits loom from the workspace uses dpor now");
    }
    if inherits_lints {
        expect_cfgs(changes, &mut manifest, &of_workspace, true, &cfgs)?;
    }
    let added = manifest.optimise(&["dpor", "generator"])?;
    if added.is_empty() {
        changes.keep(format!(
            "{}: the profile optimises dpor",
            shown(&of_workspace)
        ));
    }
    manifest.write(changes)?;
    for renamed in &renamed {
        tell_dropped(changes, &renamed.dropped);
        let cfgs = cfgs.iter().map(String::as_str).collect::<Vec<_>>();
        let cfgs = cfgs.join(" --cfg ");
        let features = features_argument(&renamed.feature.iter().cloned().collect());
        changes.advise(format!(
            "`loom` in {} is dpor now: `cargo dpor test{features}` sets `--cfg {cfgs}`, or by hand \
             `RUSTFLAGS=\"--cfg {cfgs}\" cargo test{features}`",
            renamed.table
        ));
    }
    if !renamed.is_empty() {
        changes.advise(
            "docs/LOOM.md lists the differences: leaks of more kinds are failures with DPOR_CHECK_LEAKS=1, spurious \
             wake-ups are explored with DPOR_SPURIOUS_WAKEUPS=1, LOOM_* settings count where DPOR_* are not set",
        );
    }
    Ok(SetUp {
        cfgs: cfgs.into_iter().collect(),
        features: renamed.into_iter().filter_map(|it| it.feature).collect(),
    })
}

fn tell_dropped(changes: &mut Changes, features: &[String]) {
    if !features.is_empty() {
        changes.advise(format!(
            "dpor has no feature {}: dropped",
            features.join(", ")
        ));
    }
}

fn expect_cfgs(
    changes: &mut Changes,
    manifest: &mut Manifest<'_>,
    file: &Path,
    of_workspace: bool,
    cfgs: &BTreeSet<String>,
) -> Result<()> {
    let mut added = false;
    for cfg in cfgs {
        added |= manifest.expect_cfg(of_workspace, cfg)?;
    }
    if !added {
        changes.keep(format!("{}: the compiler expects the cfg", shown(file)));
    }
    Ok(())
}

/// Adds a first test, unless the package has models.
fn first_test(changes: &mut Changes, package: &Package) -> Result<()> {
    let directory = package
        .manifest_path
        .as_std_path()
        .parent()
        .unwrap_or(Path::new(""));
    let file = directory.join("tests/models.rs");
    if changes.text(&file)?.is_some()
        || mentions(package, "dpor::model")
        || mentions(package, "dpor::Builder")
    {
        changes.keep("the tests: there is a model already");
        return Ok(());
    }
    changes.set(&file, templates::TEST.to_owned())?;
    let manifest = std::fs::read_to_string(&package.manifest_path).unwrap_or_default();
    if manifest
        .lines()
        .any(|line| line.replace(' ', "").starts_with("autotests=false"))
    {
        changes
            .advise("the manifest has `autotests = false`: add a [[test]] with name = \"models\"");
    }
    Ok(())
}

/// Whether a source of the package has this text.
fn mentions(package: &Package, text: &str) -> bool {
    let directory = package
        .manifest_path
        .as_std_path()
        .parent()
        .unwrap_or(Path::new(""));
    let mut directories: Vec<PathBuf> = ["src", "tests"].map(|it| directory.join(it)).to_vec();
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|it| it == "rs")
                && std::fs::read_to_string(&path).is_ok_and(|source| source.contains(text))
            {
                return true;
            }
        }
    }
    false
}

fn ci(changes: &mut Changes, root: &Path, source: &Source) -> Result<()> {
    // Workflows lie at the root of the repository, which may be above that of the workspace.
    let repository = root
        .ancestors()
        .find(|at| at.join(".git").exists())
        .unwrap_or(root);
    let file = repository.join(".github/workflows/dpor.yml");
    if changes.text(&file)?.is_some() {
        changes.keep(format!("{}: it is there already", shown(&file)));
        return Ok(());
    }
    let install = source
        .install(repository)
        .context("the command that installs cargo dpor")?;
    changes.set(&file, templates::CI.replace("INSTALL", &install))?;
    if let Source::Path(path) = source {
        changes.advise(format!(
            "the workflow installs from {}, which has to be a part of the repository; --git names one elsewhere",
            path.display()
        ));
    }
    if repository != root {
        changes.advise(format!(
            "{}: let the steps run in the folder of the workspace (`working-directory`)",
            shown(&file)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::templates;

    #[test]
    fn the_files_that_are_written_parse() {
        for source in [templates::SWITCH, templates::SWITCH_NO_STD, templates::TEST] {
            syn::parse_file(source).expect("Rust");
        }
    }
}
