// Ranks: where the runs of several processes differ. Only there when the page holds more than one.

if (RUNS.length > 1) VIEWS.push({ id: "ranks", title: DATA.comparison || "Ranks", show: showRanks });

function runName(run) {
  return DATA.names[run.index];
}

function showRanks({ parts }, node) {
  if (node.childNodes.length) return;
  node.classList.add("page", "wide");
  fill(
    node,
    el("h1", {}, DATA.comparison || "Where the ranks differ"),
    el("p", { class: "quiet" }, RUNS.map((run) => `${runName(run)}: ${count(run.compilations.length, "compilation")}`).join("  ·  ")),
    DATA.differences.length ? DATA.differences.map(difference) : el("p", {}, "They compiled the same, in the same order.")
  );
}

function difference(each) {
  const names = Object.keys(each.ranks || {});
  const where = each.place && RUNS[0].sources[each.place[0]] ? place(RUNS[0], each.place) : null;
  return el(
    "section",
    { class: "difference" },
    el("h2", {}, each.title, " ", where),
    each.text ? el("p", {}, each.text) : null,
    el("div", { class: "sides" }, names.map((name) => el("div", {}, el("h3", {}, name), el("pre", { tabindex: "0" }, each.ranks[name]))))
  );
}

function showRank(run) {
  const picker = document.getElementById("rank");
  if (!picker) return;
  picker.value = String(run.index);
  for (const view of VIEWS) view.link.href = `#${view.id}${rankQuery(run)}`;
}
