//! Does the graph have every arrow once, and the race in red?

use super::failure;
use super::programs::unordered_flag;

/// `text` with the lines of places in `programs.rs` as `_`: they change whenever the file does.
fn without_lines(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("programs.rs:") {
        let (before, after) = rest.split_at(at + "programs.rs:".len());
        out.push_str(before);
        out.push('_');
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out + rest
}

#[test]
fn the_graph_of_a_data_race_has_every_arrow_once_and_the_race_in_red() {
    let found = without_lines(&failure(unordered_flag).dot());
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/data_race.dot");
    if std::env::var_os("DPOR_BLESS").is_some() {
        std::fs::write(golden, &found).expect("it can be written");
    }
    let expected = std::fs::read_to_string(golden).expect("it is there");
    pretty_assertions::assert_eq!(found, expected, "DPOR_BLESS=1 writes {golden} anew");
}
