//! Do text, JSON, page and graph of a failure tell the same story?
//!
//! The text is what the others are held against: what it says above its table, the rows that are no
//! events, the notes that stand for the rounds of a loop, and why another thread goes on.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{all, needs};

/// What the text report of a failure says.
struct Text {
    /// The lines above the table, without the user's panic.
    facts: Vec<String>,
    /// The rows that are no events: what each says between its sign and its place, and the place.
    asides: Vec<(String, String)>,
    /// What stands for rows that repeat others.
    folds: Vec<String>,
}

impl Text {
    fn of(report: &str) -> Text {
        let report = match report.starts_with("thread '") {
            true => report.split_once("\n\n").expect("the user's panic").1,
            false => report,
        };
        let above = report.lines().take_while(|line| {
            !line.is_empty() && !line.starts_with("schedule  ") && !line.starts_with("  schedule ")
        });
        let facts = above.map(str::to_owned).collect();
        let table = report
            .lines()
            .skip_while(|line| !line.ends_with(" where") && !line.contains(" where  "));
        let table: Vec<&str> = table.take_while(|line| !line.is_empty()).collect();
        let asides = table.iter().filter_map(|line| {
            let row = line.trim_start().strip_prefix("- ")?.trim_start();
            let (words, rest) = row.split_once("  ").unwrap_or((row, ""));
            let place = rest.trim_start().split("  ").next().unwrap_or_default();
            // Fences have a list of their own.
            (!words.ends_with("fence")).then(|| (words.to_owned(), place.to_owned()))
        });
        let note = |line: &&str| {
            let note = line.trim().strip_prefix('(')?.strip_suffix(')')?;
            let is_cut = note.ends_with("earlier rows") || note.ends_with("rows between");
            (!is_cut && !note.ends_with("more like this one)")).then(|| note.to_owned())
        };
        Text {
            facts,
            asides: asides.collect(),
            folds: table.iter().filter_map(note).collect(),
        }
    }
}

fn strings<'a>(list: &'a Value, field: &'a str) -> impl Iterator<Item = &'a str> {
    let list = list.as_array().expect("a list").iter();
    list.map(move |it| match field {
        "" => it.as_str().expect("a text"),
        _ => it[field].as_str().expect("a text"),
    })
}

/// The text without its white space: in the graph that is where a line is broken.
fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn every_form_of_a_failure_tells_the_same_story() {
    let mut roles: BTreeSet<String> = BTreeSet::new();
    let mut folded = 0;
    for (name, run) in all() {
        let failure = run();
        let report = failure.to_string();
        let text = Text::of(&report);
        assert!(!text.facts.is_empty(), "{name}: {report}");
        let json: Value = serde_json::from_str(&failure.json()).expect("JSON");
        let story: Vec<&str> = strings(&json["story"], "").collect();
        pretty_assertions::assert_eq!(story, text.facts, "{name}");

        let asides = json["unnumbered"].as_array().expect("a list").iter();
        let asides = asides.map(|it| {
            let (words, at) = (it["words"].as_str(), it["at"].as_str());
            roles.insert(it["role"].as_str().expect("a role").to_owned());
            if let Some(line) = it["place"]["line"].as_u64() {
                let at = at.expect("a place");
                assert!(at.ends_with(&format!(":{line}")), "{name}: {it}");
            }
            (
                words.expect("words").to_owned(),
                at.expect("a place").to_owned(),
            )
        });
        let asides: Vec<(String, String)> = asides.collect();
        pretty_assertions::assert_eq!(asides, text.asides, "{name}");

        // What the outcome says of an access is at the same place.
        for (role, access) in [
            ("use", &json["outcome"]["misuse"]),
            ("first", &json["outcome"]["data_race"]["first"]),
            ("second", &json["outcome"]["data_race"]["second"]),
        ] {
            let mut asides = json["unnumbered"].as_array().expect("a list").iter();
            let aside = asides.find(|it| it["role"] == role && it["place"].is_object());
            if let Some(aside) = aside {
                assert_eq!(access["place"], aside["place"], "{name}: {role}");
            }
        }

        let folds: Vec<&str> = strings(&json["folds"], "words").collect();
        let told = folds
            .iter()
            .filter(|it| !it.ends_with(" times") || it.starts_with("th"));
        let told: Vec<&str> = told.copied().collect();
        let is_cut = report.contains("rows between)") || report.contains("earlier rows)");
        if !is_cut {
            pretty_assertions::assert_eq!(told, text.folds, "{name}");
        }
        folded += folds.len();
        for fold in json["folds"].as_array().expect("a list") {
            let words = fold["words"].as_str().expect("words");
            assert!(
                is_cut || report.contains(&format!("({words})")),
                "{name}: {fold}"
            );
        }
        for event in json["events"].as_array().expect("a list") {
            let Some(switch) = event["switch"].as_str() else {
                continue;
            };
            assert!(is_cut || report.contains(switch), "{name}: {event}");
        }

        // The page is the data and a script, which `tests/reports/browser.rs` tries.
        let page = failure.html();
        let (_, data) = page.split_once("id=\"data\">").expect("the data");
        let (data, _) = data.split_once("</script>").expect("its end");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data, json, "{name}");

        let graph = dense(
            &failure
                .dot()
                .replace("\\l", "")
                .replace("\\\"", "\"")
                .replace("\\\\", "\\"),
        );
        for fact in &text.facts {
            assert!(
                graph.contains(&dense(fact)),
                "{name}: {fact}\n{}",
                failure.dot()
            );
        }
        for (words, place) in &text.asides {
            let label: String = words.chars().take(40).collect();
            let mut asides = json["unnumbered"].as_array().expect("a list").iter();
            let aside = asides.find(|it| it["words"] == **words);
            // The end of a thread's code, and accesses on the way, are no part of the failure.
            let beside = [json!("locals"), json!("access")];
            let is_red = aside.is_none_or(|it| !beside.contains(&it["role"]));
            let is_drawn = failure.dot().lines().any(|line| {
                line.contains("color=red, fontcolor=red") == is_red
                    && line.contains(&label)
                    && line.contains(place)
            });
            assert!(is_drawn, "{name}: {words}\n{}", failure.dot());
        }
    }
    let expected = ["access", "first", "gone", "locals", "second", "use"];
    let missing = expected.iter().filter(|it| !roles.contains(**it));
    assert_eq!(missing.count(), 0, "{roles:?}");
    assert!(folded > 5, "loops are folded");
}

/// The number of an event and the rest of its row in a table.
fn rows(report: &str) -> impl Iterator<Item = (u64, &str)> {
    report.lines().filter_map(|line| {
        let (number, row) = line.trim_start().split_once(' ')?;
        let number = number.trim_end_matches('*').parse().ok()?;
        Some((number, row.trim_start()))
    })
}

#[test]
fn every_form_tells_of_the_same_old_values() {
    let mut old = 0;
    for (name, run) in all() {
        let failure = run();
        let report = failure.to_string();
        let json: Value = serde_json::from_str(&failure.json()).expect("JSON");
        let is_weak = failure.schedule().starts_with("v2 c11");
        let events = json["events"].as_array().expect("a list");
        let why = events.iter().filter_map(|event| event["why"].as_str());
        let told = report
            .lines()
            .filter_map(|line| line.strip_prefix("  event "));
        let told: Vec<String> = told.map(|line| format!("event {line}")).collect();
        pretty_assertions::assert_eq!(why.collect::<Vec<_>>(), told, "{name}");
        for event in events {
            let is_stale = event["stale"].as_bool().expect("a truth value");
            assert_eq!(is_stale, event["why"].is_string(), "{name}: {event}");
            assert_eq!(is_stale, event["unseen"].is_u64(), "{name}: {event}");
            let on_atomic = ["load", "store", "swap", "compare_exchange"];
            let on_atomic = on_atomic.contains(&event["operation"].as_str().expect("a word"));
            if on_atomic {
                assert_eq!(event["mo"].is_u64(), is_weak, "{name}: {event}");
            }
            old += usize::from(is_stale);
        }
        if !is_weak {
            continue;
        }
        for fence in json["fences"].as_array().expect("a list") {
            let order = fence["ordering"].as_str().expect("an ordering");
            let is_told = |line: &str| {
                let place = format!(":{}", fence["place"]["line"]);
                line.contains(&format!("{order} fence ")) && line.contains(&place)
            };
            assert!(report.lines().any(is_told), "{name}: {fence}");
        }
        let event = |number: &Value| &events[number.as_u64().expect("a number") as usize - 1];
        for (number, row) in rows(&report) {
            let it = &events[number as usize - 1];
            let is_marked = row.contains("(old)") || row.contains("goes before ");
            assert_eq!(it["stale"], is_marked, "{name}: {row}");
            let from = row.split_once(" from ").and_then(|(_, rest)| {
                let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
                digits.parse::<u64>().ok()
            });
            let is_of_another =
                it["reads_from"].is_u64() && event(&it["reads_from"])["thread"] != it["thread"];
            let reads_from = it["reads_from"].as_u64().filter(|_| is_of_another);
            assert_eq!(from, reads_from, "{name}: {row}");
            if is_marked {
                // The store that is not seen is newer, and so is its place.
                let newer = event(&it["unseen"]);
                assert_eq!(newer["object"], it["object"], "{name}: {row}");
                let place = |it: &Value| it["mo"].as_u64().expect("a place");
                assert!(place(newer) > place(it), "{name}: {row}");
                let arrow = format!("  e{number} -> e{} [color=red, style=dotted", it["unseen"]);
                assert!(failure.dot().contains(&arrow), "{name}: {row}");
            }
        }
    }
    assert!(old > 8, "{old}");
}

/// Shows each of these pages in a frame of one page, and waits for what each says.
const AROUND: &str = "<pre id=\"told\"></pre><script>
    const told = [];
    addEventListener(\"message\", (it) => {
        told.push(it.data);
        document.getElementById(\"told\").textContent = `${told.length} pages\\n${told.join(\"\\n\")}`;
    });
</script>";

#[test]
fn every_page_shows_its_story_in_chromium() {
    let Some(chromium) = needs::chromium("no page of a failure is opened") else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("dpor-pages-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut around = AROUND.to_owned();
    for (name, run) in all() {
        let page = run().html();
        let page =
            format!("{page}<script>document.title = \"{name}\";</script><script>{CHECKS}</script>");
        std::fs::write(folder.join(format!("{name}.html")), page).expect("a file");
        around.push_str(&format!(
            "<iframe src=\"{name}.html\" width=\"1200\" height=\"900\"></iframe>"
        ));
    }
    let file = folder.join("all.html");
    std::fs::write(&file, around).expect("a file");
    let dom = needs::dom(
        &chromium,
        &folder,
        &format!("file://{}", file.display()),
        &[],
    );
    // What a browser leaves behind is of no use, and of no harm if it stays.
    let _ = std::fs::remove_dir_all(&folder);
    let told = dom
        .split_once("<pre id=\"told\">")
        .and_then(|it| it.1.split_once("</pre>"));
    let (told, _) = told.unwrap_or_else(|| panic!("nothing is shown: {dom}"));
    let pages = format!("{} pages", all().count());
    assert!(told.starts_with(&pages), "{told}");
    assert!(!told.contains("NO"), "{told}");
}

/// Behind the page's own script, so it sees what that one has.
const CHECKS: &str = include_str!("../support/story_checks.js");
