// Small helpers to build elements. Text is always set as text, never as markup: what users wrote is hostile until proved.

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "style") for (const [key, part] of Object.entries(value)) node.style.setProperty(key, part);
    else node.setAttribute(name, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

const DIGITS = new Intl.NumberFormat("en"); // one for all: to make one takes longer than to use it a hundred times
const digits = (value) => (Math.abs(value) >= 1000 ? DIGITS.format(value) : String(value));

function count(number, one, many) {
  return `${digits(number)} ${number === 1 ? one : many || one + "s"}`;
}

function seconds(value) {
  if (value === null || value === undefined) return "";
  if (Math.abs(value) < 1e-9) return "0 s";
  if (value < 1e-3) return `${(value * 1e6).toPrecision(3)} µs`;
  if (value < 1) return `${(value * 1e3).toPrecision(3)} ms`;
  return `${value < 100 ? value.toPrecision(3) : Math.round(value)} s`;
}

// Long names are cut in the middle where space is short; the whole one stands in the title.
function shortened(text, length) {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - tail)}…${text.slice(text.length - tail)}`;
}

// The last part of a path; of a package its folder, too: logging/__init__.py.
function fileName(path) {
  const parts = path.split(/[\\/]/);
  return parts.slice(parts[parts.length - 1] === "__init__.py" ? -2 : -1).join("/") || path;
}

// Lines of PyTorch's texts without empty ones, and without the indentation that those after the first have in common.
function dedented(text) {
  const [first, ...rest] = text.split("\n").filter((line) => line.trim());
  const indent = rest.reduce((least, line) => Math.min(least, line.search(/\S/)), 99);
  return [first || "", ...rest.map((line) => line.slice(indent))].join("\n");
}

// Text of PyTorch's, and advice: what stands in backticks is code, and so are names of torch's with their arguments.
function prose(text) {
  const code = /(`[^`\n]+`|\btorch(?:\.\w+)+(?:\([^()\n]*\))?(?: = (?:True|False|\d+))?|\bdynamic=True\b)/;
  return dedented(text).split(code).map((part, at) => (at % 2 ? el("code", {}, part.replace(/^`|`$/g, "")) : part));
}

// Where a value comes from the run, only addresses of the web become links.
function outwards(url, text) {
  if (!/^https?:\/\//i.test(url)) return url;
  return el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, text || url);
}

const MOST_ROWS = 500;

// The head of a column of numbers; ``by`` makes it one to sort by.
const numeric = (text, by) => ({ text, number: true, by });

// A table. A head is a text or node, or {text, number, by}: with ``by``, the value of a row by its index, rows are sorted by the
// column. Of many rows the first ``most`` stand there, and a button makes room for the rest, which are made as they come into sight.
function tableOf(caption, heads, rows, { narrow = false, most = MOST_ROWS } = {}) {
  const names = heads.map((each) => add(el("span"), [each.text || each]).textContent); // where columns have no room, cells stand below each other, with these
  const cell = (each, at) => el("td", { class: heads[at].number ? "number" : null, "data-head": names[at] || null }, typeof each === "function" ? each() : each);
  const row = (cells, at) => el("tr", { "aria-rowindex": at }, cells.map(cell));
  const state = { order: rows.map((_, at) => at), all: false };
  const head = heads.map((each, at) => el("th", { scope: "col", class: each.number ? "number" : null },
    each.by && rows.length > 1 ? el("button", { type: "button", class: "sort", title: "Sort by this column", onclick: () => sort(at) }, names[at]) : each.text || each));
  const table = el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)));
  const draw = () => {
    for (const body of [...table.tBodies]) body.remove();
    const sorted = state.order.map((at) => rows[at]);
    table.append(el("tbody", {}, sorted.slice(0, most).map((cells) => row(cells))));
    if (state.all) addPieces(table, sorted, row, most);
  };
  const sort = (at) => {
    const way = { ascending: "none", descending: "ascending" }[head[at].getAttribute("aria-sort")] || "descending";
    for (const each of head) each.removeAttribute("aria-sort");
    if (way !== "none") head[at].setAttribute("aria-sort", way);
    state.order = way === "none" ? rows.map((_, each) => each) : sortedBy(rows, heads[at].by, way === "ascending");
    draw();
  };
  draw();
  const more = rows.length > most && el("button", { type: "button", onclick: () => {
    table.setAttribute("aria-rowcount", rows.length + 1);
    state.all = true;
    draw();
    more.remove();
  } }, `Show all ${count(rows.length, "row")}`);
  return el("div", { class: narrow ? "scroll narrow" : heads.length > 2 ? "scroll stacks" : "scroll", tabindex: "0", role: "region", "aria-label": caption }, table, more);
}

// The indices of rows by a value, those without one last.
function sortedBy(rows, by, ascending) {
  const value = rows.map((_, at) => by(at) ?? null);
  const compared = (one, other) => (typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other);
  return rows.map((_, at) => at).sort((one, other) => {
    if (value[one] === null || value[other] === null) return (value[one] === null) - (value[other] === null);
    return compared(value[one], value[other]) * (ascending ? 1 : -1);
  });
}

function addPieces(table, rows, row, most) {
  const height = table.tBodies[0].offsetHeight / most;
  const sight = new IntersectionObserver((met) => met.forEach((each) => each.isIntersecting && each.target.make()), { root: table.closest(".view"), rootMargin: "800px" });
  for (let first = most; first < rows.length; first += PIECE) {
    const piece = rows.slice(first, first + PIECE);
    const room = el("td", { colspan: piece[0].length, style: { height: `${height * piece.length}px` } });
    const body = el("tbody", { class: "unmade" }, el("tr", {}, room));
    body.make = () => {
      sight.unobserve(body);
      body.className = "";
      fill(body, piece.map((cells, at) => row(cells, first + at + 2))); // the head is the first
    };
    table.append(body);
    sight.observe(body);
  }
}

window.addEventListener("beforeprint", () => document.querySelectorAll(".unmade").forEach((each) => each.make()));

// A table without the columns that are empty in every row.
function filledTableOf(caption, heads, rows, options) {
  const filled = heads.map((_, at) => rows.some((row) => row[at] !== "" && row[at] !== null));
  return tableOf(caption, heads.filter((_, at) => filled[at]), rows.map((row) => row.filter((_, at) => filled[at])), options);
}
