"use strict";
// Looks whether the page of a failure shows what its data says, and tells the page around it.
const told = [];
try {
  const check = (what, ok) => ok || told.push(`NO: ${what}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const lines = all("#story div").map((it) => it.textContent);
  check("the story", lines.length > 0 && lines.join("\n") === data.story.join("\n"));
  check("where an event is told, it can be gone to", data.story.every((line, at) =>
    (line.match(/event \d+/g) ?? []).every((it) => Number(it.slice(6)) > events.length || all("#story div")[at].querySelector(`a[href="#step=${it.slice(6)}"]`))));
  const beside = (it) => it.role === "locals" || it.role === "access";
  const failed = all("#rows .event.failed").map((it) => it.textContent);
  check("what is no event has a row", data.unnumbered.every((it) => beside(it) || failed.includes(it.words)));
  const shown = all("#rows .event").map((it) => it.textContent);
  check("what did not fail has a row", data.unnumbered.every((it) => !beside(it) || shown.includes(it.words)));
  check("what failed is in its place", rows.every((row, at) => !row.failed || row.waiting || row.failed === "panic" || row.until === rows.slice(0, at).filter((it) => it.event).length));
  const gaps = all("#rows .event.gap").map((it) => it.textContent);
  check("loops are folded", gaps.length <= data.folds.length && data.folds.every((it) => gaps.includes(`(${it.words})`)));
  check("so the rows are few", all("#rows .row").length < 200);
  check("nothing is left out but what repeats", events.every((it) => rowOf.get(it.number).line !== null || data.folds.some(({ first, last }) => first <= it.number && it.number <= last)));
  if (gaps.length > 0) {
    const before = all("#rows .row").length;
    all("#rows .event.gap")[0].click();
    check("they unfold", all("#rows .row").length >= before && (gaps.length > 1 || all("#rows .row").length > before || events.length < 4));
  }
  for (const row of rows) {
    if (!row.place.text) continue;
    show(row);
    const here = $("event").querySelector("pre .here");
    if (here?.textContent.trim() !== row.place.text) check(`the source of ${row.words}: ${here?.textContent}`, false);
    if (row.failed === "use" || row.failed === "gone") check("with lines around it", $("event").querySelectorAll("pre .near").length > 2);
    if (told.length > 5 || row.index > 300) break;
  }
} catch (error) {
  told.push(`NO: the checks end with ${error.stack}`);
}
parent.postMessage(`${document.title}\n${told.join("\n")}`, "*");
