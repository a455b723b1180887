// A pane of code. The text stands there at once as plain text, in pieces; a piece is made into lines, with highlighting
// and what the view has to say about each line, when it comes near the window.

const PIECE = 80;

class CodePane {
  // ``hooks``: choose(line), classes(line), tint(line), gutter(line), remark(line), numbered(line), folds(line), each optional;
  // lines count from 1.
  constructor(id, label, hooks) {
    this.id = id;
    this.hooks = hooks || {};
    this.marks = new Map();
    this.cursor = 0;
    this.node = el("div", {
      class: "code", id, role: "listbox", tabindex: "0", "aria-label": label,
      onclick: (event) => this.clicked(event), onkeydown: (event) => this.pressed(event),
    });
    this.watcher = new IntersectionObserver(
      (entries) => entries.forEach((entry) => entry.isIntersecting && this.build(entry.target)),
      { root: this.node, rootMargin: "800px 0px" }
    );
    this.show("", "text");
  }

  show(text, language, label) {
    if (label) this.node.setAttribute("aria-label", label);
    this.watcher.disconnect();
    this.node.classList.remove("unfolded");
    this.lines = text.split("\n");
    if (this.lines.length > 1 && this.lines[this.lines.length - 1] === "") this.lines.pop();
    this.language = language;
    this.regions = longStrings(text, language);
    this.cursor = 0;
    this.marks = new Map();
    this.node.removeAttribute("aria-activedescendant");
    let longest = 0;
    for (const line of this.lines) longest = Math.max(longest, line.length);
    this.inner = el("div", {
      class: "inner", role: "presentation",
      style: { "--digits": String(String(this.lines.length).length), "--longest": String(Math.min(longest, 4000)) },
    });
    this.pieces = [];
    for (let at = 0; at < this.lines.length; at += PIECE) {
      const lines = this.lines.slice(at, at + PIECE);
      const piece = el("div", { class: "piece raw", role: "presentation" }, lines.join("\n"));
      piece.style.setProperty("--lines", String(lines.filter((_, index) => !this.isFolded(at + index + 1)).length));
      piece.at = at;
      this.pieces.push(piece);
      this.inner.append(piece);
      this.watcher.observe(piece);
    }
    this.node.replaceChildren(this.inner);
    this.node.scrollTo(0, 0);
    if (this.pieces.length) this.build(this.pieces[0]);
  }

  build(piece) {
    if (!piece.classList.contains("raw")) return;
    this.watcher.unobserve(piece);
    const last = Math.min(piece.at + PIECE, this.lines.length);
    const nodes = [];
    for (let number = piece.at + 1; number <= last; number += 1) {
      const remark = this.hooks.remark && this.hooks.remark(number);
      nodes.push(this.line(number), ...(remark ? [remark] : []));
    }
    piece.classList.remove("raw");
    piece.replaceChildren(...nodes);
  }

  line(number) {
    const { classes, gutter, numbered, short, inputs, tint, folds } = this.hooks;
    const whole = this.lines[number - 1];
    const text = short ? short(whole) : whole;
    const parts = highlighted(text, number - 1, this.language, this.regions);
    const node = el(
      "div",
      { class: `line ${classes ? classes(number) : ""}${folds && folds(number) ? " bookkeeping" : ""}`, id: `${this.id}-L${number}`, role: "option", "data-line": number, "aria-selected": "false" },
      el("span", { class: "no", "aria-hidden": "true" }, numbered ? numbered(number) : number),
      gutter ? gutter(number) : null,
      el("span", { class: "text", title: text === whole ? null : whole.trim() }, text === "" ? el("br") : short ? withShortNames(parts, inputs) : parts)
    );
    const colours = tint ? tint(number) : [];
    if (colours.length === 1) node.classList.add("tinted", `graph-${colours[0]}`);
    else if (colours.length) {
      node.classList.add("banded");
      const band = (colour, at) => `color-mix(in srgb, var(--g${colour}) 9%, var(--ground)) ${(100 * at) / colours.length}% ${(100 * (at + 1)) / colours.length}%`;
      node.style.setProperty("--bands", `linear-gradient(90deg, ${colours.map(band).join(", ")})`);
    }
    this.paint(node, number);
    return node;
  }

  paint(node, number) {
    const strength = this.marks.get(number);
    node.classList.toggle("hit", strength === 2);
    node.classList.toggle("near", strength === 1);
    node.classList.toggle("cursor", number === this.cursor);
    node.setAttribute("aria-selected", strength ? "true" : "false");
  }

  has(number) {
    return number >= 1 && number <= this.lines.length;
  }

  isFolded(number) {
    return !!this.hooks.folds && this.hooks.folds(number) && !this.node.classList.contains("unfolded");
  }

  unfold(open) {
    this.node.classList.toggle("unfolded", open);
    for (const button of this.node.querySelectorAll("[data-fold]")) button.setAttribute("aria-expanded", String(open));
  }

  find(number) {
    return this.node.ownerDocument.getElementById(`${this.id}-L${number}`);
  }

  // Highlights lines: a map from line to 2 (this is it) or 1 (it has to do with it).
  highlight(marks) {
    const before = this.marks;
    this.marks = marks;
    for (const number of new Set([...before.keys(), ...marks.keys()])) {
      const node = this.find(number);
      if (node) this.paint(node, number);
    }
  }

  // Makes the lines anew that are there, when what the hooks say has changed.
  refresh() {
    for (const piece of this.pieces) {
      if (piece.classList.contains("raw")) continue;
      piece.classList.add("raw");
      this.build(piece);
    }
  }

  moveTo(number) {
    const last = this.cursor;
    this.cursor = Math.max(1, Math.min(this.lines.length, number));
    for (const each of [last, this.cursor]) {
      const node = each && this.find(each);
      if (node) this.paint(node, each);
    }
    if (this.isFolded(this.cursor)) this.unfold(true);
    this.reveal(this.cursor);
    this.node.setAttribute("aria-activedescendant", `${this.id}-L${this.cursor}`);
  }

  // Scrolls to a line: just into sight, or into the ``middle`` where it is not in sight, or to the ``top``.
  reveal(number, where) {
    if (!this.has(number)) return;
    const piece = this.pieces[Math.floor((number - 1) / PIECE)];
    this.build(piece);
    const node = this.find(number);
    const box = this.node.getBoundingClientRect();
    const line = node.getBoundingClientRect();
    const outside = line.top < box.top + 20 || line.bottom > box.bottom - 20;
    if (where === "top") this.node.scrollTop += line.top - box.top - 40;
    else if (where === "middle" && (outside || line.bottom > box.top + box.height * 0.7)) this.node.scrollTop += line.top - box.top - box.height / 3;
    else if (outside) this.node.scrollTop += line.top - box.top - (line.top < box.top + 20 ? 40 : box.height - 60);
  }

  clicked(event) {
    if (event.target.closest("[data-fold]")) return this.unfold(!this.node.classList.contains("unfolded"));
    const line = event.target.closest("[data-line]");
    if (!line || String(getSelection())) return; // who marks text wants to copy it
    this.choose(Number(line.dataset.line));
  }

  choose(number) {
    this.moveTo(number);
    if (this.hooks.choose) this.hooks.choose(this.cursor);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / 20) - 2);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "Enter" || event.key === " ") && event.target.closest("a, button")) return; // of a remark
    if (event.key in steps) this.moveTo((this.cursor || 0) + steps[event.key]);
    else if (event.key === "Home") this.moveTo(1);
    else if (event.key === "End") this.moveTo(this.lines.length);
    else if (event.key === "Enter" || event.key === " ") this.choose(this.cursor || 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
