// The rollouts: responses of a group side by side, tokens coloured by a value.

const PAGE = 12;  // prompts
const state = {run: 0, groups: [], visible: 0, scale: 1, signed: false, open: false};

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

/** `84`, or `84, written 48` if the task writes it otherwise. */
function reading(row, name) {
  const read = row[`${name}_read`];
  return read === undefined ? row[name] : `${read}, written ${row[name]}`;
}

/** The samples of one prompt, side by side. */
function groupNode(rows) {
  const [first] = rows;
  const node = make('article', 'group');
  const known = rows.map((row) => row.reward).filter((x) => x !== null);
  const mean = known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  const head = make('h3', '', `iteration ${first.step.toLocaleString('en')}, prompt ${first.id}: `);
  head.append(`${rows.length} ${rows.length === 1 ? 'sample' : 'samples'}, mean reward ${show(mean)}`);
  if (first.answer !== null) head.append(`, answer ${reading(first, 'answer')}`);
  node.append(head, make('p', 'prompt', data.rollouts[state.run].prompts[first.prompt]));
  const samples = make('div', 'samples');
  samples.append(...rows.map(responseNode));
  node.append(samples);
  return node;
}

/** A response with its values by token. */
function responseNode(row) {
  const node = make('section', 'response');
  const head = make('h4', '', `sample ${row.sample} `);
  const good = row.reward !== null && row.reward > 0;
  head.append(make('span', `tag ${good ? 'good' : 'bad'}`, row.reward === null ? 'no reward' : `reward ${show(row.reward)}`));
  if (row.weight === 0) head.append(make('span', 'tag', 'not trained'));
  if (row.response_read !== undefined) head.append(`reads ${row.response_read}`);
  node.append(head);
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
  if (row.turns) node.append(turnsNode(row));
  if (row.error !== null) node.append(make('p', 'hint', `error: ${row.error}`));
  return node;
}

/** `2 calls`, `1 call`. */
const counted = (n, what) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;

/** The sum of each reward component over the turns of an episode. */
function rewardParts(turns) {
  const parts = {};
  for (const turn of turns) {
    for (const [name, x] of Object.entries(turn.rewards)) parts[name] = (parts[name] || 0) + (x || 0);
  }
  return parts;
}

const partsText = (parts) => Object.entries(parts).map(([name, x]) => `${name} ${show(x)}`).join(', ');

/** A text with a heading that says whose it is. */
function saidNode(kind, who, text) {
  const node = make('div', `said ${kind}`);
  node.append(make('span', 'who', who), make('p', '', text === '' ? '(nothing)' : text));
  return node;
}

/** One panel for an episode: turns, calls and reward parts, then turn by turn. */
function turnsNode(row) {
  const node = make('details', 'turns');
  node.open = state.open;
  const calls = row.turns.reduce((sum, turn) => sum + turn.calls, 0);
  const facts = [counted(row.turns.length, 'turn'), counted(calls, 'call'), `end: ${row.end}`];
  const parts = partsText(rewardParts(row.turns));
  node.append(make('summary', '', `${facts.join(', ')}${parts ? `; ${parts}` : ''}`));
  const list = make('ol', '');
  for (const turn of row.turns) {
    const item = make('li', '');
    item.append(saidNode('environment', 'environment', turn.observation), saidNode('policy', 'policy', turn.action));
    const notes = [];
    if (turn.understood !== null) notes.push(`understood as ${JSON.stringify(turn.understood)}`);
    if (turn.calls) notes.push(counted(turn.calls, 'call'));
    notes.push(partsText(turn.rewards) || 'no reward');
    item.append(make('p', 'hint', notes.join('; ')));
    list.append(item);
  }
  node.append(list);
  if (row.last !== '') node.append(saidNode('environment', 'environment, at the end', row.last));
  return node;
}

/** What is shown only where a run has episodes: their legend, and a button. */
function episodeControls(run) {
  const some = run.rows.some((row) => row.turns);
  byId('episodes').hidden = !some;
  byId('open-all').textContent = state.open ? 'Close all' : 'Open all';
}

function openAll() {
  state.open = !state.open;
  for (const node of document.querySelectorAll('details.turns')) node.open = state.open;
  episodeControls(data.rollouts[state.run]);
}

/** Rows of one iteration and prompt together, in their order. */
function sampleGroups(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = `${row.step} ${row.id} ${row.prompt}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return [...found.values()];
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
    const all = [run.prompts[row.prompt], row.response, row.answer, row.error, row.answer_read, row.response_read];
    return all.some((s) => s && s.toLowerCase().includes(text));
  });
}

function more() {
  const next = state.groups.slice(state.visible, state.visible + PAGE);
  byId('responses').append(...next.map(groupNode));
  state.visible += next.length;
  const left = state.groups.length - state.visible;
  byId('load').hidden = left <= 0;
  byId('load').textContent = `Show ${Math.min(PAGE, left)} more of ${left.toLocaleString('en')} prompts`;
}

function refresh() {
  const run = data.rollouts[state.run];
  state.field = byId('field').value;
  Object.assign(state, scaleOf(run.rows, state.field));
  const rows = filtered();
  state.groups = sampleGroups(rows);
  state.visible = 0;
  for (const id of CHOICES) shown.rollouts[id] = byId(id).value;
  shown.rollouts.last = state.last;
  keep();
  byId('responses').replaceChildren();
  const count = rows.length.toLocaleString('en');
  const what = rows.length === 1 ? 'response' : 'responses';
  byId('count').textContent = !run.rows.length
    ? 'No rollouts: this run wrote none (guards.log_rollouts says how many prompts are logged).'
    : `${count} ${what} of ${run.rows.length.toLocaleString('en')}`;
  legend(run);
  episodeControls(run);
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

const CHOICES = ['run', 'step', 'field', 'low', 'high', 'search'];

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
  // While a run goes on, the newest iteration stays chosen if it was.
  const followed = byId('step').value === state.last || !byId('step').options.length;
  options(byId('step'), [['all', 'all'], ...steps], last);
  if (followed) byId('step').value = last;
  state.last = last;
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
  byId('open-all').addEventListener('click', openAll);
  const before = {...shown.rollouts};
  if (before.run && Number(before.run) < data.rollouts.length) byId('run').value = before.run;
  chooseRun();
  const wanted = before.step === before.last ? {...before, step: undefined} : before;
  for (const id of CHOICES.slice(1)) {
    const input = byId(id);
    const known = !input.options || [...input.options].some((option) => option.value === wanted[id]);
    if (wanted[id] !== undefined && known) input.value = wanted[id];
  }
  refresh();
}

restore();
startCurves();
startTables();
startRollouts();
startReload();
