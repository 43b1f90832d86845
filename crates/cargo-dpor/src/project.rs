//! The workspace: its packages, its directories, and the cfgs under which they use `dpor`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::cargo_platform::{Cfg, CfgExpr, Platform};
use cargo_metadata::{Dependency, Metadata, MetadataCommand, Package, Target, TargetKind};

/// The name of the library's package.
pub(crate) const DPOR: &str = "dpor";

/// The features of the library without which it writes no summary or page, and cannot share an
/// exploration.
const FEATURES: [&str; 4] = ["log", "progress", "page", "checkpoint"];

pub(crate) struct Project {
    metadata: Metadata,
    /// The manifest that the user names.
    manifest: Option<PathBuf>,
}

impl Project {
    /// Reads the workspace of this manifest, or of the current directory.
    pub(crate) fn read(manifest: Option<PathBuf>) -> Result<Project> {
        let mut command = MetadataCommand::new();
        command.no_deps();
        if let Some(manifest) = &manifest {
            command.manifest_path(manifest);
        }
        let metadata = command.exec().map_err(|error| match error {
            cargo_metadata::Error::CargoMetadata { stderr } => {
                let stderr = stderr.trim();
                anyhow::anyhow!("{}", stderr.strip_prefix("error: ").unwrap_or(stderr))
            }
            error => anyhow::Error::new(error).context("cargo metadata"),
        })?;
        Ok(Project { metadata, manifest })
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    pub(crate) fn members(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    /// The directory for the files of a run: the summary, the pages, and what is known of it.
    pub(crate) fn state(&self) -> PathBuf {
        self.metadata.target_directory.as_std_path().join("dpor")
    }

    /// The target directory of builds under the cfg, so that they and ordinary builds do not
    /// replace each other.
    pub(crate) fn build(&self) -> PathBuf {
        let target = self.metadata.target_directory.as_std_path();
        target.join("dpor-build")
    }

    /// The arguments by which a command finds this workspace again.
    pub(crate) fn manifest_argument(&self) -> String {
        let path = self.manifest.as_ref();
        path.map_or_else(String::new, |path| {
            format!(" --manifest-path {}", path.display())
        })
    }

    /// Returns the package of this name, or that of the manifest or of the current directory.
    pub(crate) fn package(&self, name: Option<&str>) -> Result<&Package> {
        let members = self.members();
        let names = || {
            let names = members.iter().map(|member| member.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        if let Some(name) = name {
            let found = members.iter().find(|member| member.name.as_str() == name);
            return found.copied().with_context(|| {
                format!(
                    "no workspace member is named `{name}`; there are {}",
                    names()
                )
            });
        }
        let manifest = match &self.manifest {
            Some(manifest) => std::path::absolute(manifest)?,
            None => {
                let here = std::env::current_dir().context("the current directory")?;
                let nearest =
                    (here.ancestors().map(|at| at.join("Cargo.toml"))).find(|it| it.is_file());
                nearest.context("there is no Cargo.toml here, nor in a directory above")?
            }
        };
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let manifest = canonical(&manifest);
        let of_manifest = members
            .iter()
            .find(|member| canonical(member.manifest_path.as_std_path()) == manifest);
        match (of_manifest, &members[..]) {
            (Some(member), _) | (None, [member]) => Ok(member),
            (None, _) => bail!(
                "{}: this workspace has several members; name one of them with -p: {}",
                manifest.display(),
                names()
            ),
        }
    }

    /// Returns the cfgs under which these packages, or all members if there are none, use `dpor`.
    pub(crate) fn cfgs(&self, packages: &[&str]) -> BTreeSet<String> {
        let selected =
            |member: &&Package| packages.is_empty() || packages.contains(&member.name.as_str());
        let members = self.members().into_iter().filter(selected);
        let mut cfgs = BTreeSet::new();
        for dependency in members.flat_map(|member| &member.dependencies) {
            if dependency.name == DPOR {
                cfgs.extend(cfgs_of(dependency));
            }
        }
        if cfgs.is_empty() {
            cfgs.insert(DPOR.to_owned());
        }
        cfgs
    }

    /// Returns the members that cargo selects: these packages, or all, or those of the current
    /// directory.
    fn selected(&self, packages: &[&str], all: bool) -> Vec<&Package> {
        let here = || self.package(None).ok().map(|package| &package.id);
        let root = self.metadata.workspace_root.join("Cargo.toml");
        let is_selected = |member: &&Package| match packages {
            [] if all => true,
            [] => match here() {
                Some(id) if member.manifest_path != root => *id == member.id,
                _ => self.metadata.workspace_default_members.contains(&member.id),
            },
            names => names.contains(&member.name.as_str()),
        };
        self.members().into_iter().filter(is_selected).collect()
    }

    /// Whether a selected member depends on `dpor`.
    pub(crate) fn depends(&self, packages: &[&str], all: bool) -> bool {
        let mut members = self.selected(packages, all).into_iter();
        members.any(|member| member.name.as_str() == DPOR || depends(member))
    }

    /// Returns cargo's arguments that switch on what the commands here need of the library, where
    /// it has no default features, in the selected members.
    pub(crate) fn features(&self, packages: &[&str], all: bool) -> Vec<String> {
        let members = self.selected(packages, all).into_iter();
        let dependencies = members.flat_map(|member| &member.dependencies);
        // Under its name in the manifest, and only if it is used: it may be optional. By default
        // the features are on. Cargo locks no package that the command line alone asks for, and so
        // asks the registry each time.
        let names: BTreeSet<&str> = dependencies
            .filter(|it| it.name == DPOR && !it.uses_default_features)
            .map(|it| it.rename.as_deref().unwrap_or(&it.name))
            .collect();
        let wanted = names
            .iter()
            .flat_map(|name| FEATURES.map(|feature| format!("{name}?/{feature}")));
        let wanted: Vec<String> = wanted.collect();
        match &wanted[..] {
            [] => Vec::new(),
            wanted => vec!["--features".to_owned(), wanted.join(",")],
        }
    }

    /// Returns cargo's arguments for the target with this name of the compiler's, in this package.
    pub(crate) fn target_arguments(&self, package: &str, target: &str) -> Vec<String> {
        let members = self.members().into_iter();
        let targets = members
            .filter(|member| member.name.as_str() == package)
            .flat_map(|member| &member.targets)
            .filter(|it| it.name.replace('-', "_") == target.replace('-', "_"));
        targets.flat_map(arguments_of).collect()
    }
}

/// Whether the package depends on `dpor`, under any name.
pub(crate) fn depends(package: &Package) -> bool {
    let mut dependencies = package.dependencies.iter();
    dependencies.any(|dependency| dependency.name == DPOR)
}

fn arguments_of(target: &Target) -> Vec<String> {
    let named = |option: &str| vec![option.to_owned(), target.name.clone()];
    match target.kind.first() {
        Some(TargetKind::Bin) => named("--bin"),
        Some(TargetKind::Test) => named("--test"),
        Some(TargetKind::Example) => named("--example"),
        Some(TargetKind::Bench) => named("--bench"),
        Some(TargetKind::CustomBuild) | None => Vec::new(),
        Some(_) => vec!["--lib".to_owned()],
    }
}

/// Returns the cfgs that switch this dependency on.
fn cfgs_of(dependency: &Dependency) -> BTreeSet<String> {
    let mut cfgs = BTreeSet::new();
    match &dependency.target {
        Some(Platform::Cfg(expression)) => collect(expression, &mut cfgs),
        // A crate that was written for loom compiles its tests under loom's cfg, wherever the
        // dependency stands.
        _ => cfgs.extend((dependency.rename.as_deref() == Some("loom")).then(|| "loom".to_owned())),
    }
    cfgs
}

/// The cfgs that the compiler sets by itself.
const OF_THE_COMPILER: [&str; 6] = ["unix", "windows", "test", "debug_assertions", "miri", "doc"];

/// Collects the names that have to be set for the expression to hold.
pub(crate) fn collect(expression: &CfgExpr, cfgs: &mut BTreeSet<String>) {
    match expression {
        CfgExpr::Value(Cfg::Name(name)) if !OF_THE_COMPILER.contains(&&*name.name) => {
            cfgs.insert(name.name.clone());
        }
        CfgExpr::All(all) | CfgExpr::Any(all) => all.iter().for_each(|it| collect(it, cfgs)),
        _ => {}
    }
}

/// Returns cargo, as the process that has started this one names it.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_condition_are_collected() {
        let names = |text: &str| {
            let mut cfgs = BTreeSet::new();
            collect(&text.parse().expect("a condition"), &mut cfgs);
            cfgs.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(names("dpor"), ["dpor"]);
        assert_eq!(names("all(test, loom, not(miri))"), ["loom"]);
        assert_eq!(names("any(loom, dpor)"), ["dpor", "loom"]);
        assert!(names("target_os = \"linux\"").is_empty());
    }
}
