// The data of the page and what the reader has chosen, which survives a reload.
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

const shown = {
  axis: 'iteration', log: false, robust: true, window: 1, by: 'label', zoom: null,
  hidden: [],  // names of groups
  without: [],  // 'field=value' of runs that are filtered out
  more: false, live: true, rollouts: {},
};

const storageKey = `report ${document.title}`;

function restore() {
  try {
    Object.assign(shown, JSON.parse(sessionStorage.getItem(storageKey) || '{}'));
  } catch (error) { /* no storage: the page starts afresh */ }
}

function keep() {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify(shown));
  } catch (error) { /* as above */ }
}

/** A labelled input; changed(input) is called when it changes. */
function choice(parent, type, name, text, checked, changed) {
  const label = make('label');
  const input = make('input');
  Object.assign(input, {type, name, checked});
  input.addEventListener('change', () => changed(input.checked));
  label.append(input, text);
  parent.append(label);
  return label;
}

function startReload() {
  if (!data.reload) return;
  byId('live').hidden = false;
  choice(byId('live'), 'checkbox', '', `load again every ${data.reload} seconds`, shown.live, (on) => {
    shown.live = on;
    keep();
  });
  setInterval(() => {
    if (!shown.live) return;
    keep();
    location.reload();
  }, data.reload * 1000);
}
