"use strict";
// Everything is drawn from the data in this page, in the format that docs/REPORTS.md describes.
// One number is the state: `step`, the event that is looked at; 0 is before the first one.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const { threads, objects, events, outcome } = data;
const weak = [outcome.data_race?.weak, ...outcome.data_race?.weaker ?? []].filter((pair) => pair);
const ROWS_MAX = 3000; // Of a longer execution the others are drawn when they are asked for,
const MORE = 500; // so many at a time.
const CONTEXT = 3; // Lines of the source above and below.
const QUIET = new Set(["end", "arc_clone", "arc_drop", "weak_clone", "weak_drop"]);

function element(tag, properties, ...children) {
  const it = Object.assign(document.createElement(tag), properties);
  it.append(...children);
  return it;
}
const counted = (number, unit) => `${number} ${unit}${number === 1 ? "" : "s"}`;
const shown = (thread) => threads[thread].name ?? threads[thread].path;
const color = (thread) => `var(--t${thread % 8})`;
// The last part of a path is enough where it says which file it is.
const tail = (file, parts) => file.split("/").slice(-parts).join("/");
const files = new Set([...events, ...outcome.waiting].filter((it) => !it.place.instead).map((it) => it.place.file));
const parts = new Set([...files].map((file) => tail(file, 1))).size === files.size ? 1 : 2;
const short = (place) => place.instead ?? `${tail(place.file, parts)}:${place.line}`;
const full = (place) => place.instead ?? `${place.file}:${place.line}:${place.column}`;

// The rows: the events, and what belongs to the failure and is no event.

const rows = [];
{
  const extra = new Map();
  const add = (after, row) => extra.set(after, [...(extra.get(after) ?? []), row]);
  for (const line of data.log) {
    const place = line.place ?? { file: line.target, line: 0, column: 0, text: null };
    add(line.after, { said: line, thread: line.thread, words: `“${line.text}”`, place });
  }
  for (const fence of data.fences) {
    add(fence.after, { fence, thread: fence.thread, words: "fence", place: fence.place });
  }
  for (const it of data.unnumbered) {
    const place = it.place ?? { file: "", line: 0, column: 0, text: null, instead: it.at };
    const failed = it.role === "locals" || it.role === "access" ? undefined : it.role;
    add(it.after, { failed, thread: it.thread, words: it.words, place, switch: it.switch });
  }
  for (const it of outcome.earlier_panics) {
    const place = it.place ?? events[it.after - 1]?.place;
    if (place) add(it.after, { failed: "panic", thread: it.thread, words: `panics: ${it.message}`, place, earlier: it });
  }
  for (const it of outcome.waiting) {
    add(events.length, { failed: "waits", thread: it.thread, words: it.doing, place: it.place, waiting: it });
  }
  if (outcome.kind === "panic" && outcome.thread !== null) {
    const last = events.findLast((event) => event.thread === outcome.thread);
    const place = outcome.place ?? last?.place;
    if (place) add(events.length, { failed: "panic", thread: outcome.thread, words: `panics: ${outcome.message ?? ""}`, place });
  }
  rows.push(...(extra.get(0) ?? []));
  for (const event of events) {
    rows.push({ event, thread: event.thread, words: event.words, place: event.place, switch: event.switch });
    rows.push(...(extra.get(event.number) ?? []));
  }
}
{
  let number = 0;
  rows.forEach((row, index) => {
    number = row.event ? row.event.number : number;
    Object.assign(row, { index, until: number, gap: null });
  });
}
// What is not drawn until it is asked for: rounds of a loop that only repeat others, and rows of
// which there are too many.
{
  const leaveOut = (rows, words) => {
    const gap = { rows, words };
    for (const row of rows) row.gap = gap;
  };
  let at = 0;
  for (const { first, last, words } of data.folds) {
    while (at < rows.length && rows[at].until < first) at++;
    const repeated = [];
    for (; at < rows.length && rows[at].until <= last; at++) {
      if (rows[at].event || rows[at].said) repeated.push(rows[at]);
    }
    if (repeated.length > 0) leaveOut(repeated, words);
  }
  const drawn = rows.filter((row) => !row.gap);
  const many = drawn.length - ROWS_MAX;
  if (many > 0) {
    // Of a loop that has no end the beginning says how it got there.
    const from = ["livelock", "limit"].includes(outcome.kind) ? ROWS_MAX / 2 : 0;
    const decides = (row) => row.failed || row.event && [data.pair?.first, data.pair?.second].includes(row.event.number);
    let run = [];
    const end = () => {
      if (run.length > 0) leaveOut(run, counted(run.length, "row"));
      run = [];
    };
    drawn.slice(from, from + many).forEach((row) => (decides(row) ? end() : run.push(row)));
    end();
  }
}
{
  const widest = Math.max(5, ...rows.map((row) => short(row.place).length));
  document.documentElement.style.setProperty("--where", `${Math.min(widest, 30) * 7 + 14}px`);
}
const rowOf = new Map(rows.filter((row) => row.event).map((row) => [row.event.number, row]));

// What is shown.

let step = 0;
const hidden = new Set();
let only = null;
let pointed = null;
const wanted = (row) => !hidden.has(row.thread) && (only === null || !row.event || row.event.object === only);
const visible = (row) => !row.gap && wanted(row);
const seen = () => rows.filter((row) => row.event && visible(row)).map((row) => row.event.number);

// The chart.

const chart = $("rows");
function layout() {
  const lanes = threads.map((_, thread) => thread).filter((thread) => !hidden.has(thread));
  $("chart").style.setProperty("--lanes", lanes.length);
  $("lanes").replaceChildren(
    element("span", { className: "no", textContent: "#" }),
    ...lanes.map((thread) => {
      const lane = element("span", { className: "lane", textContent: shown(thread), title: threads[thread].path });
      lane.style.setProperty("--thread", color(thread));
      return lane;
    }),
    element("span", { className: "at", textContent: "where" }),
  );
  chart.querySelectorAll(".row").forEach((row) => row.remove());
  let line = 0;
  let before = null;
  let gap = null;
  for (const row of rows) {
    row.line = null;
    if (row.gap && row.gap !== gap && row.gap.rows.some(wanted)) {
      chart.append(note(row.gap));
      line++;
    }
    gap = row.gap ?? (visible(row) ? null : gap);
    if (!visible(row)) continue;
    row.line = line++;
    const at = short(row.place);
    const quiet = row.event && QUIET.has(row.event.operation) ? " quiet" : "";
    const button = element("button", {
      className: `event${quiet}${row.failed ? " failed" : ""}${row.said ? " said" : ""}`,
      textContent: row.words,
      title: `${row.switch ? `(${row.switch})\n` : ""}${row.words}\n${at}${row.place.text ? `\n${row.place.text}` : ""}`,
      tabIndex: -1,
    });
    // Nothing else is on its line, so a long label may cover the lanes to its right.
    button.style.gridColumn = `${lanes.indexOf(row.thread) + 2} / ${lanes.length + 2}`;
    button.setAttribute("aria-label", `${row.event ? `event ${row.event.number}, ` : ""}${shown(row.thread)}: ${row.words}`);
    const where = element("span", { className: "at", title: full(row.place) });
    // Isolated from the right-to-left order that shortens a path at its beginning.
    where.append(element("bdi", { textContent: at, dir: "ltr" }));
    where.style.gridColumn = lanes.length + 2;
    row.element = element("div", { className: "row" },
      element("span", { className: "no", textContent: row.event ? row.event.number : "" }), button, where);
    row.element.classList.toggle("switch", before !== null && before !== row.thread);
    before = row.thread;
    row.button = button;
    row.element.addEventListener("click", () => { go(row.until); show(row); });
    row.element.addEventListener("mouseenter", () => { pointed = row; show(row); draw(); });
    row.element.addEventListener("mouseleave", () => { pointed = null; show(current()); draw(); });
    button.addEventListener("focus", () => { if (row.event && step !== row.until) go(row.until); });
    chart.append(row.element);
  }
  mark();
}

/// What stands for rows that are not drawn. A click draws them, of very many the first ones.
function note(gap) {
  const button = element("button", { className: "event gap", textContent: `(${gap.words})`, title: `${counted(gap.rows.length, "row")} not drawn: click to see more`, tabIndex: -1 });
  const lanes = threads.map((_, thread) => thread).filter((thread) => !hidden.has(thread));
  const one = gap.rows.every((row) => row.thread === gap.rows[0].thread) ? lanes.indexOf(gap.rows[0].thread) : 0;
  button.style.gridColumn = `${one + 2} / ${lanes.length + 2}`;
  gap.element = element("div", { className: "row" }, element("span", { className: "no", textContent: "…" }), button);
  gap.element.addEventListener("click", () => {
    const drawn = gap.rows.splice(0, MORE);
    for (const row of drawn) row.gap = null;
    gap.words = `${counted(gap.rows.length, "row")} more`;
    layout();
    go(drawn[0].until);
  });
  return gap.element;
}

/// The row of the event with which the holder of a lock that somebody waits for has taken it.
function takenBy({ held_by, object }) {
  const mine = (row) => row.event && row.thread === held_by && row.event.object === object && row.event.succeeded;
  return held_by === null ? null : rows.findLast(mine);
}

/// The lanes and the arrows. The innerHTML has numbers and fixed words only.
function draw() {
  const height = $("lanes").offsetHeight;
  const cells = [...$("lanes").querySelectorAll(".lane")];
  const lanes = threads.map((_, thread) => thread).filter((thread) => !hidden.has(thread));
  const x = new Map(lanes.map((thread, at) => [thread, cells[at].offsetLeft - $("lanes").offsetLeft + 10]));
  const y = (row) => row.line * height0 + height0 / 2;
  const out = [];
  const at = (row) => row && row.line !== null && x.has(row.thread) ? [x.get(row.thread), y(row)] : null;
  for (const thread of lanes) {
    const mine = rows.filter((row) => row.thread === thread && row.line !== null);
    if (mine.length > 1) {
      out.push(`<path class="lane" style="stroke:${color(thread)}" d="M${x.get(thread)} ${y(mine[0])}V${y(mine[mine.length - 1])}"/>`);
    }
  }
  const focus = pointed ?? current();
  const arrow = (kind, from, to) => {
    const [a, b] = [at(rowOf.get(from)), at(rowOf.get(to))];
    if (!a || !b) return;
    const strong = focus?.event && (focus.event.number === from || focus.event.number === to);
    const [x1, y1, x2, y2] = [...a, ...b];
    if (x1 === x2 && !strong) return;
    const bow = x1 === x2 ? -9 : 0;
    const mid = Math.min(y2 - y1, 44) / 2;
    // Down first only as far as is needed, then along the row above the reader: text in between stays readable.
    const path = bow
      ? `M${x1} ${y1}C${x1 + bow} ${y1 + mid} ${x2 + bow} ${y2 - mid} ${x2} ${y2 - 5}`
      : `M${x1} ${y1}C${x1} ${y1 + mid} ${x2} ${y2 - mid * 1.6 - 6} ${x2} ${y2 - 6}`;
    if (weak.some((pair) => pair.first === from && pair.second === to)) kind += " weak";
    const far = y2 - y1 > 14 * height0 ? " far" : "";
    out.push(`<path class="arrow ${kind}${strong ? " strong" : far}" marker-end="url(#${kind.endsWith("weak") ? "fails" : kind})" d="${path}"/>`);
  };
  const drawn = new Set();
  for (const { event } of rows) {
    if (!event) continue;
    // An old event comes, in the order of its atomic, before the store that it does not see.
    if (event.unseen !== null) {
      drawn.add(`${event.unseen} ${event.number}`);
      const [older, newer] = [at(rowOf.get(event.number)), at(rowOf.get(event.unseen))];
      if (older && newer) {
        const mid = (older[1] + newer[1]) / 2;
        out.push(`<path class="race unseen" marker-end="url(#fails)" d="M${older[0]} ${older[1]}C${older[0]} ${mid} ${newer[0]} ${mid} ${newer[0]} ${newer[1] + 6}"/>`);
        out.push(`<text class="tag" x="${(older[0] + newer[0]) / 2}" y="${mid - 6}" text-anchor="middle">${event.operation === "store" ? "goes before" : "does not see"}</text>`);
      }
    }
    const links = [["reads", event.reads_from], ["wakes", event.enabled_by]];
    for (const [kind, from] of links) {
      if (from === null || !$(`show-${kind}`).checked || drawn.has(`${from} ${event.number}`)) continue;
      drawn.add(`${from} ${event.number}`);
      arrow(kind, from, event.number);
    }
    if ($("show-order").checked) {
      // The lane itself says what its own thread did before.
      const others = event.after.filter((from) => events[from - 1].thread !== event.thread);
      for (const from of others) if (!drawn.has(`${from} ${event.number}`)) arrow("order", from, event.number);
    }
  }
  for (const row of rows) {
    if (row.line === null || row.said) continue;
    const [cx, cy] = at(row);
    const fill = row.failed ? "var(--fail)" : color(row.thread);
    const later = row.until > step ? ' opacity=".4"' : "";
    const size = row.failed ? 6 : row.event && QUIET.has(row.event.operation) ? 3 : 4.5;
    out.push(`<circle class="dot" cx="${cx}" cy="${cy}" r="${size}" style="fill:${fill}"${later}/>`);
  }
  const touched = (end) => rowOf.get(outcome.data_race?.[end]?.event) ?? rows.find((row) => row.failed === end);
  for (const ends of [["first", "second"], ["gone", "use"]]) {
    const [first, second] = ends.map((end) => at(touched(end)));
    if (!first || !second) continue;
    const [mx, my] = [0.7 * first[0] + 0.3 * second[0], 0.7 * first[1] + 0.3 * second[1]];
    out.push(`<path class="race" d="M${first[0]} ${first[1]}L${second[0]} ${second[1]}"/>`);
    out.push(`<text class="tag" x="${mx}" y="${my - 6}" text-anchor="middle">${outcome.kind.replaceAll("_", " ")}</text>`);
  }
  const { pair } = data;
  // Where another red line says it already, one is enough.
  const stuck = pair && rows.find((row) => row.waiting && row.thread === pair.thread);
  const same = pair && (pair.old || weak.some((it) => it.first === pair.first && it.second === pair.second) ||
    pair.second === null && stuck && takenBy(stuck.waiting)?.event.number === pair.first);
  const ends = pair && !same && [rowOf.get(pair.first), rowOf.get(pair.second) ?? stuck];
  const [before, after] = ends ? ends.map(at) : [];
  if (before && after) {
    const mid = (before[1] + after[1]) / 2;
    out.push(`<path class="race pair" marker-end="url(#fails)" d="M${before[0]} ${before[1]}C${before[0]} ${mid} ${after[0]} ${mid} ${after[0]} ${after[1] - 6}"/>`);
    out.push(`<text class="tag" x="${(before[0] + after[0]) / 2}" y="${mid - 6}" text-anchor="middle">fails in this order</text>`);
  }
  for (const row of rows) {
    const taken = row.waiting && takenBy(row.waiting);
    const [from, to] = [at(row), taken ? at(taken) : null];
    if (from && to) {
      const bend = from[0] === to[0] ? -14 : 0;
      const mid = (from[1] + to[1]) / 2;
      out.push(`<path class="race held" marker-end="url(#fails)" d="M${from[0]} ${from[1]}C${from[0] + bend} ${mid} ${to[0] + bend} ${mid} ${to[0]} ${to[1] + 6}"/>`);
    }
  }
  const head = (id, fill) =>
    `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="${fill}"/></marker>`;
  $("lines").innerHTML = `<defs>${head("reads", "var(--reads)")}${head("wakes", "var(--wakes)")}${head("order", "var(--order)")}${head("fails", "var(--fail)")}</defs>${out.join("")}`;
}
const height0 = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));

// One step.

/// The row of the step: after the last event the failure itself, if there is one.
function current() {
  return rowOf.get(step) ?? null;
}

function go(to, focus) {
  step = Math.max(0, Math.min(events.length, to));
  $("slider").value = step;
  $("position").textContent = step === 0 ? "before the first" : `event ${step} of ${events.length}`;
  if (location.hash !== `#step=${step}`) history.replaceState(null, "", `#step=${step}`);
  mark();
  const row = current();
  if (row?.gap) row.gap.element?.scrollIntoView({ block: "nearest" });
  if (row?.line != null) {
    // What failed stands behind the last event.
    const end = step === events.length ? rows.findLast((other) => other.line != null) : row;
    end.element.scrollIntoView({ block: "nearest" });
    if (focus) row.button.focus({ preventScroll: true });
  }
  show(row);
}

/// The next event that is shown, `by` events on.
function move(by, focus) {
  const numbers = seen();
  if (numbers.length === 0) return;
  let at = numbers.findIndex((n) => n > step);
  at = at === -1 ? numbers.length : at; // How many are not later.
  const here = numbers[at - 1] === step;
  const to = by > 0 ? at - 1 + by : here ? at - 1 + by : at + by;
  go(to < 0 ? 0 : numbers[Math.min(to, numbers.length - 1)], focus);
}

function mark() {
  for (const gap of new Set(rows.map((row) => row.gap))) {
    gap?.element?.classList.toggle("now", current()?.gap === gap);
  }
  for (const row of rows) {
    if (row.line === null) continue;
    const now = row.event !== undefined && row.event.number === step;
    row.element.classList.toggle("now", now);
    row.element.classList.toggle("later", row.until > step);
    row.button.tabIndex = now ? 0 : -1;
    if (now) row.button.setAttribute("aria-current", "step");
    else row.button.removeAttribute("aria-current");
  }
  // Tab has to come into the chart in any case.
  if (current()?.line == null) {
    const first = rows.find((row) => row.line !== null);
    if (first) first.button.tabIndex = 0;
  }
  draw();
}

// The panel.

function link(to, text = `${to}  ${shown(events[to - 1].thread)}: ${events[to - 1].words}`) {
  const a = element("a", { href: `#step=${to}`, textContent: text });
  a.addEventListener("click", (e) => { e.preventDefault(); pointed = null; go(to, true); });
  return a;
}

function show(row) {
  const panel = $("event");
  const facts = element("dl", {});
  const fact = (name, ...value) => facts.append(element("dt", { textContent: name }), element("dd", {}, ...value));
  if (!row) {
    panel.replaceChildren(
      element("h2", { textContent: "before the first event" }),
      element("p", { textContent: `${counted(events.length, "event")} of ${counted(threads.length, "thread")}. Step through them with the slider or the arrow keys.` }));
    values(step);
    return;
  }
  const { event } = row;
  if (row.said) fact("said at", `${row.said.level} ${row.said.target}`);
  const title = row.said ? `${shown(row.thread)} · said after event ${row.said.after}` : row.fence ? `${shown(row.thread)} · ${row.fence.ordering} fence after event ${row.fence.after}` : event ? `event ${event.number} · ${shown(row.thread)} · its ${nth(event.nth)}` : row.until < events.length ? `${shown(row.thread)} · after event ${row.until}` : `${shown(row.thread)} · at the end`;
  panel.replaceChildren(
    element("h2", { textContent: title }),
    element("p", { className: "words", textContent: row.words }),
    element("div", { className: "place", textContent: full(row.place) }));
  const source = around(row.place);
  if (source) panel.append(source);
  if (row.switch) fact("before it", row.switch);
  if (event) {
    fact("operation", event.operation + (event.ordering ? ` (${event.ordering})` : "") + (event.succeeded ? "" : ", failed"));
    if (event.object !== null) fact("object", `${objects[event.object].name} (${objects[event.object].kind})`);
    if (event.reads_from !== null) {
      const note = weak.some((pair) => pair.second === event.number) ? element("div", { textContent: "too weak to order the race" }) : "";
      fact("reads from", link(event.reads_from), note);
    }
    else if (["load", "compare_exchange"].includes(event.operation)) fact("reads from", "the initial value");
    if (event.enabled_by !== null && event.enabled_by !== event.reads_from) fact("enabled by", link(event.enabled_by));
    if (event.stale) fact("old", event.why, event.unseen === null ? "" : element("div", {}, "newer: ", link(event.unseen)));
    if (data.pair?.old && data.pair.second === event.number) {
      fact("decides", "does not see ", link(data.pair.first), "; with the newest outcome it passes");
    } else if (data.pair?.old && data.pair.first === event.number) {
      fact("decides", "not seen by ", link(data.pair.second), "; with the newest outcome there it passes");
    } else if (data.pair?.first === event.number) {
      const { second, thread, words } = data.pair;
      fact("decides", "comes before ", second === null ? `${shown(thread)}: ${words}` : link(second), "; the other way round it passes");
    } else if (data.pair?.second === event.number) {
      fact("decides", "comes after ", link(data.pair.first), "; the other way round it passes");
    }
    if (event.alternatives > 1) fact("outcome", `${event.alternative + 1} of ${event.alternatives}`);
    const others = data.races.filter((race) => race.first === event.number || race.second === event.number);
    if (others.length > 0) {
      const links = others.slice(0, 6).map((race) => element("div", {}, link(race.first === event.number ? race.second : race.first)));
      fact("races with", ...links, others.length > 6 ? `and ${others.length - 6} more` : "");
    }
    fact("clock", element("code", { textContent: event.clock.map((n, thread) => `${shown(thread)} ${n}`).join(", ") }));
  } else if (row.waiting?.held_by != null) {
    const taken = takenBy(row.waiting);
    fact("held by", shown(row.waiting.held_by), taken ? element("div", {}, "since ", link(taken.event.number)) : "");
  }
  if (row.failed) memory(fact, row);
  panel.append(facts);
  values(row.until);
}

/// The source around a place; without its indentation.
function around({ file, line, text }) {
  const snippet = data.source.find((it) => it.file === file && it.first <= line && line < it.first + it.lines.length);
  if (!snippet) return text ? element("pre", {}, element("span", { className: "here", textContent: text })) : null;
  const first = Math.max(snippet.first, line - CONTEXT);
  const lines = snippet.lines.slice(first - snippet.first, line + CONTEXT + 1 - snippet.first);
  const indents = lines.filter((it) => it.trim()).map((it) => it.length - it.trimStart().length);
  const indent = Math.min(...indents);
  return element("pre", {}, ...lines.map((it, at) =>
    element("span", { className: first + at === line ? "here" : "near", textContent: `${it.slice(indent)}\n` })));
}

/// What is known of the block that the failure is about.
function memory(fact, row) {
  const { block, misuse } = outcome;
  const after = (event) => (event === null ? "" : element("div", {}, "after ", link(event)));
  if (block && row.failed !== "panic" && row.failed !== "waits") {
    const at = block.allocated ? ` at ${block.allocated}` : "";
    fact("the block", `${block.size} bytes, allocated by ${shown(block.thread)}${at}`, at ? "" : after(block.after));
  }
  if (misuse?.freed_by != null) {
    const at = block?.freed ? ` at ${block.freed}` : "";
    fact("freed by", `${shown(misuse.freed_by)}${at}`, at ? "" : after(misuse.freed_after));
  }
  if (misuse?.stack_of != null) fact("on the stack of", `${shown(misuse.stack_of)}, which has ended`);
}

const nth = (n) => `${n}${n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th"}`;

/// What each object holds after so many events.
function values(until) {
  const holds = objects.map((object) => object.initial);
  for (const event of events.slice(0, until)) if (event.object !== null) holds[event.object] = event.holds;
  const changed = events[until - 1]?.object;
  const table = (wanted) => {
    const body = element("tbody", {});
    objects.forEach((object, index) => {
      if (!wanted(object)) return;
      const name = element("td", { textContent: object.name, title: `${object.kind}, first used at ${short(object.place)}` });
      body.append(element("tr", { className: index === changed ? "changed" : "" }, name, element("td", { textContent: holds[index] })));
    });
    return body.children.length > 0 ? element("table", {}, body) : null;
  };
  const minor = (object) => ["Arc", "thread"].includes(object.kind);
  const main = table((object) => !minor(object));
  const rest = table(minor);
  const open = $("values").querySelector("details")?.open ?? false;
  $("values").replaceChildren(element("h2", { textContent: until === 0 ? "values at the beginning" : `values after event ${until}` }));
  if (main) $("values").append(main);
  if (rest) $("values").append(element("details", { open }, element("summary", { textContent: "counts of references, ends of threads" }), rest));
}

// The page around it.

document.title = `${outcome.kind}${data.test ? ` · ${data.test}` : ""}`;
$("kind").textContent = outcome.kind.replaceAll("_", " ");
$("kind").classList.toggle("fine", ["complete", "assumed", "rounds", "asleep"].includes(outcome.kind));
$("test").textContent = data.test ?? "";
const kind = `${$("kind").textContent}: `;
// The story says the same at length, but not the text of the user's panic.
$("sentence").hidden = data.story.length > 0 && outcome.message === null;
$("sentence").textContent = outcome.sentence.startsWith(kind) ? outcome.sentence.slice(kind.length) : outcome.sentence;
for (const line of data.story) {
  const told = element("div", {});
  for (const part of line.split(/(event \d+)/)) {
    const number = /^event (\d+)$/.exec(part)?.[1];
    told.append(number && number > 0 && number <= events.length ? link(Number(number), part) : part);
  }
  $("story").append(told);
}
{
  const copy = element("button", { textContent: "copy" });
  const replay = data.command ?? data.schedule;
  const text = element("code", { textContent: replay, title: replay });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(replay);
      copy.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(text);
    }
  });
  $("about").append(
    element("span", { textContent: `execution ${data.execution}` }),
    element("span", { textContent: `${threads.length} threads, ${events.length} events` }),
    element("span", {}, text, " ", copy),
    element("span", { textContent: `dpor ${data.dpor}` }));
}
threads.forEach((_, thread) => {
  const chip = element("button", { className: "chip", textContent: shown(thread), title: `show or hide ${shown(thread)}` });
  chip.style.setProperty("--thread", color(thread));
  chip.setAttribute("aria-pressed", "true");
  chip.addEventListener("click", () => {
    if (hidden.has(thread)) hidden.delete(thread);
    else hidden.add(thread);
    chip.setAttribute("aria-pressed", String(!hidden.has(thread)));
    layout();
  });
  $("threads").append(chip);
});
objects.forEach((object, index) => $("object").append(element("option", { value: index, textContent: `${object.name} (${object.kind})` })));
$("object").addEventListener("change", () => {
  only = $("object").value === "" ? null : Number($("object").value);
  layout();
});
for (const kind of ["reads", "wakes", "order"]) $(`show-${kind}`).addEventListener("change", draw);
$("slider").max = events.length;
$("slider").addEventListener("input", () => go(Number($("slider").value)));
$("first").addEventListener("click", () => go(0));
$("last").addEventListener("click", () => go(events.length));
$("back").addEventListener("click", () => move(-1));
$("forth").addEventListener("click", () => move(1));
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || e.target.tagName === "SELECT") return;
  const inChart = chart.contains(document.activeElement);
  const keys = {
    ArrowDown: () => move(1, inChart), ArrowRight: () => move(1, inChart),
    ArrowUp: () => move(-1, inChart), ArrowLeft: () => move(-1, inChart),
    PageDown: () => move(10, inChart), PageUp: () => move(-10, inChart),
    Home: () => go(0), End: () => go(events.length, inChart),
  };
  if (keys[e.key]) {
    e.preventDefault();
    pointed = null;
    keys[e.key]();
  }
});
function follow() {
  const asked = /^#step=(\d+)$/.exec(location.hash);
  go(asked ? Number(asked[1]) : events.length);
}
addEventListener("hashchange", follow);
new ResizeObserver(draw).observe($("rows"));
layout();
follow();
