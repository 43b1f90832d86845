//! The `mod sync` switch in the sources of the crate.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use cargo_metadata::{Package, TargetKind};
use syn::spanned::Spanned;

use crate::init::changes::{Changes, shown};
use crate::init::templates;

/// Adds the module, unless the crate has it.
pub(crate) fn add(changes: &mut Changes, package: &Package) -> Result<()> {
    let Some(root) = root(package) else {
        changes.keep(
            "the sources: there is neither a library nor a program that could have `mod sync`",
        );
        return Ok(());
    };
    if package.edition.as_str() == "2015" {
        changes.advise(
            "edition 2015 has other paths, so no `mod sync` was written; README shows its content",
        );
        return Ok(());
    }
    let text = changes.text(&root)?.unwrap_or_default();
    let parsed = syn::parse_file(&text).map_err(|error| {
        let at = error.span().start();
        anyhow!("{}:{}:{}: {error}", shown(&root), at.line, at.column + 1)
    })?;
    let mut name = "sync";
    for candidate in ["sync", "model_sync"] {
        name = candidate;
        if !parsed.items.iter().any(|item| binds(item, candidate)) {
            break;
        }
        let is_module = parsed.items.iter().any(|item| is_module(item, candidate));
        let file = file_of(&root, candidate)
            .into_iter()
            .find(|file| file.is_file());
        if is_module && let Some(file) = file {
            let switches = changes.text(&file)?.unwrap_or_default();
            if switches.contains("cfg(dpor)") || switches.contains("dpor::") {
                changes.keep(format!("{}: it is the switch already", shown(&file)));
                return Ok(());
            }
        }
    }
    let [file, _] = file_of(&root, name);
    if changes.text(&file)?.is_some() {
        changes.advise(format!(
            "{} is there already, and no module `{name}` of {}: no switch was written",
            shown(&file),
            shown(&root)
        ));
        return Ok(());
    }
    let no_std = parsed.attrs.iter().any(|attribute| {
        use quote::ToTokens as _;
        attribute
            .meta
            .to_token_stream()
            .to_string()
            .contains("no_std")
    });
    let switch = if no_std {
        templates::SWITCH_NO_STD
    } else {
        templates::SWITCH
    };
    changes.set(
        &file,
        switch.replace("crate::sync", &format!("crate::{name}")),
    )?;
    changes.set(&root, with_module(&text, &parsed, name))?;
    changes.advise(format!(
        "import atomics, locks, threads and cells from `crate::{name}` instead of std: \
         `use crate::{name}::atomic::AtomicUsize`"
    ));
    Ok(())
}

/// Returns the root source file of the library, or of the program.
pub(crate) fn root(package: &Package) -> Option<PathBuf> {
    let of = |wanted: &dyn Fn(&TargetKind) -> bool| {
        let mut targets = package.targets.iter();
        let target = targets.find(|target| target.kind.iter().any(wanted))?;
        Some(target.src_path.clone().into_std_path_buf())
    };
    let is_library = |kind: &TargetKind| {
        matches!(
            kind,
            TargetKind::Lib
                | TargetKind::RLib
                | TargetKind::DyLib
                | TargetKind::CDyLib
                | TargetKind::StaticLib
        )
    };
    of(&is_library).or_else(|| of(&|kind| *kind == TargetKind::Bin))
}

/// The two files in which a module of the root may lie.
fn file_of(root: &Path, name: &str) -> [PathBuf; 2] {
    let directory = root.parent().unwrap_or(Path::new(""));
    [
        directory.join(format!("{name}.rs")),
        directory.join(name).join("mod.rs"),
    ]
}

fn is_module(item: &syn::Item, name: &str) -> bool {
    matches!(item, syn::Item::Mod(module) if module.ident == name)
}

/// Whether the item gives the name `name` to a module.
fn binds(item: &syn::Item, name: &str) -> bool {
    match item {
        syn::Item::Use(item) => imports(&item.tree, name, None),
        item => is_module(item, name),
    }
}

fn imports(tree: &syn::UseTree, name: &str, parent: Option<&syn::Ident>) -> bool {
    match tree {
        syn::UseTree::Path(path) => imports(&path.tree, name, Some(&path.ident)),
        syn::UseTree::Name(it) if it.ident == "self" => parent.is_some_and(|it| it == name),
        syn::UseTree::Name(it) => it.ident == name,
        syn::UseTree::Rename(it) => it.rename == name,
        syn::UseTree::Glob(_) => false,
        syn::UseTree::Group(group) => group.items.iter().any(|tree| imports(tree, name, parent)),
    }
}

/// Returns the text with the module in front of the first item, or of the first module.
fn with_module(text: &str, parsed: &syn::File, name: &str) -> String {
    let modules = parsed.items.iter().find(|item| match item {
        syn::Item::Mod(module) => module.content.is_none() && module.attrs.is_empty(),
        _ => false,
    });
    let declaration = format!("mod {name};\n");
    let Some(item) = modules.or(parsed.items.first()) else {
        let gap = if text.is_empty() || text.ends_with("\n\n") {
            ""
        } else {
            "\n"
        };
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return format!("{text}{end}{gap}{declaration}");
    };
    let line = item.span().start().line.saturating_sub(1);
    let lines = text.split_inclusive('\n');
    let before: String = lines.clone().take(line).collect();
    let rest: String = lines.skip(line).collect();
    let gap = if modules.is_some() { "" } else { "\n" };
    format!("{before}{declaration}{gap}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> String {
        with_module(text, &syn::parse_file(text).expect("Rust"), "sync")
    }

    #[test]
    fn the_module_stands_in_front_of_the_first_item() {
        assert_eq!(with(""), "mod sync;\n");
        assert_eq!(with("//! Docs.\n"), "//! Docs.\n\nmod sync;\n");
        let text = "//! Docs.\n#![no_std]\n\n/// A function.\n#[inline]\npub fn f() {}\n";
        let expected = text.replace("/// A f", "mod sync;\n\n/// A f");
        assert_eq!(with(text), expected);
        assert_eq!(
            with("use std::a;\n\nmod b;\nmod c;\n"),
            "use std::a;\n\nmod sync;\nmod b;\nmod c;\n"
        );
    }

    #[test]
    fn a_name_that_is_taken_is_known() {
        let taken = |text: &str| {
            let parsed = syn::parse_file(text).expect("Rust");
            parsed.items.iter().any(|item| binds(item, "sync"))
        };
        assert!(taken("use std::sync;"));
        assert!(taken("use std::{io, sync::{self, Arc}};"));
        assert!(taken("mod sync {}"));
        assert!(!taken("use std::sync::Arc; use std::sync as other;"));
    }
}
