// From one line to its parts everywhere: a selection is what was chosen, ``matches`` finds it in an artifact.

// What is chosen with a line of the user's program.
function selectPlace(run, place) {
  return { run, origin: null, places: run.statement(place), through: [], names: new Set(), id: null };
}

// What is chosen with a line of an artifact: the places that its links name, and what it computes.
function selectLine(run, artifact, line) {
  const direct = new Map();
  const through = new Map();
  const names = new Set();
  for (const link of run.links(artifact)) {
    if (line < link.first || line > link.last) continue;
    link.names.forEach((name) => names.add(name));
    link.places.forEach((place, at) => {
      (link.set || at === link.places.length - 1 ? direct : through).set(keyOf(place), place);
    });
  }
  return {
    run, origin: artifact.id, line, id: artifact.compile_id, names,
    places: [...direct.values()], through: [...through.values()].filter((place) => !direct.has(keyOf(place))),
  };
}

// Lines of the artifact that belong to the selection, as a map from line to 2 (the same) or 1 (around it).
function matches(run, artifact, selection) {
  const found = new Map();
  if (!selection) return found;
  if (artifact.id === selection.origin) {
    found.set(selection.line, 2);
    return found;
  }
  const wanted = new Set(selection.places.map(keyOf));
  const sameGraph = artifact.compile_id === selection.id && selection.names.size > 0;
  for (const link of run.links(artifact)) {
    const strength = strengthOf(link, wanted, sameGraph ? selection.names : null);
    if (!strength) continue;
    for (let line = link.first; line <= link.last; line += 1) found.set(line, Math.max(strength, found.get(line) || 0));
  }
  return found;
}

// Places decide where both sides have them; among those, equal names are nearer. Names alone do where there are none.
function strengthOf(link, wanted, names) {
  const named = names !== null && link.names.some((name) => names.has(name));
  if (!wanted.size || !link.places.length) return named ? 2 : 0;
  if (!link.places.some((place) => wanted.has(keyOf(place)))) return 0;
  if (names !== null) return named ? 2 : 1;
  return link.set || wanted.has(keyOf(link.places[link.places.length - 1])) ? 2 : 1;
}

// Lines of a file of the user's that belong to the selection.
function placesIn(source, selection) {
  const found = new Map();
  if (!selection) return found;
  for (const place of selection.through) if (place[0] === source) found.set(place[1], 1);
  for (const place of selection.places) if (place[0] === source) found.set(place[1], 2);
  return found;
}

const MOST_BANDS = 4; // a line of an artifact that belongs to more lines has no colour

// What gives the lines of an artifact the colours of the lines of a file that they belong to.
function coloursIn(run, artifact, source) {
  let found = null;
  const find = () => {
    const colours = run.lineColours(source);
    found = new Map();
    for (const link of colours.size ? run.links(artifact) : []) {
      const here = link.places.filter((place) => place[0] === source && colours.has(place[1]));
      for (const place of link.set ? here : here.slice(-1)) {
        for (let line = link.first; line <= link.last; line += 1) {
          if (!found.has(line)) found.set(line, new Set());
          found.get(line).add(colours.get(place[1]));
        }
      }
    }
  };
  return (line) => {
    if (!found) find();
    const own = found.get(line);
    return own && own.size <= MOST_BANDS ? [...own] : [];
  };
}
