//! Does the page of a failure work in a browser?
//!
//! With Chromium where there is one, headless: a script behind the page's own presses keys, moves the slider
//! and the mouse, looks at what is shown, and writes down what it saw. Without Chromium a line says so, past the harness.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Builder, Failure, thread};

struct Slot {
    data: UnsafeCell<u32>,
    ready: AtomicBool,
    uses: AtomicUsize,
}

// SAFETY: the model finds that this is a lie: `ready` does not order the accesses to `data`.
unsafe impl Sync for Slot {}

/// Two threads, some events of each, and a data race behind the last one.
fn failure() -> Box<Failure> {
    let mut builder = Builder::new();
    // The shown execution is the found one, with what follows the race.
    builder.simplify = 0;
    let found = builder.explore(|| {
        let slot = Arc::new(Slot {
            data: UnsafeCell::new(0),
            ready: AtomicBool::new(false),
            uses: AtomicUsize::new(0),
        });
        let theirs = slot.clone();
        let other = thread::Builder::new().name("</script><b>writer".to_owned());
        let other = other.spawn(move || {
            tracing::info!("about to write");
            // SAFETY: the model stops before an access that is not ordered with another one.
            theirs.data.with_mut(|data| unsafe { *data = 1 });
            theirs.uses.fetch_add(1, Relaxed);
            theirs.ready.store(true, Relaxed);
        });
        slot.uses.fetch_add(1, Relaxed);
        if slot.ready.load(Relaxed) {
            // SAFETY: as above.
            slot.data.with(|data| unsafe { *data });
        }
        other.expect("it spawns").join().unwrap();
    });
    found.expect_err("a data race")
}

#[test]
fn the_page_holds_the_json_and_asks_for_nothing_else() {
    let failure = failure();
    let page = failure.html();
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(start).expect("the data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(parse(data), parse(&failure.json()));
    for outside in ["http:", "https:", "//www", "src=", "@import", "url(\""] {
        assert!(!page.contains(outside), "the page has `{outside}`");
    }
    let links = page.matches("href=").count();
    let inside = page.matches("href=\"data:,\"").count();
    assert_eq!(
        links, inside,
        "the icon is empty, and nothing else is linked"
    );
    assert!(page.contains("default-src 'none'"));
}

/// Behind the page's own script, so it sees what that one has.
const CHECKS: &str = include_str!("../support/page_checks.js");

/// What the checks have written, of the page in this colour scheme.
fn seen(chromium: &Path, page: &str, dark: bool) -> String {
    let name = format!("dpor-page-{}-{dark}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("page.html");
    std::fs::write(
        &file,
        format!("{page}<pre id=\"told\"></pre><script>{CHECKS}</script>"),
    )
    .expect("a file");
    let scheme = if dark { 0 } else { 1 };
    let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
    let address = format!("file://{}#step=5", file.display());
    let dom = crate::needs::dom(chromium, &folder, &address, &[scheme]);
    // What a browser leaves behind is of no use, and of no harm if it stays.
    let _ = std::fs::remove_dir_all(&folder);
    let told = dom
        .split_once("<pre id=\"told\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let (told, _) = told.unwrap_or_else(|| panic!("nothing is told: {dom}"));
    told.to_owned()
}

#[test]
fn lanes_slider_keys_mouse_and_filters_work_in_chromium() {
    let Some(chromium) = crate::needs::chromium("nothing opens the page") else {
        return;
    };
    let page = failure().html();
    let told = seen(&chromium, &page, false);
    assert!(told.lines().count() > 30, "it ran to its end: {told}");
    let wrong: Vec<&str> = told.lines().filter(|line| line.starts_with("NO")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(told.contains("background rgb(251, 251, 250)"), "{told}");
    let dark = seen(&chromium, &page, true);
    assert!(dark.contains("background rgb(21, 24, 28)"), "{dark}");
}
