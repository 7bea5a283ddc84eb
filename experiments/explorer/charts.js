// Lines, drawn by uPlot: over the page's time, and distributions.

const wash = hex => hex + '38';
const RUN_COLOURS = ['--blue', '--orange'];

function axes(page, more) {
  const common = { stroke: () => css('--soft'), font: '12px system-ui, sans-serif',
    grid: { stroke: () => css('--line'), width: 1 }, ticks: { show: false } };
  return [{ ...common, size: 30, ...more[0] }, { ...common, size: page.gutter, gap: 5, ...more[1] }];
}

// A chart over time with the page's range; lines: {label, stroke, fill, value, dash}.
function timeChart(page, place, lines, y) {
  const { view } = page, zero = page.runs[0].zero;
  const zoomed = u => {
    if (u.select.width > 4)
      page.show(u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x'));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  };
  const moved = u => page.mark(u.cursor.left >= 0 ? u.cursor.left : null);
  const most = () => page.wide / 78;
  const options = {
    width: page.width, height: page.width < 500 ? 150 : 190, padding: [10, 12, 0, 0],
    scales: { x: { time: false, range: () => [view.from, view.to] }, y: { range: y.range } },
    axes: axes(page, [
      {
        splits: (u, _, from, to) => timeTicks(from, to, most(), zero).ticks,
        values: (u, splits) => {
          const { step } = timeTicks(view.from, view.to, most(), zero);
          const room = t => page.wide * (view.to - t) / (view.to - view.from) > 16; // else cut off
          return splits.map(t => room(t) ? instant(t, zero, step) : '');
        },
      },
      { values: (u, splits) => splits.map(y.name) },
    ]),
    cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: 'time', scales: ['x', null] },
      points: { show: false }, bind: { dblclick: () => () => page.zoom(4) } },
    hooks: { setSelect: [zoomed], setCursor: [moved] },
    series: [
      { label: 'Time', value: (u, t) => t === null ? '–' : instant(t, zero) },
      ...lines.map(line => ({ width: 1.5, points: { show: false },
        paths: uPlot.paths.stepped({ align: 1 }), ...line })),
    ],
  };
  return new uPlot(options, lines.map(() => []).concat([[]]), place);
}

// Distributions: [label, colour, values] each; bend is what x is drawn as, marks are its names.
function distributionChart(page, place, sets, { bend, unbend, marks, name }, width) {
  const shown = sets.filter(([, , values]) => values.length);
  const joined = shown.length
    ? uPlot.join(shown.map(([, , values]) => {
      const [xs, ys] = distribution(values);
      return [xs.map(bend), ys];
    })) : [[], []];
  const last = joined[0].length ? joined[0][joined[0].length - 1] : 1, first = joined[0][0] || 0;
  const low = Math.min(0, first), high = Math.max(last, low + 0.1);
  const options = {
    width, height: 230, padding: [10, 14, 0, 0],
    scales: { x: { time: false, range: [low, high] }, y: { range: [0, 100] } },
    axes: axes(page, [
      {
        splits: () => {
          const found = [], space = 58 / (width - page.gutter) * (high - low);
          for (const mark of marks) {
            const x = bend(mark);
            if (x >= low - 1e-9 && x <= high && !(x - found[found.length - 1] < space)) found.push(x);
          }
          return found;
        },
        values: (u, splits) => splits.map(x => name(unbend(x))),
      },
      { values: (u, splits) => splits.map(v => `${v} %`) },
    ]),
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    series: [
      { label: 'at most', value: (u, x) => x === null ? '–' : name(unbend(x)) },
      ...shown.map(([label, colour], k) => ({
        label, stroke: () => colour.startsWith('--') ? css(colour) : colour, width: k ? 1.5 : 2.2,
        spanGaps: true, points: { show: false }, dash: label.startsWith('last') ? [6, 4] : undefined,
        value: (u, v, s, at) => {
          if (at === null) return '–';
          let k2 = at; // where another line has a point, this one has none
          while (k2 >= 0 && u.data[s][k2] == null) k2--;
          return `${(k2 < 0 ? 0 : u.data[s][k2]).toFixed(1)} %`;
        },
      })),
    ],
  };
  return new uPlot(options, joined, place);
}

const BEND_S = 60; // ours: axes of waits are nearly linear below, logarithmic above
const WAIT_AXIS = {
  bend: s => Math.asinh(s / BEND_S),
  unbend: x => Math.round(Math.sinh(x) * BEND_S),
  marks: [0, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 4 * DAY, 14 * DAY, 60 * DAY, 365 * DAY],
  name: said,
};
const SLOWDOWN_AXIS = {
  bend: Math.log10,
  unbend: x => 10 ** x,
  marks: [1, 10, 100, 1000, 1e4, 1e5, 1e6],
  name: x => x.toLocaleString('en', { maximumSignificantDigits: 3 }),
};
const ERROR_AXIS = {
  ...WAIT_AXIS,
  marks: [...WAIT_AXIS.marks.slice(1).reverse().map(s => -s), ...WAIT_AXIS.marks],
};

// Of jobs that ran to their end.
function ranJobs(run) {
  const { start, end } = run.columns;
  if (!run.ran) {
    run.ran = [];
    for (let i = 0; i < run.jobs; i++)
      if (!Number.isNaN(start[i]) && !Number.isNaN(end[i])) run.ran.push(i);
  }
  return run.ran;
}
const waitOf = (run, i) => run.columns.start[i] - run.columns.submit[i];
const SLOWDOWN_BOUND_S = 10; // as in summary.json
function slowdownOf(run, i) {
  const ran = run.columns.end[i] - run.columns.start[i];
  return Math.max(1, (waitOf(run, i) + ran) / Math.max(ran, SLOWDOWN_BOUND_S));
}

const LENGTHS = [[MINUTE, 'below 1 min'], [10 * MINUTE, '1–10 min'], [HOUR, '10–60 min'],
  [6 * HOUR, '1–6 h'], [DAY, '6–24 h'], [Infinity, 'above 1 d']];
const FIGURES = {
  median: ['median wait', values => median(values)],
  mean: ['mean wait', values => values.reduce((sum, each) => sum + each, 0) / values.length],
  most: ['longest wait', values => values.reduce((most, each) => Math.max(most, each), 0)],
  jobs: ['jobs', values => values.length],
};

// Waits by size and length as a table with coloured cells.
function heatMap(run, place, figure, sizes) {
  const cells = new Map(), [title, of] = FIGURES[figure];
  for (const i of ranJobs(run)) {
    const length = LENGTHS.findIndex(([end]) => run.columns.end[i] - run.columns.start[i] < end);
    const key = length + LENGTHS.length * sizeClass(run, i);
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(waitOf(run, i));
  }
  const most = Math.max(1, ...[...cells.values()].map(each => each.length));
  const table = document.createElement('table'), row = () => table.appendChild(
    document.createElement('tr'));
  const add = (to, kind, text) => {
    const cell = to.appendChild(document.createElement(kind));
    cell.textContent = text;
    return cell;
  };
  const head = row();
  add(head, 'th', 'run time');
  sizes.forEach(k => add(head, 'th', k ? `${4 ** (k - 1) + 1}–${4 ** k}` : '1'));
  LENGTHS.forEach(([, name], length) => {
    const line = row();
    add(line, 'th', name);
    for (const k of sizes) {
      const values = cells.get(length + LENGTHS.length * k), cell = add(line, 'td', '');
      if (!values) continue;
      const value = of(values), jobs = `${values.length.toLocaleString('en')} jobs`;
      cell.textContent = figure === 'jobs' ? value.toLocaleString('en') : said(value);
      cell.title = `${title}; ${jobs}, median wait ${said(median(values))}`;
      const shade = figure === 'jobs' ? Math.floor(6.99 * Math.log1p(value) / Math.log1p(most))
        : waitClass(value);
      const hex = waitColours()[shade];
      cell.style.background = hex;
      cell.style.color = isPale(hex) ? '#1b1d21' : '#ffffff';
    }
  });
  table.className = 'heat';
  place.replaceChildren(table);
}
// 0: one CPU; k: up to 4^k.
const sizeClass = (run, i) =>
  Math.ceil(Math.log2(Math.max(run.columns.cpus[i], 1)) / 2 - 1e-9);
function sizeClasses(runs) {
  const found = new Set();
  for (const run of runs) for (const i of ranJobs(run)) found.add(sizeClass(run, i));
  return [...found].sort((a, b) => a - b);
}
