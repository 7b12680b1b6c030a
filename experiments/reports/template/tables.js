// Tables: a click on the head of a column sorts by it, a text leaves some rows.

/** The number a cell begins with, or its text. */
function cellValue(text) {
  const number = parseFloat(text.replace(/^\[/, '').replace('\u2212', '-'));
  return Number.isNaN(number) ? text : number;
}

/** Orders cells; text, such as `failed`, is last in both directions. */
function cellOrder(a, b, descending) {
  const [x, y] = [cellValue(a), cellValue(b)];
  if (typeof x !== typeof y) return typeof x === 'number' ? -1 : 1;
  const sign = x < y ? -1 : x > y ? 1 : 0;
  return descending ? -sign : sign;
}

function startTables() {
  for (const table of document.querySelectorAll('table.sortable')) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make('button', '', head.textContent);
      button.type = 'button';
      head.replaceChildren(button);
      button.addEventListener('click', () => {
        const descending = head.getAttribute('aria-sort') !== 'descending';
        for (const cell of head.parentNode.cells) cell.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
        const text = (row) => row.cells[column].textContent;
        body.append(...[...body.rows].sort((a, b) => cellOrder(text(a), text(b), descending)));
      });
    });
    if (body.rows.length < 10) continue;
    const label = make('label', 'filter', 'Rows with ');
    const input = make('input');
    Object.assign(input, {type: 'search', placeholder: 'text of the first column'});
    input.addEventListener('input', () => {
      const text = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(text);
    });
    label.append(input);
    table.parentNode.before(label);
  }
}
