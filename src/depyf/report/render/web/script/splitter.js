// Dividers between panes, which are dragged or moved with the arrow keys. Sizes are remembered, where pages may store anything.

const SMALLEST = 0.12; // of the room that two neighbours share

function storedSizes() {
  try {
    const sizes = JSON.parse(localStorage.getItem("depyf-panes") || "{}");
    return sizes && typeof sizes === "object" ? sizes : {};
  } catch (error) {
    return {}; // nothing may be stored, or it was damaged
  }
}

function storeSizes(nodes) {
  try {
    const grown = Object.fromEntries(nodes.map((node) => [node.dataset.pane, Number(getComputedStyle(node).flexGrow)]));
    localStorage.setItem("depyf-panes", JSON.stringify({ ...storedSizes(), ...grown }));
  } catch (error) {
    // not stored: the next page starts with equal panes
  }
}

function grow(node, part, vertical) {
  node.style.flexGrow = String(part);
  node.style.flexBasis = "0px";
  node.style.maxHeight = vertical ? "" : "none";
  node.style.height = vertical ? "" : "auto";
}

// Gives elements with a name (``data-pane``) the sizes that they had last.
function restoreSizes(nodes, vertical) {
  const sizes = storedSizes();
  for (const node of nodes) if (sizes[node.dataset.pane] > 0 && sizes[node.dataset.pane] < 9) grow(node, sizes[node.dataset.pane], vertical);
}

// A divider between the shown elements on its two sides: the first gets ``share`` of their room.
function splitter(title, vertical) {
  const size = (node) => (vertical ? node.offsetWidth : node.offsetHeight);
  const beside = (node, way) => {
    let next = node;
    do next = next[way]; while (next && (next.hidden || next.classList.contains("splitter")));
    return next;
  };
  const neighbours = () => [beside(bar, "previousElementSibling"), beside(bar, "nextElementSibling")];
  const set = (share) => {
    const [one, other] = neighbours();
    if (!one || !other) return;
    const [first, last] = [one, other].map((node) => Number(getComputedStyle(node).flexGrow) || 1);
    const kept = Math.min(1 - SMALLEST, Math.max(SMALLEST, share));
    grow(one, kept * (first + last), vertical);
    grow(other, (1 - kept) * (first + last), vertical);
    bar.setAttribute("aria-valuenow", String(Math.round(100 * kept)));
    storeSizes([...bar.parentNode.children].filter((node) => node.dataset.pane));
  };
  const now = () => {
    const [one, other] = neighbours();
    return one && other ? size(one) / Math.max(1, size(one) + size(other)) : 0.5;
  };
  const dragged = (event) => {
    const [one, other] = neighbours();
    if (!bar.hasPointerCapture(event.pointerId) || !one || !other) return;
    const [box, last] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    set(vertical ? (event.clientX - box.left) / (last.right - box.left) : (event.clientY - box.top) / (last.bottom - box.top));
  };
  const keys = vertical ? { ArrowLeft: -0.04, ArrowRight: 0.04 } : { ArrowUp: -0.04, ArrowDown: 0.04 };
  const bar = el("div", {
    class: vertical ? "splitter" : "splitter flat", role: "separator", tabindex: "0", "aria-label": title, "aria-orientation": vertical ? "vertical" : "horizontal",
    "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "50", title: `${title}: drag, or use the arrow keys`,
    onpointerdown: (event) => { bar.setPointerCapture(event.pointerId); event.preventDefault(); },
    onpointermove: dragged,
    onkeydown: (event) => {
      if (!(event.key in keys)) return;
      set(now() + keys[event.key]);
      event.preventDefault();
      event.stopPropagation();
    },
  });
  return bar;
}
