// Passes: what each pass changed in a graph, in order. Only there when a run has some.

VIEWS.push({ id: "passes", title: "Passes", show: showPasses });

function showPasses({ run }, node) {
  node.classList.add("page");
  const groups = [...grouped(run.passes, (each) => each.artifact)];
  fill(
    node,
    el("h1", {}, "Passes that changed a graph"),
    groups.length
      ? groups.map(([id, passes]) => passGroup(run, run.artifact.get(id), passes))
      : el("p", { class: "quiet" }, "No pass changed a graph in this run.")
  );
}

function passGroup(run, artifact, passes) {
  const id = passes[0].compile_id;
  const ran = id && run.compilation.get(id) ? run.compilation.get(id).passes_ran : null;
  const pieces = [...grouped(passes, (each) => each.piece)];
  return el(
    "section",
    { class: "passes" },
    el("h2", {}, id ? chip(run, id) : null, " ", artifact ? el("a", { href: address("stages", [artifact.id], {}, run) }, artifact.title) : passes[0].artifact),
    ran ? el("p", { class: "quiet" }, `${count(ran, "pass", "passes")} ran in this compilation; those that changed nothing are not listed`) : null,
    pieces.map(([piece, ours]) => {
      const sizes = [...new Set(ours.flatMap((each) => each.sizes))];
      return [
        piece ? el("h3", {}, piece) : null,
        sizes.length ? el("p", { class: "quiet" }, `compiled for sizes ${sizes.join(", ")}`) : null,
        el("ol", {}, ours.map((each) => el("li", {}, onePass(run, artifact, each, passes.length === 1)))),
      ];
    })
  );
}

// The difference is made when it is opened: a graph may have thousands of lines.
function onePass(run, artifact, each, open) {
  const name = [...each.within, each.name].join(" / ");
  const custom = each.function && /custom/.test(each.name) ? ` (${each.function})` : "";
  const nodes = `${each.nodes_before} nodes before, ${each.nodes_after} after`;
  const box = el("details", {}, el("summary", {}, el("span", { class: "mono" }, name + custom), " ", el("span", { class: "quiet" }, `${each.group ? `${each.group} · ` : ""}${nodes}`)));
  const build = () => {
    if (!box.open || box.built) return;
    box.built = true;
    const lines = artifact ? run.text(artifact).split("\n").slice(each.first - 1, each.last) : [];
    const kind = (line) => (/^(\+|-)(?!\1\1 )/.exec(line) || [""])[0][0];
    box.append(el("pre", { class: "difference", tabindex: "0" }, lines.map((line) => el("span", { class: { "+": "diff-add", "-": "diff-drop" }[kind(line)] || null }, `${line}\n`))));
  };
  box.addEventListener("toggle", build);
  box.open = open;
  build();
  return box;
}
