// The numbers of guards and of kernels beside a line of the source, and the width of their columns.

// Both numbers of a line, in short and in words; empty where there are none.
function talliesOf(mark) {
  const guards = mark ? mark.guards.length : 0;
  const kernels = kernelCounts(mark ? mark.kernels : []);
  const words = guards ? count(guards, "guard") : null;
  return [
    { short: guards ? `${guards}g` : "", long: words, title: words },
    { short: kernels.own ? `${kernels.own}k` : kernels.library ? `${kernels.library}lib` : "", long: kernels.own ? count(kernels.own, "kernel") : kernels.words || null, title: kernels.words || null },
  ];
}

// Makes the columns of these numbers as wide as the longest of a file.
function tallyWidths(node, marks) {
  ["guards", "kernels"].forEach((name, at) => {
    const all = marks.map((mark) => talliesOf(mark)[at]);
    const widest = (key) => String(Math.max(0, most(all.map((each) => each[key] || ""), "length")));
    node.style.setProperty(`--${name}`, widest("short"));
    node.style.setProperty(`--${name}-long`, widest("long"));
  });
}
