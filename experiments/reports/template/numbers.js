'use strict';
// Numbers of a page: formats, ticks, joined runs, smoothing, ranges of axes.
// Nothing here reads the page, so that tests run it alone.

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

/** Ticks of a logarithmic axis: powers of ten, or 1, 2, 5 times powers. */
function logTicks(low, high, most) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const apart = Math.max(1, Math.ceil((last - first) / most));
  const found = [];
  for (let power = first; power <= last; power += apart) {
    for (const k of last - first <= 2 ? [1, 2, 5] : [1]) {
      const tick = k * 10 ** power;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) found.push(tick);
    }
  }
  return found.length > 1 ? found : ticks(low, high, most);
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

/**
 * The points of one metric of a group of runs, in order.
 *
 * runs: curves of the group; steps: iterations of their points; axis: of x.
 * Of one run low and high are its own, of two their values, of more the 95%
 * interval of the mean by Student's t (quantiles, by degrees of freedom).
 * `broken`: a point before it has no finite value.
 */
function joined(runs, name, axis, steps, quantiles) {
  const having = runs.filter((run) => run.metrics[name]);
  const found = [];
  let broken = false;
  const gaps = having.map((run) => new Set(run.metrics[name].gaps));
  for (let i = 0; i < steps.length; i++) {
    const ys = [];
    const xs = [];
    let alone = null;
    having.forEach((run) => {
      const y = run.metrics[name].mean[i];
      const x = axis === 'iteration' ? steps[i] : run.x[axis]?.[i];
      if (y === null || x === null || x === undefined) return;
      ys.push(y);
      xs.push(x);
      alone = run.metrics[name];
    });
    if (!ys.length) {
      broken ||= gaps.some((gap) => gap.has(i));
      continue;
    }
    const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
    const y = mean(ys);
    let [low, high] = [Math.min(...ys), Math.max(...ys)];
    if (having.length === 1 && alone.low) {
      [low, high] = [alone.low[i], alone.high[i]];
    } else if (ys.length > 2) {
      const squares = ys.reduce((sum, value) => sum + (value - y) ** 2, 0);
      const error = Math.sqrt(squares / (ys.length - 1) / ys.length);
      const half = quantiles[ys.length - 1] * error;
      [low, high] = [y - half, y + half];
    }
    found.push({x: mean(xs), y, low, high, step: steps[i], count: ys.length, broken});
    broken = false;
  }
  return found;
}

/** Points whose values are means of `window` neighbours, narrower at the ends. */
function smooth(points, window) {
  if (window <= 1) return points;
  const half = Math.floor(window / 2);
  const field = (name) => {
    const sums = [0];
    for (const p of points) sums.push(sums[sums.length - 1] + p[name]);
    return (from, to) => (sums[to] - sums[from]) / (to - from);
  };
  const [y, low, high] = [field('y'), field('low'), field('high')];
  return points.map((p, i) => {
    const from = Math.max(0, i - half);
    const to = Math.min(points.length, i + half + 1);
    return {...p, y: y(from, to), low: low(from, to), high: high(from, to)};
  });
}

/**
 * Range of the vertical axis of several lines: {low, high, cut}.
 *
 * Medians of five neighbours follow a curve and not its outliers. What lies
 * further from their range than its size is cut. Of lines with fewer than 20
 * points, such as evaluations, nothing is.
 */
function range(lines, robust) {
  const all = lines.flat();
  const most = (pick, of) => all.reduce((a, p) => pick(a, of(p)), of(all[0]));
  let [low, high] = [most(Math.min, (p) => p.low), most(Math.max, (p) => p.high)];
  const medians = lines.flatMap((line) => line.map((p, i) => {
    if (line.length < 20) return p.y;
    const near = line.slice(Math.max(0, i - 2), i + 3).map((q) => q.y).sort((a, b) => a - b);
    return near[Math.floor(near.length / 2)];
  }));
  const least = (values) => values.reduce((a, b) => Math.min(a, b));
  const greatest = (values) => values.reduce((a, b) => Math.max(a, b));
  const [from, to] = [least(medians), greatest(medians)];
  const size = to - from;
  let cut = false;
  if (robust && size > 0) {
    const near = (y) => y >= from - size && y <= to + size;
    const ys = all.map((p) => p.y);
    cut = !ys.every(near);
    const inside = ys.filter(near);
    // Bands are cut as far out as values are, and without a mark.
    low = Math.max(low, cut ? least(inside) : from - size);
    high = Math.min(high, cut ? greatest(inside) : to + size);
  }
  if (low === high) {
    const margin = Math.abs(low) / 2 || 1;
    [low, high] = [low - margin, high + margin];
  }
  return {low, high, cut};
}
