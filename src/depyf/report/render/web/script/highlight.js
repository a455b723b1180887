// A small tokenizer of Python and C++: enough to read by, a few lines at a time, when they come into view.
// Strings that run over several lines are found in one pass over the text; Inductor keeps kernels in such strings, and
// those are highlighted as the language they are written in.

const WORDS = {
  python: new Set(
    ("False None True and as assert async await break class continue def del elif else except finally for from global " +
      "if import in is lambda match nonlocal not or pass raise return try while with yield case").split(" ")
  ),
  cpp: new Set(
    ("alignas auto bool break case char class const constexpr continue default delete do double else enum extern false " +
      "float for if inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t long namespace new " +
      "nullptr operator private public return short signed sizeof static static_cast struct switch template this true " +
      "typedef typename union unsigned using virtual void volatile while half bfloat16 decltype").split(" ")
  ),
};

const TOKENS = {
  python:
    /(#.*)|((?:\b[rRbBuUfFtT]{1,2})?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(@[\w.]+)|(\b0[xX][\da-fA-F_]+\b|\b\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?j?\b)|([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)/g,
  cpp:
    /(\/\/.*|\/\*.*?(?:\*\/|$))|(L?"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(^\s*#\s*\w+.*)|(\b0[xX][\da-fA-F]+\w*|\b\d+\.?\d*(?:[eE][+-]?\d+)?[fFlLuU]*\b)|([A-Za-z_]\w*)/g,
};
const LONGEST = 2000; // of a line only so much is highlighted

// Regions of the text that lie in a string of several lines: {first, from, last, to, language}, lines from 0.
function longStrings(text, language) {
  const regions = [];
  if (language !== "python") return regions;
  const starts = /#.*|([rRbBuUfFtT]{0,2})("""|'''|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)/g;
  let line = 0;
  let lineStart = 0;
  let seen = 0;
  const goTo = (offset) => {
    for (let next = text.indexOf("\n", seen); next !== -1 && next < offset; next = text.indexOf("\n", seen)) {
      line += 1;
      lineStart = seen = next + 1;
    }
  };
  for (let match = starts.exec(text); match; match = starts.exec(text)) {
    const quote = match[2];
    if (quote !== '"""' && quote !== "'''") continue;
    const inside = match.index + match[0].length;
    const raw = /r/i.test(match[1]);
    let end = text.indexOf(quote, inside);
    while (!raw && end !== -1 && escaped(text, end)) end = text.indexOf(quote, end + 1);
    const stop = end === -1 ? text.length : end;
    goTo(match.index);
    const region = { first: line, from: inside - lineStart, language: languageInside(text, match.index, inside) };
    goTo(stop);
    Object.assign(region, { last: line, to: stop - lineStart });
    regions.push(region);
    starts.lastIndex = stop + 3;
  }
  return regions;
}

function escaped(text, at) {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes += 1;
  return slashes % 2 === 1;
}

function languageInside(text, start, inside) {
  const before = text.slice(Math.max(0, start - 200), start);
  const head = text.slice(inside, inside + 200);
  if (/#include|extern "C"/.test(head)) return "cpp";
  return /async_compile\.triton|import triton/.test(before + head) ? "python" : "text";
}

// A line as nodes. ``region`` is the string region that it lies in or touches, if any.
function highlighted(line, number, language, regions) {
  if (language === "text") return [line];
  const touching = regionsAt(regions, number);
  if (!touching.length) return tokens(line, language);
  const parts = [];
  let at = 0;
  for (const region of touching) {
    const from = region.first === number ? Math.min(region.from, line.length) : 0;
    const to = region.last === number ? Math.min(region.to, line.length) : line.length;
    const opens = region.first === number ? Math.max(at, from - 3) : from;
    parts.push(...tokens(line.slice(at, opens), language), ...string(line.slice(opens, from)));
    const inner = line.slice(from, to);
    parts.push(...(region.language === "text" ? string(inner) : tokens(inner, region.language)));
    at = to;
    if (region.last === number) {
      parts.push(...string(line.slice(at, at + 3)));
      at += 3;
    }
  }
  return [...parts, ...tokens(line.slice(at), language)];
}

function string(text) {
  return text ? [el("span", { class: "t-s" }, text)] : [];
}

function regionsAt(regions, number) {
  let low = 0;
  let high = regions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (regions[middle].last < number) low = middle + 1;
    else high = middle;
  }
  const found = [];
  for (; low < regions.length && regions[low].first <= number; low += 1) found.push(regions[low]);
  return found;
}

function tokens(line, language) {
  const nodes = [];
  const pattern = TOKENS[language];
  const words = WORDS[language];
  if (!pattern) return [line];
  const head = line.length > LONGEST ? line.slice(0, LONGEST) : line;
  let at = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(head); match; match = pattern.exec(head)) {
    const [all, comment, text, mark, number, word] = match;
    let kind = null;
    if (comment) kind = "t-c";
    else if (text) kind = "t-s";
    else if (mark) kind = "t-d";
    else if (number) kind = "t-n";
    else if (words.has(word)) kind = "t-k";
    else if (head[match.index + all.length] === "(") kind = "t-f";
    if (!kind) continue;
    if (match.index > at) nodes.push(head.slice(at, match.index));
    nodes.push(el("span", { class: kind }, all));
    at = match.index + all.length;
  }
  if (at < line.length) nodes.push(line.slice(at));
  return nodes;
}

// What AOTAutograd's inputs (primals_1, arg0_1) are called, where they are parameters or buffers: its graphs say which input
// of the captured graph each is, or name the parameter.
function inputNames(captured, texts) {
  const head = /def forward\(([^]*?)\):/.exec(captured || "");
  const given = head ? [...head[1].matchAll(/\b(\w+)\s*:\s*"(\w+)/g)] : [];
  const names = new Map();
  for (const text of texts) {
    for (const [, name, type, at, target] of text.matchAll(/\b(\w+): "(\w+)[^"\n]*",?  # (?:PlainAOTInput\(idx=(\d+)\)|(?:Param|Buffer)AOTInput\(target='([^']+)'\))/g)) {
      const input = at === undefined ? null : given[Number(at)];
      const short = target || (input && input[2] === type ? shortName(input[1]) : "");
      if (short && (target || short !== input[1])) names.set(name, short);
    }
  }
  return names;
}

// Dynamo's name of a parameter or buffer, as its module is written: l_self_modules_up_parameters_weight_ is up.weight.
function shortName(word) {
  const at = Math.max(word.lastIndexOf("_parameters_"), word.lastIndexOf("_buffers_"));
  if (at < 3 || !/^[Ll]_\w+_$/.test(word)) return word;
  const modules = word.slice(2, at).split("_modules_");
  if (/^self(_dict)?$/.test(modules[0])) modules.shift();
  return [...modules, word.slice(word.indexOf("s_", at) + 2, -1)].join(".");
}

const NAMED_INPUT = /\b([Ll]_\w+_|(?:primals|arg)\w*_\d+)\b/;

// Highlighted parts with short names in sight; marking and copying them gives the whole ones, which compile. ``inputs`` has
// those of AOTAutograd's inputs.
function withShortNames(parts, inputs) {
  return parts.flatMap((part) => (typeof part !== "string" ? [part] : part.split(NAMED_INPUT).map((word, at) => {
    const short = at % 2 ? inputs.get(word) || shortName(word) : word;
    return short === word ? word : el("span", { class: "renamed", title: word, "data-short": short }, el("span", {}, word));
  })));
}
