//! Does the JSON of a failure have every field that is promised, and are they all described?

use dpor::Builder;
use serde_json::Value;

use super::programs::{
    held_for_ever, lost_update, spins_for_ever, unordered_flag, used_after_free,
};
use super::{event, failure, list, parsed};

#[test]
fn the_json_of_a_failure_reads_back_with_every_field_that_is_promised() {
    let failure = failure(lost_update);
    let execution = parsed(&failure);
    let fields = |value: &Value| {
        let object = value.as_object().expect("an object");
        object.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        fields(&execution),
        [
            "again",
            "command",
            "dpor",
            "events",
            "execution",
            "fences",
            "folds",
            "format",
            "log",
            "objects",
            "outcome",
            "pair",
            "races",
            "schedule",
            "simplified",
            "source",
            "story",
            "test",
            "threads",
            "unnumbered"
        ]
    );
    assert_eq!(execution["format"], 1);
    assert_eq!(execution["dpor"], env!("CARGO_PKG_VERSION"));
    assert_eq!(execution["schedule"], failure.schedule());
    assert_eq!(
        execution["test"],
        "pictures::json::the_json_of_a_failure_reads_back_with_every_field_that_is_promised"
    );
    assert!(execution["execution"].as_u64() > Some(0));

    let outcome = &execution["outcome"];
    assert_eq!(
        fields(outcome),
        [
            "block",
            "data_race",
            "divergence",
            "earlier_panics",
            "kind",
            "leaked",
            "leaked_blocks",
            "message",
            "misuse",
            "place",
            "sentence",
            "thread",
            "waiting"
        ]
    );
    assert_eq!(outcome["kind"], "panic");
    assert_eq!(outcome["thread"], 0);
    let message = outcome["message"].as_str().expect("text");
    assert!(message.contains("an update was lost"), "{message}");
    let text = outcome["place"]["text"].as_str();
    assert!(text.is_some_and(|text| text.starts_with("assert_eq!(x.load")));

    let threads = list(&execution, "threads");
    assert_eq!(threads.len(), 2);
    assert_eq!(threads[0]["path"], "main");
    assert_eq!(threads[0]["spawned_by"], Value::Null);
    assert_eq!(threads[1]["path"], "main.1");
    assert_eq!(threads[1]["name"], "writer");
    assert_eq!(
        threads[1]["spawned_by"],
        event(&execution, "spawn")["number"]
    );

    let mut objects = list(&execution, "objects").iter();
    let x = objects.position(|object| object["kind"] == "AtomicUsize");
    let x = x.expect("x is an object");
    let object = &list(&execution, "objects")[x];
    assert_eq!(
        fields(object),
        ["initial", "kind", "memory", "name", "owner", "place"]
    );
    assert_eq!(
        (&object["memory"], &object["owner"]),
        (&"heap".into(), &0.into())
    );
    assert_eq!(object["initial"], "0");

    let events = list(&execution, "events");
    assert_eq!(events.len(), failure.events().len());
    for (index, (event, told)) in events.iter().zip(failure.events()).enumerate() {
        assert_eq!(
            fields(event),
            [
                "after",
                "alternative",
                "alternatives",
                "clock",
                "enabled_by",
                "found",
                "holds",
                "mo",
                "nth",
                "number",
                "object",
                "operation",
                "ordering",
                "place",
                "reads_from",
                "stale",
                "succeeded",
                "switch",
                "thread",
                "unseen",
                "why",
                "words"
            ]
        );
        assert_eq!(event["number"], index + 1);
        assert_eq!(event["words"], told.what);
        // A thread's end is told where the thread was spawned.
        if event["operation"] != "end" {
            assert_eq!(event["place"]["line"], told.place.line());
            assert_eq!(event["place"]["column"], told.place.column());
        }
        // A thread's own component counts its events.
        let own = event["thread"].as_u64().expect("a number") as usize;
        assert_eq!(list(event, "clock").len(), threads.len());
        assert_eq!(event["clock"][own], event["nth"]);
    }
    let store = event(&execution, ":= 1");
    assert_eq!(store["operation"], "store");
    assert_eq!(store["ordering"], "SeqCst");
    assert_eq!(
        (&store["holds"], &store["object"]),
        (&"1".into(), &x.into())
    );
    let last = events.last().expect("events");
    assert_eq!(
        (&last["operation"], &last["found"]),
        (&"load".into(), &1.into())
    );
    // The last load reads from the later of the two stores, which was the one that lost the other.
    let stores = events.iter().filter(|event| event["operation"] == "store");
    let stores: Vec<&Value> = stores.map(|event| &event["number"]).collect();
    assert_eq!(stores.len(), 2);
    assert_eq!(&last["reads_from"], stores[1]);
    let races = list(&execution, "races");
    let race = serde_json::json!({ "first": stores[0], "second": stores[1] });
    assert!(races.contains(&race), "{races:?} has {race}");
}

#[test]
fn a_schedule_that_is_malformed_has_an_outcome_and_no_events() {
    let mut builder = Builder::new();
    builder.replay = Some("v2 rain".to_owned());
    let failure = builder.explore(lost_update).expect_err("malformed");
    let execution = parsed(&failure);
    assert_eq!(execution["outcome"]["kind"], "schedule");
    let sentence = execution["outcome"]["sentence"].as_str().expect("text");
    assert!(sentence.contains("expected a thread"), "{sentence}");
    assert_eq!(list(&execution, "events").len(), 0);
}

#[test]
fn every_event_is_on_a_line_of_its_own() {
    let failure = failure(lost_update);
    let text = failure.json();
    let events = failure.events().len();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("  {\"number\":"));
    assert_eq!(lines.count(), events, "{text}");
}

#[test]
fn the_format_is_described_field_by_field() {
    let described = include_str!("../../../docs/REPORTS.md");
    fn names(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    found.push(name.clone());
                    names(value, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for failing in [
        unordered_flag,
        used_after_free,
        held_for_ever,
        spins_for_ever,
    ] {
        names(&parsed(&failure(failing)), &mut found);
    }
    for name in found {
        assert!(
            described.contains(&format!("`{name}`")),
            "docs/REPORTS.md lacks `{name}`"
        );
    }
    let kinds = include_str!("../../../src/rt/report/execution/kinds.rs");
    for word in kinds.split('"').skip(1).step_by(2) {
        assert!(
            described.contains(&format!("`{word}`")),
            "docs/REPORTS.md lacks `{word}`"
        );
    }
}
