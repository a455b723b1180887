// Differences of two texts by lines: lines that occur once in both are anchors (patience), Myers' algorithm in between.

const MOST_EDITS = 1500; // between two anchors; more than that is shown as one block replaced by another

// Returns [kind, line of a, line of b] in order; kind is "=", "-" or "+", lines count from 0.
function diffLines(a, b) {
  const script = [];
  const numbers = new Map();
  const number = (line) => {
    if (!numbers.has(line)) numbers.set(line, numbers.size);
    return numbers.get(line);
  };
  compare(a.map(number), b.map(number), 0, a.length, 0, b.length, script, 0);
  return script;
}

function compare(a, b, a0, a1, b0, b1, script, depth) {
  while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) script.push(["=", a0++, b0++]);
  let tail = 0;
  while (a0 < a1 - tail && b0 < b1 - tail && a[a1 - 1 - tail] === b[b1 - 1 - tail]) tail += 1;
  middle(a, b, a0, a1 - tail, b0, b1 - tail, script, depth);
  for (; tail > 0; tail -= 1) script.push(["=", a1 - tail, b1 - tail]);
}

function middle(a, b, a0, a1, b0, b1, script, depth) {
  const anchors = a0 < a1 && b0 < b1 && depth < 40 ? uniqueInBoth(a, b, a0, a1, b0, b1) : [];
  if (!anchors.length) {
    myers(a, b, a0, a1, b0, b1, script);
    return;
  }
  for (const [x, y] of [...anchors, [a1, b1]]) {
    compare(a, b, a0, x, b0, y, script, depth + 1);
    if (x < a1 || y < b1) script.push(["=", x, y]);
    a0 = x + 1;
    b0 = y + 1;
  }
}

// The longest rising chain of lines that occur exactly once on each side.
function uniqueInBoth(a, b, a0, a1, b0, b1) {
  const seen = new Map();
  for (let at = a0; at < a1; at += 1) seen.set(a[at], seen.has(a[at]) ? null : { x: at, y: -1, times: 0 });
  for (let at = b0; at < b1; at += 1) {
    const one = seen.get(b[at]);
    if (one) Object.assign(one, { y: at, times: one.times + 1 });
  }
  const pairs = [...seen.values()].filter((one) => one && one.times === 1);
  const tops = [];
  for (const pair of pairs) {
    let low = 0;
    let high = tops.length;
    while (low < high) {
      const half = (low + high) >> 1;
      if (tops[half].y < pair.y) low = half + 1;
      else high = half;
    }
    pair.before = low ? tops[low - 1] : null;
    tops[low] = pair;
  }
  const chain = [];
  for (let pair = tops[tops.length - 1]; pair; pair = pair.before) chain.unshift([pair.x, pair.y]);
  return chain;
}

// E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986: furthest reaching paths, then back along them.
function myers(a, b, a0, a1, b0, b1, script) {
  const n = a1 - a0;
  const m = b1 - b0;
  const most = Math.min(n + m, MOST_EDITS);
  let reach = new Map([[1, 0]]);
  const history = [];
  for (let edits = 0; n && m && edits <= most; edits += 1) {
    const next = new Map(reach);
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? reach.get(k + 1) : reach.get(k - 1) + 1;
      while (x < n && x - k < m && x - k >= 0 && a[a0 + x] === b[b0 + x - k]) x += 1;
      next.set(k, x);
      if (x >= n && x - k >= m) {
        history.push(reach);
        backtrack(history, n, m, a0, b0, script);
        return;
      }
    }
    history.push(reach);
    reach = next;
    if (edits * edits > 4e6) break;
  }
  for (let x = a0; x < a1; x += 1) script.push(["-", x, -1]);
  for (let y = b0; y < b1; y += 1) script.push(["+", -1, y]);
}

function backtrack(history, n, m, a0, b0, script) {
  const steps = [];
  let x = n;
  let y = m;
  for (let edits = history.length - 1; edits >= 0; edits -= 1) {
    const reach = history[edits];
    const k = x - y;
    const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const fromX = down ? reach.get(k + 1) : reach.get(k - 1);
    const fromY = fromX - (down ? k + 1 : k - 1);
    const [startX, startY] = edits === 0 ? [0, 0] : down ? [fromX, fromY + 1] : [fromX + 1, fromY];
    for (; x > startX && y > startY; x -= 1, y -= 1) steps.push(["=", a0 + x - 1, b0 + y - 1]);
    if (edits === 0) break;
    steps.push(down ? ["+", -1, b0 + fromY] : ["-", a0 + fromX, -1]);
    x = fromX;
    y = fromY;
  }
  script.push(...steps.reverse());
}
