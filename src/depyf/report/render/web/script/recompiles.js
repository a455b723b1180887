// Recompiles: per function, cache entries by the guards that failed; equal ones are one row. Details are made when asked for.

VIEWS.push({ id: "recompiles", title: "Recompiles", show: showRecompiles });

const MOST_COLUMNS = 12;
const MOST_CHANGES = 6;

function showRecompiles({ run, parts }, node) {
  node.classList.add("page", "wide");
  const groups = grouped(run.recompiles, (each) => run.root(each.function));
  const chosen = run.recompiles.find((each) => each.compile_id === parts[0]);
  fill(
    node,
    el("h1", {}, "Recompiles"),
    run.recompiles.length
      ? [...groups].map(([index, list]) => recompileGroup(run, index, list, chosen))
      : el("p", { class: "quiet" }, "Nothing was compiled twice.")
  );
  if (run.lost.length) {
    add(node, [el("h2", {}, "Left to Python"), run.lost.map((each) => el("div", {}, each.place ? place(run, each.place) : null, fallbackCard(run, each)))]);
  }
  if (chosen) {
    const card = document.getElementById(`recompile-${chosen.compile_id}`);
    card.scrollIntoView({ block: "center" });
    card.classList.add("chosen");
  } else if (/^f\d+$/.test(parts[0] || "")) {
    const section = document.getElementById(`recompiles-${parts[0]}`);
    if (section) section.scrollIntoView({ block: "start" });
  }
}

// What a guard compares, without the values: the same check of different entries has one column.
const checkOf = (failed) => failed.checked || failed.text;

// Recompiles of which the same checks failed, with the same one first.
function rowsOf(list) {
  return [...grouped(list, (each) => JSON.stringify([...new Set(each.failed.map(checkOf))]))].map(([key, alike]) => ({ checks: JSON.parse(key), alike }));
}

function recompileGroup(run, index, list, chosen) {
  const where = run.startOf(index);
  const advice = list.length > 1 && list.every((each) => each.advice === list[0].advice) ? list[0].advice : "";
  const rows = rowsOf(list);
  return el(
    "section",
    { id: `recompiles-f${index}`, "aria-label": `Recompiles of ${shortened(run.nameOf(index), 60)}` },
    el("h2", {}, shortened(run.nameOf(index), 80), " ", where ? place(run, where) : null),
    el("p", { class: "quiet" }, `recompiled ${list.length === 1 ? "once" : `${list.length.toLocaleString("en")} times`}`),
    advice ? el("p", { class: "advice" }, el("b", {}, "What would avoid them: "), advice) : null,
    matrix(run, rows),
    cardsOf(run, list, advice, chosen)
  );
}

// A row for each set of checks that failed together, a column for each check; the one that failed first is bold.
function matrix(run, rows) {
  const checks = [...new Set(rows.flatMap((row) => row.checks))];
  const shown = checks.slice(0, MOST_COLUMNS);
  const cell = (row, check) => {
    if (!row.checks.includes(check)) return "";
    const changes = [...new Set(row.alike.map((each) => each.failed.find((failed) => checkOf(failed) === check)).map(changeOf))].filter(Boolean);
    const text = changes.slice(0, MOST_CHANGES).join(", ") + (changes.length > MOST_CHANGES ? `, and ${changes.length - MOST_CHANGES} more` : "") || "failed";
    return el("code", { class: check === row.checks[0] ? "first" : null, title: check === row.checks[0] ? "failed first" : null }, check === row.checks[0] ? el("b", {}, text) : text);
  };
  const heads = ["Entries", { text: "Times", number: true }, ...shown.map((check) => el("span", { title: check }, shortened(check, 60)))];
  if (checks.length > shown.length) heads.push(`and ${checks.length - shown.length} more guards`);
  const body = rows.slice(0, MOST_SHOWN).map((row) => [
    [chip(run, row.alike[0].compile_id), row.alike.length > 1 ? [" … ", chip(run, row.alike[row.alike.length - 1].compile_id)] : null],
    row.alike.length.toLocaleString("en"),
    ...shown.map((check) => cell(row, check)),
    ...(checks.length > shown.length ? [""] : []),
  ]);
  const table = tableOf("Cache entries by the guards that failed", heads, body);
  return rows.length > body.length ? [table, el("p", { class: "quiet" }, `and ${count(rows.length - body.length, "row")} more`)] : table;
}

function changeOf(failed) {
  return failed.before === null && failed.now === null ? "" : `${shortened(failed.before ?? "?", 40)} → ${shortened(failed.now ?? "?", 40)}`;
}

// Each recompilation in words. A few stand there at once; of many, those that are asked for are made.
function cardsOf(run, list, advice, chosen) {
  const items = el("ol", { class: "recompiles" });
  const item = (each) => el("li", { id: `recompile-${each.compile_id}`, value: list.indexOf(each) + 1 }, recompileCard(run, each, advice));
  let made = 0;
  const more = el("button", { type: "button", onclick: () => grow() });
  const grow = () => {
    add(items, list.slice(made, made + MOST_SHOWN).map(item));
    made = Math.min(made + MOST_SHOWN, list.length);
    fill(more, `Show ${Math.min(MOST_SHOWN, list.length - made)} more of ${(list.length - made).toLocaleString("en")}`);
    more.hidden = made === list.length;
  };
  const few = list.length <= 12;
  const box = el("details", { class: "guards", ontoggle: () => box.open && !made && grow() }, el("summary", {}, list.length === 1 ? "In words" : `Each of the ${list.length.toLocaleString("en")} in words`), items, more);
  if (few || list.includes(chosen)) {
    box.open = true;
    grow();
    if (list.includes(chosen) && list.indexOf(chosen) >= made) add(items, [item(chosen)]);
  }
  return box;
}
