// One chart: the lines of a metric, their bands, and a cursor that reads them.

const dashes = ['', '7 3', '2 3'];
const color = (index) => `var(--line-${index % 7})`;
const dash = (index) => dashes[Math.floor(index / 7) % 3];
const HEIGHT = 200;
const ROOM = {left: 56, right: 12, top: 8, bottom: 24};

class Chart {
  /** groups(): [{name, index, runs}] to draw; redraw(): draws all charts. */
  constructor(name, parent, groups, redraw) {
    Object.assign(this, {name, groups, redraw, drag: null});
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
    this.svg.addEventListener('pointermove', (e) => this.move(e));
    this.svg.addEventListener('pointerdown', (e) => this.press(e));
    this.svg.addEventListener('pointerup', (e) => this.release(e));
    this.svg.addEventListener('pointerleave', () => this.leave());
    this.svg.addEventListener('dblclick', () => this.zoom(null));
    this.svg.addEventListener('keydown', (e) => this.key(e));
    this.draw();
  }

  /** The points of a group in the stretch that is zoomed in. */
  points(group) {
    let found = joined(group.runs, this.name, shown.axis, data.curves.steps, data.curves.quantiles);
    if (shown.log) found = found.filter((p) => p.y > 0);
    // Few points, such as evaluations, are not smoothed.
    const smoothed = found.length > 30 ? smooth(found, shown.window) : found;
    const inside = (p) => !shown.zoom || (p.x >= shown.zoom[0] && p.x <= shown.zoom[1]);
    return {raw: found.filter(inside), points: smoothed.filter(inside)};
  }

  draw() {
    const width = Math.max(240, this.svg.clientWidth || 320);
    this.width = width;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren();
    this.lines = this.groups()
      .map((group) => ({group, ...this.points(group)}))
      .filter((line) => line.points.length);
    const all = this.lines.flatMap((line) => line.points);
    this.xs = [...new Set(all.map((p) => p.x))].sort((a, b) => a - b);
    this.place = -1;
    this.outside = 0;
    this.cursor = null;
    if (!all.length) {
      this.summary();
      svg('text', {x: width / 2, y: HEIGHT / 2, 'text-anchor': 'middle'}, this.svg)
        .textContent = shown.log ? 'no positive value' : 'no finite value';
      return;
    }
    this.scales(width);
    this.clip ||= `clip-${document.querySelectorAll('clipPath').length}`;
    const box = {x: ROOM.left, y: ROOM.top, width: width - ROOM.left - ROOM.right, height: HEIGHT - ROOM.top - ROOM.bottom};
    svg('rect', box, svg('clipPath', {id: this.clip}, this.svg));
    this.area = svg('g', {'clip-path': `url(#${this.clip})`}, this.svg);
    this.lines.forEach((line) => this.line(line));
    this.summary();
    this.selection = svg('rect', {class: 'selection', y: box.y, height: box.height, visibility: 'hidden'}, this.svg);
    this.cursor = svg('line', {class: 'cursor', y1: ROOM.top, y2: HEIGHT - ROOM.bottom, visibility: 'hidden'}, this.svg);
  }

  /** Maps from values to pixels, and the ticks. */
  scales(width) {
    const across = width - ROOM.left - ROOM.right;
    const up = HEIGHT - ROOM.top - ROOM.bottom;
    let {low, high} = range(this.lines.map((line) => line.points), shown.robust && !shown.log);
    if (shown.log) {
      const positive = this.lines.flatMap((line) => line.points.map((p) => p.y));
      low = Math.max(low, positive.reduce((a, b) => Math.min(a, b)));
      if (low >= high) [low, high] = [low / 2, low * 2];
    }
    let [left, right] = shown.zoom || [this.xs[0], this.xs[this.xs.length - 1]];
    if (left === right) [left, right] = [left - 1, right + 1];
    const scale = shown.log ? Math.log10 : (y) => y;
    const [bottom, top] = [scale(low), scale(high)];
    this.limits = {low, high};
    this.x = (x) => ROOM.left + (x - left) / (right - left) * across;
    this.y = (y) => HEIGHT - ROOM.bottom - (scale(Math.max(y, shown.log ? low : y)) - bottom) / (top - bottom) * up;
    this.back = (px) => left + (px - ROOM.left) / across * (right - left);
    for (const tick of (shown.log ? logTicks : ticks)(low, high, 6)) {
      svg('line', {class: 'grid', x1: ROOM.left, x2: width - ROOM.right, y1: this.y(tick), y2: this.y(tick)}, this.svg);
      svg('text', {x: ROOM.left - 6, y: this.y(tick) + 4, 'text-anchor': 'end'}, this.svg).textContent = short(tick);
    }
    for (const tick of ticks(left, right, Math.max(2, Math.floor(width / 70)))) {
      if (shown.axis === 'iteration' && tick % 1) continue;
      svg('text', {x: this.x(tick), y: HEIGHT - 6, 'text-anchor': 'middle'}, this.svg).textContent = short(tick);
    }
  }

  line({group, raw, points}) {
    const at = (p, y) => `${this.x(p.x).toFixed(1)},${this.y(y).toFixed(1)}`;
    const parts = (all) => {
      const found = [];
      for (const p of all) {
        if (p.broken || !found.length) found.push([]);
        found[found.length - 1].push(p);
      }
      return found;
    };
    const path = (all, more) => svg('polyline', {
      class: 'curve', points: all.map((p) => at(p, p.y)).join(' '),
      stroke: color(group.index), 'stroke-dasharray': dash(group.index), ...more,
    }, this.area);
    if (raw.length && points.length === raw.length && raw.some((p, i) => p.y !== points[i].y)) {
      parts(raw).forEach((part) => path(part, {class: 'curve raw'}));
    }
    for (const part of parts(points)) {
      if (part.length > 1 && part.some((p) => p.low !== p.high)) {
        const band = part.map((p) => at(p, p.high))
          .concat(part.slice().reverse().map((p) => at(p, p.low)));
        svg('polygon', {class: 'band', points: band.join(' '), fill: color(group.index)}, this.area);
      }
      path(part, {});
      for (const p of part) {
        if (p.y < this.limits.low || p.y > this.limits.high) this.mark(p, group.index);
        else if (points.length <= 30 || part.length === 1) {
          svg('circle', {cx: this.x(p.x), cy: this.y(p.y), r: 3, fill: color(group.index)}, this.svg);
        }
      }
    }
  }

  /** A triangle at the edge: a value beyond the axis. */
  mark(p, index) {
    this.outside += 1;
    const [x, above] = [this.x(p.x), p.y > this.limits.high];
    const y = above ? ROOM.top : HEIGHT - ROOM.bottom;
    const far = above ? y + 8 : y - 8;
    svg('polygon', {class: 'mark', points: `${x},${y} ${x - 5},${far} ${x + 5},${far}`, fill: color(index)}, this.svg);
  }

  pixel(event) {
    const box = this.svg.getBoundingClientRect();
    return (event.clientX - box.left) * this.width / (box.width || this.width);
  }

  press(event) {
    if (!this.cursor) return;
    this.drag = this.pixel(event);
    this.move(event);
  }

  move(event) {
    if (!this.cursor || !this.xs.length) return;
    const here = this.pixel(event);
    if (this.drag !== null && Math.abs(here - this.drag) > 4) {
      this.selection.setAttribute('x', Math.min(here, this.drag));
      this.selection.setAttribute('width', Math.abs(here - this.drag));
      this.selection.setAttribute('visibility', 'visible');
    }
    const x = this.back(here);
    let best = 0;
    this.xs.forEach((value, i) => {
      if (Math.abs(value - x) < Math.abs(this.xs[best] - x)) best = i;
    });
    this.select(best);
  }

  release(event) {
    if (this.drag === null || !this.cursor) return;
    const [from, to] = [this.drag, this.pixel(event)].sort((a, b) => a - b);
    this.drag = null;
    this.selection.setAttribute('visibility', 'hidden');
    if (to - from > 4) this.zoom([this.back(from), this.back(to)]);
  }

  leave() {
    this.drag = null;
    if (this.cursor) this.selection.setAttribute('visibility', 'hidden');
    this.select(null);
  }

  /** All charts show one stretch of the horizontal axis; null: all of it. */
  zoom(stretch) {
    shown.zoom = stretch;
    this.redraw();
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
    const parts = this.lines.map(({group, points}) => {
      let near = points[0];
      for (const p of points) if (Math.abs(p.x - x) < Math.abs(near.x - x)) near = p;
      const between = near.low !== near.high ? ` [${show(near.low)}, ${show(near.high)}]` : '';
      const name = this.lines.length > 1 ? `${group.name}: ` : '';
      const step = shown.axis === 'iteration' ? '' : ` (iteration ${show(near.step)})`;
      return `${name}${show(near.y)}${between}${step}`;
    });
    this.readout.textContent = `${data.axes[shown.axis]} ${show(x)}: ${parts.join('; ')}`;
  }

  summary() {
    const runs = this.groups().flatMap((group) => group.runs);
    const bad = runs.reduce((n, run) => n + (run.metrics[this.name]?.bad || 0), 0);
    const notes = [];
    if (bad) notes.push(`${bad.toLocaleString('en')} values are not finite: gaps`);
    if (this.outside) notes.push(`${this.outside} beyond the axis`);
    this.readout.textContent = notes.join('; ');
  }
}
