// Addresses inside the page: #view/part/part?key=value. Every state worth showing to somebody has one.

// Large data is packed (page_data.py).
async function unpacked(node) {
  if (node.dataset.packed === undefined) return JSON.parse(node.textContent);
  const letters = atob(node.textContent);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

const DATA = await unpacked(document.getElementById("data"));
const RUNS = DATA.runs.map((packed, index) => new RunModel(packed, index, DATA.defaults));
const VIEWS = []; // {id, title, key, node, show(route), keys}
let current = null;

function rankQuery(run) {
  return RUNS.length > 1 ? `?rank=${run.index}` : "";
}

function parseRoute(hash) {
  const [path, query] = (hash.replace(/^#/, "") || VIEWS[0].id).split("?");
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch (error) {
      return part; // a stray % that somebody typed
    }
  });
  const keys = new URLSearchParams(query || "");
  const run = RUNS[Number(keys.get("rank"))] || RUNS[0];
  return { view: parts[0], parts: parts.slice(1), keys, run };
}

function address(view, parts, keys, run) {
  const query = new URLSearchParams(keys || {});
  if (run && RUNS.length > 1) query.set("rank", run.index);
  const path = [view, ...parts].map((part) => encodeURIComponent(String(part).replace(/\p{Surrogate}/gu, "\ufffd"))).join("/"); // of hostile names, too
  return `#${path}${String(query) ? `?${query}` : ""}`;
}

// Writes where we are into the address bar without a new entry in the history.
function remember(hash) {
  if (location.hash === hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch (error) {
    location.hash = hash; // some browsers refuse the former for files
  }
  if (current) current.hash = hash;
}

function route() {
  const wanted = parseRoute(location.hash);
  const view = VIEWS.find((each) => each.id === wanted.view) || VIEWS[0];
  for (const each of VIEWS) {
    if (each.node) each.node.hidden = each !== view;
    each.link.toggleAttribute("aria-current", false);
  }
  view.link.setAttribute("aria-current", "page");
  view.link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a telephone the row of views scrolls
  if (!view.node) {
    view.node = el("section", { class: `view view-${view.id}`, "aria-label": view.title });
    document.getElementById("main").append(view.node);
  }
  current = view;
  view.hash = location.hash;
  document.title = `${view.title} · depyf`;
  showRank(wanted.run);
  view.show(wanted, view.node);
}

function place(run, where, text) {
  if (!where) return "";
  return el("a", { href: run.hrefOf(where), class: "place", title: run.sources[where[0]]?.path }, text || shortened(run.placeText(where), 60));
}

function artifactLink(run, artifact, text, line) {
  const parts = line ? [artifact.id, `L${line}`] : [artifact.id];
  return el("a", { href: address("stages", parts, {}, run) }, text || stageName(artifact));
}

// A compile id in words: 0/1 is the second version of the function that Dynamo met first.
function idInWords(id) {
  const [, frame, entry, attempt] = /^(?:!\d+\/)?(\d+)\/(\d+)(?:_(\d+))?$/.exec(id || "") || [];
  return frame === undefined ? null : `compile id: version ${entry} of function ${frame}, both counted from 0 in the order in which Dynamo met them${attempt ? `, attempt ${attempt}` : ""}`;
}

// A compile id with the colour of its graph.
function chip(run, id) {
  const colour = run.colours.get(id);
  return el("span", { class: "chip", title: idInWords(id), style: colour === undefined ? {} : { "--graph": `var(--g${colour})` } }, id);
}
