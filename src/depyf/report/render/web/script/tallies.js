// The numbers of guards and of kernels beside a line of the source, in words, and the width of their columns. A narrow pane
// has no column of guards: they are listed where a line is chosen.

// Both numbers of a line; the text is empty where there are none.
function talliesOf(mark) {
  const guards = mark && mark.guards.length ? count(mark.guards.length, "guard") : "";
  const kernels = kernelCounts(mark ? mark.kernels : []);
  return [
    { text: guards, title: guards || null },
    { text: kernels.own ? count(kernels.own, "kernel") : kernels.library ? count(kernels.library, "call") : "", title: kernels.words || null },
  ];
}

// Makes the columns of these numbers as wide as the longest of a file.
function tallyWidths(node, marks) {
  ["guards", "kernels"].forEach((name, at) => {
    node.style.setProperty(`--${name}`, String(Math.max(0, most(marks.map((mark) => talliesOf(mark)[at].text), "length"))));
  });
}
