//! Where `dpor` comes from, as a dependency in a manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use toml_edit::{DocumentMut, Formatted, Value};

use crate::cli;
use crate::project::DPOR;

pub(crate) enum Source {
    Version(String),
    Path(PathBuf),
    Git(String),
}

impl Source {
    /// Returns the source that the arguments name. A directory has to hold the library.
    pub(crate) fn new(arguments: &cli::Init) -> Result<Source> {
        if let Some(path) = &arguments.path {
            let manifest = path.join("Cargo.toml");
            let text = std::fs::read_to_string(&manifest)
                .with_context(|| format!("--path {}: {}", path.display(), manifest.display()))?;
            let parsed: DocumentMut = (text.parse())
                .with_context(|| format!("--path {}: {}", path.display(), manifest.display()))?;
            let name = parsed
                .get("package")
                .and_then(|it| it.get("name")?.as_str());
            ensure!(
                name == Some(DPOR),
                "--path {}: this is the package `{}`, not `{DPOR}`",
                path.display(),
                name.unwrap_or("without a name")
            );
            return Ok(Source::Path(path.clone()));
        }
        Ok(match &arguments.git {
            Some(url) => Source::Git(url.clone()),
            None => Source::Version(arguments.version.clone()),
        })
    }

    /// Returns the key and the value for a manifest in this directory.
    pub(crate) fn entry(&self, directory: &Path) -> Result<(&'static str, Value)> {
        let text = |text: &str| Value::String(Formatted::new(text.to_owned()));
        Ok(match self {
            Source::Version(version) => ("version", text(version)),
            Source::Git(url) => ("git", text(url)),
            Source::Path(path) => ("path", text(&relative(path, directory)?)),
        })
    }

    /// Returns the command by which a machine elsewhere installs `cargo dpor`.
    pub(crate) fn install(&self, root: &Path) -> Result<String> {
        Ok(match self {
            Source::Version(_) => "cargo install --locked cargo-dpor".to_owned(),
            Source::Git(url) => format!("cargo install --git {url} cargo-dpor"),
            Source::Path(path) => {
                let path = relative(&path.join("crates/cargo-dpor"), root)?;
                format!("cargo install --path {path}")
            }
        })
    }
}

/// Returns the path from this directory, with the separators that a manifest has on any system. An
/// absolute path stays one.
fn relative(path: &Path, directory: &Path) -> Result<String> {
    let told = if path.is_absolute() {
        path.to_owned()
    } else {
        let absolute = |path: &Path| {
            let path = path.canonicalize().or_else(|_| std::path::absolute(path));
            path.with_context(|| path_name(directory))
        };
        let (path, directory) = (absolute(path)?, absolute(directory)?);
        pathdiff::diff_paths(&path, directory).unwrap_or(path)
    };
    let told = told.to_string_lossy().into_owned();
    Ok(if cfg!(windows) {
        told.replace('\\', "/")
    } else {
        told
    })
}

fn path_name(path: &Path) -> String {
    path.display().to_string()
}
