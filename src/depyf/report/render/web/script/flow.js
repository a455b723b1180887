// Flow: the drawing of one function, made when the page was written.

VIEWS.push({ id: "flow", title: "Flow", show: showFlow });

function showFlow({ run, parts }, node) {
  const drawings = [...document.querySelectorAll(`template[data-run="${run.index}"]`)];
  const wanted = Number((parts[0] || "").slice(1));
  const drawing = drawings.find((each) => Number(each.dataset.function) === wanted && parts[0]) || drawings[0];
  node.classList.add("page", "wide");
  if (!drawing) {
    fill(node, el("h1", {}, "Flow"), el("p", { class: "quiet" }, "Nothing was compiled."));
    return;
  }
  const index = Number(drawing.dataset.function);
  const options = drawings.map((each) => {
    const number = Number(each.dataset.function);
    return el("option", { value: address("flow", [`f${number}`], {}, run), selected: number === index }, shortened(run.nameOf(number), 80));
  });
  const where = run.startOf(index);
  fill(
    node,
    el("div", { class: "bar" },
      el("label", { for: "flow-pick" }, "Function"),
      el("select", { id: "flow-pick", onchange: (event) => (location.hash = event.target.value) }, options),
      el("a", { href: run.hrefOf(where) }, "its source")),
    el("h1", {}, shortened(run.nameOf(index), 120)),
    el("p", { class: "quiet" }, "A call is checked against the guards of each cache entry in order; the first that holds runs its transformed code."),
    el("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": `Flow of ${shortened(run.nameOf(index), 80)}` }, drawing.content.cloneNode(true))
  );
}
