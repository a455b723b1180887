// Recompiles: per function, cache entries by the guards that failed; equal ones are one row, and guards of one row each share
// a column. Details are made when asked for.

VIEWS.push({ id: "recompiles", title: "Recompiles", show: showRecompiles });

const MOST_COLUMNS = 6;
const MOST_CHANGES = 4;
const MOST_SETS = 12;
const MOST_NAMED = 4;
const MOST_CAUSES = 6;
const FEW_CARDS = 4; // that stand open

function showRecompiles({ run, parts }, node) {
  node.classList.add("page", "wide");
  const library = (index) => Boolean(run.sources[run.functions[index]?.source]?.library);
  const groups = [...grouped(run.recompiles, (each) => run.root(each.function))]
    .map(([index, list]) => ({ index, list, spent: spentOn(run, list) }))
    .sort((one, other) => library(one.index) - library(other.index) || other.spent - one.spent);
  const chosen = run.recompiles.find((each) => each.compile_id === parts[0]);
  fill(
    node,
    el("h1", {}, "Recompiles"),
    run.recompiles.length
      ? groups.map((group) => recompileGroup(run, group, chosen))
      : el("p", { class: "quiet" }, run.traced ? "Nothing was compiled twice." : NOT_TRACED),
    limitTable(run)
  );
  if (run.lost.length) {
    add(node, [el("h2", { id: "left-to-python" }, [...new Set(run.lost.map(cameTo))].join(", ")), run.lost.map((each) => fallbackCard(run, each, [shortened(run.nameOf(each.function), 80), " ", each.place ? place(run, each.place) : null, " "]))]);
  }
  if (chosen) {
    const card = document.getElementById(`recompile-${chosen.compile_id}`);
    card.scrollIntoView({ block: "center" });
    card.classList.add("chosen");
  } else if (parts[0] === "left" && run.lost.length) {
    document.getElementById("left-to-python").scrollIntoView({ block: "start" });
  } else if (/^f\d+$/.test(parts[0] || "")) {
    const section = document.getElementById(`recompiles-${parts[0]}`);
    if (section) section.scrollIntoView({ block: "start" });
  }
}

// Where each function stands with Dynamo's limits, those that are close first.
function limitTable(run) {
  const known = Object.entries(run.limits).sort(([, one], [, other]) => other[1] - one[1]);
  if (!known.length) return null;
  const rows = known.map(([index, limit]) => [shortened(run.nameOf(Number(index)), 80), limitText(limit)]);
  return [
    el("h2", { id: "limits" }, "Cache entries and Dynamo's limits"),
    el("p", { class: "quiet" }, "When this was written. After a limit, calls that fit no entry run as plain Python, or raise an error with fullgraph=True."),
    tableOf("Cache entries and Dynamo's limits", ["Function", "Entries"], rows, { narrow: true }),
  ];
}

const limitText = ([words, close]) => (close ? el("b", {}, words) : words);

// What a guard compares, without the values: the same check of different entries has one column.
const checkOf = (failed) => failed.checked || failed.text;

// Recompiles of which the same checks failed, with the same one first; where those are many rows, all that failed first at the
// same check. ``changes`` has texts for each check.
function rowsOf(list) {
  const rows = folded(rowsBy(list, (each) => JSON.stringify([...new Set(each.failed.map(checkOf))])));
  return rows.length > MOST_SETS ? folded(rowsBy(list, (each) => each.failed.slice(0, 1).map(checkOf).join())) : rows;
}

function rowsBy(list, key) {
  return [...grouped(list, key).values()].map((alike) => {
    const checks = [...new Set(alike.flatMap((each) => each.failed.map(checkOf)))];
    return { checks, alike, changes: new Map(checks.map((check) => [check, changesOf(alike, check)])) };
  });
}

// Of rows with one check each, which no other row has, those with the same changes are one: the sizes of the variables that
// resume functions begin with, say. Its checks are alternatives.
function folded(rows) {
  const often = timesOf(rows);
  const alone = (row) => row.checks.length === 1 && often.get(row.checks[0]) === 1;
  return [...grouped(rows, (row) => (alone(row) ? row.changes.get(row.checks[0]).join() : row)).values()].map((same) =>
    same.length === 1 ? same[0] : {
      checks: same.flatMap((row) => row.checks), alike: same.flatMap((row) => row.alike),
      changes: new Map(same.flatMap((row) => [...row.changes])), alternatives: true,
    }
  );
}

function timesOf(rows) {
  const often = new Map();
  for (const row of rows) for (const check of row.checks) often.set(check, (often.get(check) || 0) + 1);
  return often;
}

// How the value changed in each recompile. Of many, the first and the last, and how many there are.
function changesOf(alike, check) {
  const changes = [...new Set(alike.flatMap((each) => each.failed.filter((failed) => checkOf(failed) === check).slice(0, 1).map(changeOf)))].filter(Boolean);
  if (changes.length <= MOST_CHANGES) return changes.length ? changes : ["failed"];
  return [...changes.slice(0, MOST_CHANGES - 1), `… ${changes[changes.length - 1]}`, `${digits(changes.length)} different ones`];
}

// Why recompilations took place at which the same check failed first: in words, or of several how the value changed.
function recompiledFor(list) {
  const first = list[0].failed[0];
  if (!first) return "";
  const words = [...new Set(list.map((each) => each.failed[0].words || each.failed[0].text))];
  const changes = changesOf(list, checkOf(first));
  return words.length === 1 || changes[0] === "failed" ? words[0] : `${checkOf(first)}: ${changes.join(", ")}`;
}

// The compile time of recompilations.
function spentOn(run, list) {
  const took = (id) => { const one = run.compilation.get(id); return one ? (one.seconds || 0) + (one.backward_seconds || 0) : 0; };
  return list.reduce((sum, each) => sum + took(each.compile_id), 0);
}

function recompileGroup(run, { index, list, spent }, chosen) {
  const where = run.startOf(index);
  const causes = causesOf(list);
  const rows = rowsOf(list);
  return el(
    "section",
    { id: `recompiles-f${index}`, "aria-label": `Recompiles of ${shortened(run.nameOf(index), 60)}` },
    el("h2", {}, shortened(run.nameOf(index), 80), " ", where ? place(run, where) : null),
    el("p", { class: "quiet" }, `recompiled ${list.length === 1 ? "once" : `${digits(list.length)} times`}${spent ? `, ${seconds(spent)} of compile time` : ""}`),
    matrix(run, rows),
    list.length > 1 ? advices(causes) : null,
    cardsOf(run, list, new Set(list.length > 1 ? causes.slice(0, MOST_CAUSES).map(adviceOf) : []), chosen)
  );
}

const remedyOf = (each) => each.advice.split(RUNS[0].moreChanged)[0].replace(/\.$/, "");

// The advice of one cause: what else had changed stands with each recompilation where it differs.
function adviceOf(met) {
  if (met.every((each) => each.advice === met[0].advice)) return met[0].advice;
  return `${remedyOf(met[0])}. In ${digits(met.filter((each) => each.advice.includes(RUNS[0].moreChanged)).length)} of the ${digits(met.length)}, more had changed: see each of them below.`;
}

// Recompilations by their cause, most first: one cause has one advice.
function causesOf(list) {
  return [...grouped(list.filter((each) => each.advice), (each) => JSON.stringify([each.cause, remedyOf(each)])).values()].sort((one, other) => other.length - one.length);
}

// What would avoid the recompilations of each cause.
function advices(causes) {
  if (!causes.length) return null;
  if (causes.length === 1) return el("p", { class: "advice" }, el("b", {}, "What would avoid them: "), prose(adviceOf(causes[0])));
  const row = (met) => {
    const [first, ...others] = new Set(met.flatMap((each) => each.failed.slice(0, 1)).map(checkOf));
    return el("li", {}, first ? el("code", {}, shortened(first, 60)) : null, others.length ? ` and ${digits(others.length)} more` : "", ` (${digits(met.length)} of them): `, prose(adviceOf(met)));
  };
  const left = causes.length - MOST_CAUSES;
  return [
    el("p", { class: "advice" }, el("b", {}, "What would avoid them:")),
    el("ul", {}, causes.slice(0, MOST_CAUSES).map(row), left > 0 ? el("li", { class: "quiet" }, `and ${count(left, "more cause")}, each with its recompilations below`) : null),
  ];
}

// A row for each set of checks that failed together. Few checks have a column each; of more, those that several rows have, and
// one column has the others by name. The one that failed first is bold.
function matrix(run, rows) {
  const often = timesOf(rows);
  const named = [...often.keys()].filter((check) => !rows.some((row) => row.alternatives && row.checks.includes(check)));
  const few = named.length <= MOST_COLUMNS;
  const own = few ? named : named.filter((check) => often.get(check) > 1).sort((one, other) => often.get(other) - often.get(one)).slice(0, MOST_COLUMNS);
  const others = few && named.length === often.size ? [] : [own.length ? "Other guards" : "Guards"];
  const changed = (row, check) => {
    const first = check === row.checks[0] || row.alternatives;
    const text = row.changes.get(check).map((change, at) => [at ? ", " : "", el("span", { class: "change" }, change)]);
    return el("code", { title: first ? "failed first" : null }, first ? el("b", {}, text) : text);
  };
  const cell = (row, check) => (row.checks.includes(check) ? changed(row, check) : "");
  const rest = (row) => {
    const left = row.checks.filter((check) => !own.includes(check));
    const shown = left.slice(0, MOST_NAMED);
    const more = left.length - shown.length;
    if (row.alternatives) {
      const names = [...shown.map((check) => shortened(check, 60)), ...(more ? [`and ${digits(more)} more`] : [])];
      return [changed(row, left[0]), el("div", { class: "quiet" }, `one of: ${names.join(", ")}`)];
    }
    return [shown.map((check) => el("div", {}, el("span", { class: "quiet", title: check }, shortened(check, 60)), " ", changed(row, check))), more ? el("div", { class: "quiet" }, `and ${digits(more)} more`) : null];
  };
  const heads = ["Entries", numeric("Times"), ...own.map((check) => el("span", { title: check }, shortened(check, 60))), ...others];
  const body = rows.slice(0, MOST_SHOWN).map((row) => [
    el("span", { class: "fromto" }, chip(run, row.alike[0].compile_id), row.alike.length > 1 ? [row.alike.length > 2 ? " … " : " ", chip(run, row.alike[row.alike.length - 1].compile_id)] : null),
    digits(row.alike.length),
    ...own.map((check) => cell(row, check)),
    ...others.map(() => rest(row)),
  ]);
  const table = tableOf("Cache entries by the guards that failed", heads, body);
  return [
    table,
    rows.length > body.length ? el("p", { class: "quiet" }, `and ${count(rows.length - body.length, "row")} more`) : null,
    [...often.keys()].some((check) => check.includes("stack value ")) ? el("p", { class: "quiet" }, "Stack values have no name in your code: the line of the graph break had computed them, as what a call returned; PyTorch calls them ", el("code", {}, "___stack0"), " and so on.") : null,
  ];
}

// Long numbers in short; the words of each recompilation have them whole.
const rounded = (value) => (/^-?\d+\.\d{5,}$/.test(value) ? String(Number(Number(value).toPrecision(6))) : value);

function changeOf(failed) {
  const now = failed.now ?? (failed.before === "empty" ? "not empty" : "?"); // its length is not known then
  return failed.before === null && failed.now === null ? "" : `${shortened(rounded(failed.before ?? "?"), 24)} → ${shortened(rounded(now), 24)}`;
}

// Each recompilation in words. A few stand there at once; of many, those that are asked for are made.
function cardsOf(run, list, advised, chosen) {
  const items = el("ol", { class: "recompiles" });
  const item = (each) => el("li", { id: `recompile-${each.compile_id}`, value: list.indexOf(each) + 1 }, recompileCard(run, each, advised));
  let made = 0;
  const more = el("button", { type: "button", hidden: true, onclick: () => grow() }, "Show more");
  const grow = () => {
    add(items, list.slice(made, made + MOST_SHOWN).map(item));
    made = Math.min(made + MOST_SHOWN, list.length);
    fill(more, `Show ${Math.min(MOST_SHOWN, list.length - made)} more of ${digits(list.length - made)}`);
    more.hidden = made === list.length;
  };
  const few = list.length <= FEW_CARDS;
  const box = el("details", { class: "guards", ontoggle: () => box.open && !made && grow() }, el("summary", {}, list.length === 1 ? "In words" : `Each of the ${digits(list.length)} in words`), items, more);
  if (few || list.includes(chosen)) {
    box.open = true;
    grow();
    if (list.includes(chosen) && list.indexOf(chosen) >= made) add(items, [item(chosen)]);
  }
  return box;
}
