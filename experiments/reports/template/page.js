'use strict';
// Everything from files goes through textContent or createTextNode: model
// output is text, never markup. The page makes no requests.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function svg(tag, attributes, parent) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  if (parent) parent.append(node);
  return node;
}

/** Formats a number with four digits and a minus sign. */
function show(x) {
  if (x === null || x === undefined) return 'none';
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-3 || size >= 1e7)
    ? x.toExponential(2).replace(/\.?0+e/, 'e')
    : Number(x.toPrecision(4)).toLocaleString('en', {maximumFractionDigits: 6});
  return text.replace('-', '\u2212');
}

/** Round tick values inside [low, high], at most `most`. */
function ticks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((s) => s >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9) + step * 1e-6; i++) {
    found.push(i * step);
  }
  return found;
}

/** Formats ticks of large numbers: 1.2M instead of 1,200,000. */
function short(x) {
  for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(x) >= 10 * size || (Math.abs(x) >= size && size > 1e3)) {
      return show(x / size) + letter;
    }
  }
  return show(x);
}

// ---- curves ----

const shown = {axis: 'iteration', hidden: new Set()};
const dashes = ['', '7 3', '2 3'];
const color = (run) => `var(--line-${run % 7})`;
const dash = (run) => dashes[Math.floor(run / 7) % 3];

/** The points of one run's metric on the chosen axis, in order. */
function points(run, name) {
  const series = run.metrics[name];
  const xs = run.x[shown.axis];
  if (!series || !xs) return [];
  const gaps = new Set(series.gaps);
  const found = [];
  let broken = false;
  series.mean.forEach((y, i) => {
    if (gaps.has(i)) broken = true;
    if (y === null || xs[i] === null) return;
    const low = series.low ? series.low[i] : y;
    const high = series.high ? series.high[i] : y;
    found.push({x: xs[i], y, low, high, step: run.x.iteration[i], broken});
    broken = false;
  });
  return found;
}

class Chart {
  constructor(name, parent) {
    this.name = name;
    const figure = make('figure');
    const caption = make('figcaption', '', name);
    this.svg = svg('svg', {
      tabindex: 0, role: 'group',
      'aria-label': `${name}: arrow keys read the values`,
    });
    this.readout = make('output', 'readout');
    this.readout.setAttribute('aria-live', 'polite');
    figure.append(caption, this.svg, this.readout);
    parent.append(figure);
    this.svg.addEventListener('pointermove', (e) => this.point(e));
    this.svg.addEventListener('pointerdown', (e) => this.point(e));
    this.svg.addEventListener('pointerleave', () => this.select(null));
    this.svg.addEventListener('keydown', (e) => this.key(e));
    this.draw();
  }

  draw() {
    const width = Math.max(240, this.svg.clientWidth || 320);
    const height = 200;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    this.lines = data.curves
      .map((run, index) => ({run, index, points: points(run, this.name)}))
      .filter((line) => line.points.length && !shown.hidden.has(line.index));
    const all = this.lines.flatMap((line) => line.points);
    this.xs = [...new Set(all.map((p) => p.x))].sort((a, b) => a - b);
    this.place = -1;
    this.summary();
    if (!all.length) {
      svg('text', {x: width / 2, y: height / 2, 'text-anchor': 'middle'}, this.svg)
        .textContent = 'no finite value';
      return;
    }
    const extreme = (pick, of) => all.reduce((a, p) => pick(a, of(p)), of(all[0]));
    let [low, high] = [extreme(Math.min, (p) => p.low), extreme(Math.max, (p) => p.high)];
    if (low === high) {
      const margin = Math.abs(low) / 2 || 1;
      [low, high] = [low - margin, high + margin];
    }
    let [left, right] = [this.xs[0], this.xs[this.xs.length - 1]];
    if (left === right) [left, right] = [left - 1, right + 1];
    const room = {left: 56, right: 12, top: 8, bottom: 24};
    this.x = (x) => room.left + (x - left) / (right - left) * (width - room.left - room.right);
    this.y = (y) => height - room.bottom - (y - low) / (high - low) * (height - room.top - room.bottom);
    this.back = (px) => left + (px - room.left) / (width - room.left - room.right) * (right - left);
    for (const tick of ticks(low, high, 6)) {
      svg('line', {class: 'grid', x1: room.left, x2: width - room.right, y1: this.y(tick), y2: this.y(tick)}, this.svg);
      svg('text', {x: room.left - 6, y: this.y(tick) + 4, 'text-anchor': 'end'}, this.svg).textContent = short(tick);
    }
    for (const tick of ticks(left, right, Math.max(2, Math.floor(width / 70)))) {
      if (shown.axis === 'iteration' && tick % 1) continue;
      svg('text', {x: this.x(tick), y: height - 6, 'text-anchor': 'middle'}, this.svg).textContent = short(tick);
    }
    this.lines.forEach((line) => this.line(line));
    this.cursor = svg('line', {class: 'cursor', y1: room.top, y2: height - room.bottom, visibility: 'hidden'}, this.svg);
  }

  line({run, index, points}) {
    const at = (p, y) => `${this.x(p.x).toFixed(1)},${this.y(y).toFixed(1)}`;
    const stretches = [];
    for (const p of points) {
      if (p.broken || !stretches.length) stretches.push([]);
      stretches[stretches.length - 1].push(p);
    }
    for (const stretch of stretches) {
      if (run.metrics[this.name].low && stretch.length > 1) {
        const band = stretch.map((p) => at(p, p.high))
          .concat(stretch.slice().reverse().map((p) => at(p, p.low)));
        svg('polygon', {class: 'band', points: band.join(' '), fill: color(index)}, this.svg);
      }
      svg('polyline', {
        class: 'curve', points: stretch.map((p) => at(p, p.y)).join(' '),
        stroke: color(index), 'stroke-dasharray': dash(index),
      }, this.svg);
      if (points.length <= 30 || stretch.length === 1) {
        for (const p of stretch) {
          svg('circle', {cx: this.x(p.x), cy: this.y(p.y), r: 3, fill: color(index)}, this.svg);
        }
      }
    }
  }

  point(event) {
    if (!this.xs.length) return;
    const box = this.svg.getBoundingClientRect();
    const scale = this.svg.viewBox.baseVal.width / box.width;
    const x = this.back((event.clientX - box.left) * scale);
    let best = 0;
    this.xs.forEach((value, i) => {
      if (Math.abs(value - x) < Math.abs(this.xs[best] - x)) best = i;
    });
    this.select(best);
  }

  key(event) {
    const last = this.xs.length - 1;
    const stride = event.shiftKey ? 10 : 1;
    const moves = {
      ArrowLeft: this.place < 0 ? last : this.place - stride,
      ArrowRight: this.place + stride, Home: 0, End: last, Escape: null,
    };
    if (!(event.key in moves) || last < 0) return;
    event.preventDefault();
    const place = moves[event.key];
    this.select(place === null ? null : Math.min(last, Math.max(0, place)));
  }

  /** Shows the values at one x of all lines; null: none. */
  select(place) {
    if (!this.cursor) return;
    this.place = place === null ? -1 : place;
    this.cursor.setAttribute('visibility', place === null ? 'hidden' : 'visible');
    if (place === null) {
      this.summary();
      return;
    }
    const x = this.xs[place];
    this.cursor.setAttribute('x1', this.x(x));
    this.cursor.setAttribute('x2', this.x(x));
    const parts = this.lines.map(({run, points}) => {
      let near = points[0];
      for (const p of points) if (Math.abs(p.x - x) < Math.abs(near.x - x)) near = p;
      const range = near.low !== near.high ? ` [${show(near.low)}, ${show(near.high)}]` : '';
      const name = data.curves.length > 1 ? `${run.label}: ` : '';
      const step = shown.axis === 'iteration' ? '' : ` (iteration ${show(near.step)})`;
      return `${name}${show(near.y)}${range}${step}`;
    });
    this.readout.textContent = `${data.axes[shown.axis]} ${show(x)}: ${parts.join('; ')}`;
  }

  summary() {
    const bad = data.curves.reduce((n, run) => n + (run.metrics[this.name]?.bad || 0), 0);
    this.readout.textContent = bad ? `${bad.toLocaleString('en')} values are not finite: gaps` : '';
  }
}

function startCurves() {
  if (!byId('charts')) return;
  const names = new Set(data.curves.flatMap((run) => Object.keys(run.metrics)));
  const charts = data.panels.filter((name) => names.has(name))
    .map((name) => new Chart(name, byId('charts')));
  const rest = [...names].filter((name) => !data.panels.includes(name)).sort();
  const redraw = () => charts.forEach((chart) => chart.draw());
  const choice = (parent, type, name, text, checked, changed) => {
    const label = make('label');
    const input = make('input');
    Object.assign(input, {type, name, checked});
    input.addEventListener('change', () => { changed(input.checked); redraw(); });
    label.append(input, text);
    parent.append(label);
    return label;
  };
  byId('curve-controls').hidden = false;
  for (const [axis, text] of Object.entries(data.axes)) {
    if (!data.curves.some((run) => run.x[axis])) continue;
    choice(byId('axes'), 'radio', 'axis', text, axis === shown.axis, () => { shown.axis = axis; });
  }
  if (data.curves.length > 1) {
    byId('lines-field').hidden = false;
    data.curves.forEach((run, index) => {
      const text = run.seeds > 1 ? `${run.label} (${run.seeds} seeds)` : run.label;
      const label = choice(byId('lines'), 'checkbox', '', text, true, (on) => {
        if (on) shown.hidden.delete(index); else shown.hidden.add(index);
      });
      const swatch = svg('svg', {viewBox: '0 0 26 10', 'aria-hidden': true});
      swatch.classList.add('swatch');
      svg('line', {x1: 0, x2: 26, y1: 5, y2: 5, stroke: color(index), 'stroke-width': 3, 'stroke-dasharray': dash(index)}, swatch);
      label.prepend(swatch);
    });
  }
  if (rest.length) {
    byId('more').hidden = false;
    byId('more').addEventListener('toggle', () => {
      if (!byId('more').open || byId('more-charts').children.length) return;
      for (const name of rest) charts.push(new Chart(name, byId('more-charts')));
    });
  }
  let width = 0;
  new ResizeObserver(() => {
    if (byId('charts').clientWidth === width) return;
    width = byId('charts').clientWidth;
    redraw();
  }).observe(byId('charts'));
}

// ---- table ----

function startTables() {
  for (const table of document.querySelectorAll('table.sortable')) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make('button', '', head.textContent);
      button.type = 'button';
      head.replaceChildren(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'descending';
        for (const cell of head.parentNode.cells) cell.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', down ? 'ascending' : 'descending');
        const key = (row) => {
          const text = row.cells[column].textContent;
          const number = parseFloat(text.replace(/^\[/, ''));
          return Number.isNaN(number) ? text : number;
        };
        const order = (a, b) => {
          const [x, y] = [key(a), key(b)];
          // Text, such as `failed`, is last in both directions.
          if (typeof x !== typeof y) return typeof x === 'number' ? -1 : 1;
          const sign = x < y ? -1 : x > y ? 1 : 0;
          return down ? sign : -sign;
        };
        body.append(...[...body.rows].sort(order));
      });
    });
  }
}

// ---- rollouts ----

const PAGE = 20;
const state = {run: 0, rows: [], visible: 0, scale: 1, signed: false};

/** 99% quantile of a field's magnitude over a run; larger values saturate. */
function scaleOf(rows, field) {
  const sizes = [];
  let signed = false;
  for (const row of rows) {
    for (const x of row.tokens[field] || []) {
      if (x === null) continue;
      sizes.push(Math.abs(x));
      signed ||= x < 0;
    }
  }
  sizes.sort((a, b) => a - b);
  const high = sizes[Math.floor(0.99 * (sizes.length - 1))];
  return {scale: high || sizes[sizes.length - 1] || 1, signed};
}

const isFlag = (field) => !['entropy', 'advantage', 'logp', 'logp_gap'].includes(field);

function paint(node, x) {
  if (x === null || x === undefined || x === 0) return;
  node.classList.add(x > 0 ? 'positive' : 'negative');
  if (isFlag(state.field)) node.classList.add('flag');
  // The square root keeps small values visible beside large ones.
  node.style.setProperty('--v', Math.sqrt(Math.min(1, Math.abs(x) / state.scale)).toFixed(3));
}

const fieldNames = {
  logp: 'log-prob', logp_gap: 'log-prob gap, sampler minus trainer',
  clip: 'clipped by the ratio limit', value_clip: 'clipped by the value limit', dropped: 'dropped from the loss',
};
const fieldName = (field) => fieldNames[field] || field.replaceAll('_', ' ');

function describe(row, i) {
  const text = row.tokens.text[i];
  const values = Object.keys(row.tokens).filter((f) => f !== 'text')
    .map((f) => `${fieldName(f)} ${show(row.tokens[f][i])}`);
  return `${text === '' ? 'special token' : JSON.stringify(text)}, ${i + 1} of ${row.tokens.text.length}: ${values.join('; ')}`;
}

function tokenNode(row, i) {
  const text = row.tokens.text[i];
  const end = i === row.tokens.text.length - 1 ? 'end' : '\u00b7';
  const node = make('span', text === '' ? 'token special' : 'token', text === '' ? end : text.replace(/\n/g, '\u21b5\n'));
  node.tabIndex = i === 0 ? 0 : -1;
  node.dataset.i = i;
  if (row.tokens.trained && !row.tokens.trained[i]) node.classList.add('untrained');
  if (state.field) paint(node, (row.tokens[state.field] || [])[i]);
  return node;
}

/** A response, with its prompt unless the one above has the same. */
function responseNode(row, above) {
  const run = data.rollouts[state.run];
  const node = make('article', 'response');
  const head = make('h3', '', `iteration ${row.step.toLocaleString('en')}, prompt ${row.id}, sample ${row.sample} `);
  const good = row.reward !== null && row.reward > 0;
  head.append(make('span', `tag ${good ? 'good' : 'bad'}`, row.reward === null ? 'no reward' : `reward ${show(row.reward)}`));
  if (row.weight === 0) head.append(make('span', 'tag', 'not trained'));
  if (row.answer !== null) head.append(`answer ${row.answer}`);
  node.append(head);
  if (!above || above.step !== row.step || above.prompt !== row.prompt) {
    node.append(make('p', 'prompt', run.prompts[row.prompt]));
  }
  const body = make('p', 'tokens');
  node.append(body);
  if (row.tokens.text) {
    const readout = make('output', 'readout');
    readout.setAttribute('aria-live', 'polite');
    body.setAttribute('role', 'group');
    body.setAttribute('aria-label', 'Response: arrow keys move from token to token');
    row.tokens.text.forEach((_, i) => body.append(tokenNode(row, i)));
    const tell = (target) => {
      if (target.dataset?.i) readout.textContent = describe(row, Number(target.dataset.i));
    };
    body.addEventListener('pointerover', (e) => tell(e.target));
    body.addEventListener('focusin', (e) => tell(e.target));
    body.addEventListener('click', (e) => { if (e.target.dataset.i) e.target.focus(); });
    body.addEventListener('keydown', (e) => {
      const last = body.children.length - 1;
      const here = Number(e.target.dataset.i);
      const next = {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: last}[e.key];
      if (next === undefined || next < 0 || next > last) return;
      e.preventDefault();
      e.target.tabIndex = -1;
      body.children[next].tabIndex = 0;
      body.children[next].focus();
    });
    node.append(readout);
  } else {
    body.textContent = row.response === '' ? '(empty response)' : row.response;
  }
  if (row.error !== null) node.append(make('p', 'hint', `error: ${row.error}`));
  return node;
}

function filtered() {
  const run = data.rollouts[state.run];
  const step = byId('step').value;
  const low = byId('low').value === '' ? null : Number(byId('low').value);
  const high = byId('high').value === '' ? null : Number(byId('high').value);
  const text = byId('search').value.toLowerCase();
  return run.rows.filter((row) => {
    if (step !== 'all' && row.step !== Number(step)) return false;
    if ((low !== null || high !== null) && row.reward === null) return false;
    if (low !== null && row.reward < low) return false;
    if (high !== null && row.reward > high) return false;
    if (!text) return true;
    const all = [run.prompts[row.prompt], row.response, row.answer, row.error];
    return all.some((s) => s !== null && s.toLowerCase().includes(text));
  });
}

function more() {
  const next = state.rows.slice(state.visible, state.visible + PAGE);
  byId('responses').append(...next.map((row, i) => responseNode(row, state.rows[state.visible + i - 1])));
  state.visible += next.length;
  const left = state.rows.length - state.visible;
  byId('load').hidden = left <= 0;
  byId('load').textContent = `Show ${Math.min(PAGE, left)} more of ${left.toLocaleString('en')}`;
}

function refresh() {
  const run = data.rollouts[state.run];
  state.field = byId('field').value;
  Object.assign(state, scaleOf(run.rows, state.field));
  state.rows = filtered();
  state.visible = 0;
  byId('responses').replaceChildren();
  const count = state.rows.length.toLocaleString('en');
  const what = state.rows.length === 1 ? 'response' : 'responses';
  byId('count').textContent = !run.rows.length
    ? 'No rollouts: this run wrote none (guards.log_rollouts says how many prompts are logged).'
    : `${count} ${what} of ${run.rows.length.toLocaleString('en')}`;
  legend(run);
  more();
  const place = byId('step').selectedIndex;
  byId('previous').disabled = place <= 0;
  byId('next').disabled = place >= byId('step').options.length - 1;
}

/** The colour scale in numbers. */
function legend(run) {
  const scale = byId('scale');
  scale.replaceChildren();
  scale.hidden = !state.field;
  if (scale.hidden) return;
  const flag = isFlag(state.field);
  const marks = flag ? [0, 1] : state.signed ? [-1, -0.5, 0, 0.5, 1] : [0, 0.5, 1];
  scale.append(`${fieldName(state.field)}: `);
  for (const mark of marks) {
    const x = mark * state.scale;
    const node = make('span', 'token', flag ? ['no', 'yes'][mark] : show(x));
    paint(node, x);
    scale.append(node, ' ');
  }
  if (!run.rows.some((row) => row.tokens[state.field])) scale.append('(no values in this run)');
}

/** Fills a select; keeps the previous choice if it still exists. */
function options(select, pairs, first) {
  const before = select.options.length ? select.value : first;
  select.replaceChildren();
  for (const [value, text] of pairs) select.append(new Option(text, value));
  select.value = pairs.some(([value]) => value === before) ? before : first;
}

function chooseRun() {
  state.run = Number(byId('run').value || 0);
  const run = data.rollouts[state.run];
  const steps = run.steps.map((step) => [String(step), step.toLocaleString('en')]);
  const last = steps.length ? steps[steps.length - 1][0] : 'all';
  options(byId('step'), [['all', 'all'], ...steps], last);
  const fields = new Set();
  for (const row of run.rows) Object.keys(row.tokens).forEach((f) => fields.add(f));
  ['text', 'trained'].forEach((f) => fields.delete(f));
  const first = ['entropy', 'advantage', 'logp_gap', 'clip'].filter((f) => fields.has(f));
  const order = [...first, ...[...fields].filter((f) => !first.includes(f)).sort()];
  const pairs = [...order.map((f) => [f, fieldName(f)]), ['', 'nothing']];
  options(byId('field'), pairs, pairs[0][0]);
  refresh();
}

function startRollouts() {
  if (!byId('rollout-controls') || !data.rollouts.length) return;
  byId('rollout-controls').hidden = !data.rollouts.some((run) => run.rows.length);
  byId('run-field').hidden = data.rollouts.length < 2;
  options(byId('run'), data.rollouts.map((run, i) => [String(i), run.name]), '0');
  byId('run').addEventListener('change', chooseRun);
  for (const id of ['step', 'field', 'low', 'high']) byId(id).addEventListener('change', refresh);
  let waiting = null;
  byId('search').addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 200);
  });
  const move = (by) => { byId('step').selectedIndex += by; refresh(); };
  byId('previous').addEventListener('click', () => move(-1));
  byId('next').addEventListener('click', () => move(1));
  byId('load').addEventListener('click', more);
  chooseRun();
}

startCurves();
startTables();
startRollouts();
