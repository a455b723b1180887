// Flow: the drawing of one function, made when the page was written.

VIEWS.push({ id: "flow", title: "Flow", show: showFlow });

function showFlow({ run, parts }, node) {
  const order = new Map(run.roots.map((index, at) => [index, at]));
  const drawings = [...document.querySelectorAll(`template[data-run="${run.index}"]`)];
  drawings.sort((one, other) => (order.get(Number(one.dataset.function)) ?? order.size) - (order.get(Number(other.dataset.function)) ?? order.size));
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
      el("a", { href: run.hrefOf(where) }, "its source"), el("span", { class: "bar zoom" }, zoomButtons(node))),
    el("h1", {}, shortened(run.nameOf(index), 120)),
    el("p", { class: "quiet" }, "A call is checked against the guards of each cache entry in order; the first that holds runs its transformed code."),
    el("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": `Flow of ${shortened(run.nameOf(index), 80)}` }, drawing.content.cloneNode(true)),
    flowList(drawing.content.querySelector("svg"))
  );
  zoomDrawing(node, 0);
}

// The boxes and labels of a drawing in the order of a call, below each other: a drawing has no room on a telephone.
function flowList(svg) {
  const list = el("div", { class: "flow-list" });
  const words = (text) => text.dataset.whole || text.textContent;
  const walk = (parent) => {
    for (const each of parent.children) {
      if (each.matches("a, g:has(> rect)")) {
        const [head, ...lines] = [...each.querySelectorAll("text")];
        const kind = each.querySelector("rect").getAttribute("class");
        const href = each.getAttribute("href");
        list.append(el(href ? "a" : "div", { class: `step ${kind}${parent === svg ? "" : " unused"}`, href }, el("b", {}, words(head)), lines.map((line) => el("span", { class: line.matches(".flow-mono") ? "mono" : "quiet" }, words(line)))));
      } else if (each.matches("g")) walk(each); // a row that never ran
      else if (each.matches(".flow-title")) list.append(el("h2", {}, words(each)));
      else if (each.matches("text")) list.append(el("p", { class: "quiet" }, `${/^(fails|hold)$/.test(words(each)) ? "↓ " : ""}${words(each)}`));
    }
  };
  walk(svg);
  return list;
}

let drawingScale = 1; // of all drawings: 1 has letters as large as the text around

// Makes the drawing larger or smaller by a factor; ``Infinity`` is as wide as the window, and 0 is as it was last.
function zoomDrawing(node, factor) {
  const box = node.querySelector(".drawing");
  const svg = box.querySelector("svg");
  const natural = Number(svg.getAttribute("width"));
  const wanted = factor === Infinity ? box.clientWidth / natural : drawingScale * (factor || 1);
  drawingScale = Math.min(4, Math.max(0.1, wanted));
  svg.style.width = `${natural * drawingScale}px`;
  svg.style.height = "auto";
  fill(node.querySelector(".scale"), `${Math.round(100 * drawingScale)} %`);
}

function zoomButtons(node) {
  const button = (text, label, factor) => el("button", { type: "button", title: label, "aria-label": label, onclick: () => zoomDrawing(node, factor) }, text);
  return [button("−", "Smaller", 0.8), el("output", { class: "scale quiet" }), button("+", "Larger", 1.25), button("Fit to the width", "Fit to the width", Infinity)];
}
