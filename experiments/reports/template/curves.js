// The curves: which runs are drawn, how they are grouped, and how.

/** The runs that the filters leave. */
function visibleRuns(runs, without) {
  const out = new Set(without);
  return runs.filter((run) => !Object.entries(run.fields).some(([f, v]) => out.has(`${f}=${v}`)));
}

/** [{name, index, runs}]: runs with one label, one value of a field, or each. */
function groupsOf(runs, by) {
  const found = new Map();
  for (const run of runs) {
    const name = by === 'label' ? run.label : by === 'run' ? run.name : `${by} ${run.fields[by] || 'none'}`;
    if (!found.has(name)) found.set(name, {name, index: found.size, runs: []});
    found.get(name).runs.push(run);
  }
  return [...found.values()];
}

/** {field: values} of all runs, in the order of their first occurrence. */
function fieldsOf(runs) {
  const found = {};
  for (const run of runs) {
    for (const [name, value] of Object.entries(run.fields)) {
      found[name] ||= [];
      if (!found[name].includes(value)) found[name].push(value);
    }
  }
  return found;
}

function startCurves() {
  if (!byId('charts')) return;
  const every = data.curves.runs;
  const names = new Set(every.flatMap((run) => Object.keys(run.metrics)));
  const rest = [...names].filter((name) => !data.panels.includes(name)).sort();
  const fields = fieldsOf(every);
  const charts = [];
  // Colours stay with a group while others are filtered out.
  const all = () => groupsOf(every, shown.by);
  const groups = () => {
    const left = new Set(visibleRuns(every, shown.without));
    return all().map((group) => ({...group, runs: group.runs.filter((run) => left.has(run))}))
      .filter((group) => group.runs.length && !shown.hidden.includes(group.name));
  };
  const redraw = () => {
    byId('unzoom').hidden = !shown.zoom;
    charts.forEach((chart) => chart.draw());
    keep();
  };
  const add = (name, parent) => charts.push(new Chart(name, parent, groups, redraw));
  byId('curve-controls').hidden = false;
  for (const [axis, text] of Object.entries(data.axes)) {
    if (axis !== 'iteration' && !every.some((run) => run.x[axis])) continue;
    choice(byId('axes'), 'radio', 'axis', text, axis === shown.axis, () => {
      Object.assign(shown, {axis, zoom: null});
      redraw();
    });
  }
  choice(byId('vertical'), 'checkbox', '', 'log scale', shown.log, (on) => { shown.log = on; redraw(); });
  choice(byId('vertical'), 'checkbox', '', 'cut outliers', shown.robust, (on) => { shown.robust = on; redraw(); });
  const smoothing = byId('smoothing');
  const tell = () => { byId('window').textContent = shown.window > 1 ? `mean of ${shown.window} points` : 'off'; };
  smoothing.value = (shown.window - 1) / 2;
  smoothing.addEventListener('input', () => {
    shown.window = 2 * Number(smoothing.value) + 1;
    tell();
    redraw();
  });
  tell();
  byId('unzoom').addEventListener('click', () => { shown.zoom = null; redraw(); });
  const listLines = () => {
    const lines = byId('lines');
    lines.replaceChildren();
    const found = all();
    byId('lines-field').hidden = found.length < 2;
    for (const group of found) {
      const text = group.runs.length > 1 ? `${group.name} (${group.runs.length} runs)` : group.name;
      const label = choice(lines, 'checkbox', '', text, !shown.hidden.includes(group.name), (on) => {
        shown.hidden = shown.hidden.filter((name) => name !== group.name);
        if (!on) shown.hidden.push(group.name);
        redraw();
      });
      const swatch = svg('svg', {viewBox: '0 0 26 10', 'aria-hidden': true});
      swatch.classList.add('swatch');
      svg('line', {x1: 0, x2: 26, y1: 5, y2: 5, stroke: color(group.index), 'stroke-width': 3, 'stroke-dasharray': dash(group.index)}, swatch);
      label.prepend(swatch);
    }
  };
  const setAll = (hidden) => {
    shown.hidden = hidden;
    listLines();
    redraw();
  };
  byId('all-lines').addEventListener('click', () => setAll([]));
  byId('no-lines').addEventListener('click', () => setAll(all().map((group) => group.name)));
  if (every.length > 1) {
    byId('by-field').hidden = false;
    const pairs = [['label', 'configuration'], ...Object.keys(fields).map((f) => [f, f]), ['run', 'nothing']];
    options(byId('by'), pairs, pairs.some(([value]) => value === shown.by) ? shown.by : 'label');
    shown.by = byId('by').value;
    byId('by').addEventListener('change', () => {
      shown.by = byId('by').value;
      setAll([]);
    });
  }
  for (const [name, values] of Object.entries(fields)) {
    byId('filters-field').hidden = false;
    const set = make('fieldset');
    set.append(make('legend', '', name));
    for (const value of values) {
      const key = `${name}=${value}`;
      choice(set, 'checkbox', '', value || 'none', !shown.without.includes(key), (on) => {
        shown.without = shown.without.filter((other) => other !== key);
        if (!on) shown.without.push(key);
        redraw();
      });
    }
    byId('filters').append(set);
  }
  listLines();
  data.panels.filter((name) => names.has(name)).forEach((name) => add(name, byId('charts')));
  if (rest.length) {
    const more = byId('more');
    more.hidden = false;
    const open = () => {
      shown.more = more.open;
      if (more.open && !byId('more-charts').children.length) rest.forEach((name) => add(name, byId('more-charts')));
      keep();
    };
    more.open = shown.more;
    more.addEventListener('toggle', open);
  }
  byId('unzoom').hidden = !shown.zoom;
  let width = 0;
  new ResizeObserver(() => {
    if (byId('charts').clientWidth === width) return;
    width = byId('charts').clientWidth;
    redraw();
  }).observe(byId('charts'));
}
