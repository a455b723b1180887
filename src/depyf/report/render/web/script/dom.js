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

function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many || one + "s"}`;
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

function fileName(path) {
  return path.split(/[\\/]/).pop() || path;
}

// Text of PyTorch's: what stands in backticks is code.
function prose(text) {
  return text.split(/(`[^`\n]+`)/).map((part) => (/^`[^`]+`$/.test(part) ? el("code", {}, part.slice(1, -1)) : part));
}

// Where a value comes from the run, only addresses of the web become links.
function outwards(url, text) {
  if (!/^https?:\/\//i.test(url)) return url;
  return el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, text || url);
}

const MOST_ROWS = 500;

// A table. Of many rows the first stand there, and a button shows all of them.
function tableOf(caption, heads, rows, narrow) {
  const head = heads.map((each) => el("th", { scope: "col", class: each.number ? "number" : null }, each.text || each));
  const body = el("tbody");
  const row = (cells) => el("tr", {}, cells.map((cell, at) => el("td", { class: heads[at].number ? "number" : null }, typeof cell === "function" ? cell() : cell)));
  add(body, rows.slice(0, MOST_ROWS).map(row));
  const more = rows.length > MOST_ROWS && el("button", { type: "button", onclick: () => {
    add(body, rows.slice(MOST_ROWS).map(row));
    more.remove();
  } }, `Show all ${count(rows.length, "row")}`);
  return el(
    "div",
    { class: narrow ? "scroll narrow" : "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), body),
    more
  );
}
