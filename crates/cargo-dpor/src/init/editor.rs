//! The editor's settings: rust-analyzer reads the code under the cfg, too.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};

use crate::init::changes::{Changes, shown};

const KEY: &str = "rust-analyzer.cargo.cfgs";

/// The cfgs that rust-analyzer sets if the settings name none.
const DEFAULT: [&str; 2] = ["debug_assertions", "miri"];

/// Adds the cfgs to the settings of the workspace.
pub(crate) fn add(changes: &mut Changes, root: &Path, cfgs: &[String]) -> Result<()> {
    let file = root.join(".vscode/settings.json");
    let before = changes.text(&file)?;
    let text = before.as_deref().filter(|text| !text.trim().is_empty());
    let after = with_cfgs(text.unwrap_or("{}\n"), cfgs)
        .map_err(|error| anyhow!("{}:{error}", shown(&file)))?;
    match before {
        Some(before) if before == after => {
            changes.keep(format!("{}: `{KEY}` has the cfg already", shown(&file)));
        }
        _ => changes.set(&file, after)?,
    }
    Ok(())
}

fn with_cfgs(text: &str, cfgs: &[String]) -> Result<String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| {
        anyhow!(
            "{}:{}: {}",
            error.line_display(),
            error.column_display(),
            error.kind()
        )
    })?;
    let object = root
        .object_value_or_create()
        .context("1:1: an object is expected")?;
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let Some(property) = object.get(KEY) else {
        let all = DEFAULT.into_iter().chain(cfgs.iter().map(String::as_str));
        object.append(KEY, CstInputValue::Array(all.map(text).collect()));
        return Ok(root.to_string());
    };
    let list = property
        .array_value()
        .with_context(|| format!("1:1: `{KEY}` is expected to be an array"))?;
    let has = |cfg: &str| {
        list.elements().iter().any(|element| {
            let literal = element.as_string_lit();
            literal.is_some_and(|it| it.decoded_value().is_ok_and(|value| value == cfg))
        })
    };
    for cfg in cfgs {
        if !has(cfg) {
            list.append(text(cfg));
        }
    }
    Ok(root.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_their_comments() {
        let cfgs = ["dpor".to_owned()];
        let with = |text: &str| with_cfgs(text, &cfgs).expect("well-formed");
        let text = "{\n  // mine\n  \"editor.tabSize\": 4,\n}\n";
        let after = with(text);
        assert!(
            after.starts_with("{\n  // mine\n  \"editor.tabSize\": 4,\n"),
            "{after}"
        );
        assert!(
            after.contains("[\"debug_assertions\", \"miri\", \"dpor\"]"),
            "{after}"
        );
        assert_eq!(with(&after), after, "a second time");
        let own = with("{ \"rust-analyzer.cargo.cfgs\": [\"a\"] }");
        assert_eq!(own, "{ \"rust-analyzer.cargo.cfgs\": [\"a\", \"dpor\"] }");
        let error = with_cfgs("{\n  \"a\" 1 }", &cfgs)
            .expect_err("an error")
            .to_string();
        assert!(error.starts_with("2:"), "{error}");
    }
}
