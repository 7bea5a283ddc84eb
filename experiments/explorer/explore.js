// The page: what was chosen, what is on show, and what follows from either.

const el = id => document.getElementById(id);
const make = (tag, css = '', text = '') => {
  const made = document.createElement(tag);
  made.className = css;
  made.textContent = text;
  return made;
};

// Name, how many in line k, colour; the lowest first.
const STATES_SHOWN = [
  ['with jobs', (s, k) => s.allocated[k], '--blue'],
  ['idle', (s, k) => s.total - s.allocated[k] - s.down[k] - s.drained[k] - s.off[k], '--faint'],
  ['powered down', (s, k) => s.off[k], '--violet'],
  ['drained', (s, k) => s.drained[k], '--orange'],
  ['down', (s, k) => s.down[k], '--ink'],
];

class Page {
  constructor(runs) {
    this.runs = runs;
    runs.forEach(run => { finish(run); queueSteps(run); });
    // One calendar for all, or none.
    if (runs.some(run => run.zero !== runs[0].zero)) runs.forEach(run => { run.zero = null; });
    this.whole = { from: Math.min(...runs.map(run => run.first)),
      to: Math.max(...runs.map(run => run.last)) };
    this.view = { ...this.whole };
    // The first of which there are several; where jobs are all alike, how long they waited.
    const several = field => ranked(runs, field).length > 1;
    this.field = ['user', 'account', 'qos', 'partition'].find(several) || 'wait';
    el('colour').value = this.field;
    this.only = '';
    this.charts = [];
    this.gantts = runs.map(run => this.makeGantt(run));
    const closest = Math.max(...runs.map(run => run.closest));
    if (closest > 1) el('coarse').textContent = `Nodes of a job with fewer than ${closest} others ` +
      'between them are drawn as neighbours, as the page would be too large otherwise.';
    this.wire();
    this.layout();
  }

  makeGantt(run) {
    const frame = make('div', 'gantt'), canvas = make('canvas'), mark = make('div', 'mark');
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `Jobs by node over time, ${run.title}. Arrow keys move, ` +
      'plus and minus zoom in time, square brackets in nodes, 0 shows all.');
    const box = make('div', 'box');
    frame.append(canvas, mark, box);
    if (this.runs.length > 1) el('gantts').append(make('h3', '', run.title));
    el('gantts').append(frame);
    const gantt = new Gantt(run, canvas, this.view, null);
    Object.assign(gantt, { mark, box, frame });
    return gantt;
  }

  // --- choices and keys ---------------------------------------------------------------------------

  wire() {
    el('colour').addEventListener('change', event => {
      this.field = event.target.value;
      this.only = el('only').value = '';
      this.recolour();
    });
    el('only').addEventListener('change', event => this.emphasise(event.target.value.trim()));
    el('measure').addEventListener('change', () => this.drawUse());
    el('figure').addEventListener('change', () => this.drawHeat());
    el('job').addEventListener('change', event => this.find(event.target.value.trim()));
    const acts = { in: () => this.zoom(0.5), out: () => this.zoom(2), left: () => this.pan(-0.4),
      right: () => this.pan(0.4), more: () => this.zoomNodes(0.5), fewer: () => this.zoomNodes(2),
      up: () => this.panNodes(-0.4), down: () => this.panNodes(0.4), all: () => this.reset() };
    for (const button of document.querySelectorAll('button[data-do]'))
      button.addEventListener('click', acts[button.dataset.do]);
    const keys = { '+': 'in', '=': 'in', '-': 'out', ArrowLeft: 'left', ArrowRight: 'right',
      ArrowUp: 'up', ArrowDown: 'down', ']': 'more', '[': 'fewer', 0: 'all' };
    for (const gantt of this.gantts) {
      gantt.canvas.addEventListener('keydown', event => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        acts[keys[event.key]]();
      });
      this.wirePointer(gantt);
    }
    const repaint = () => { this.recolour(); this.drawDistributions(); this.drawHeat(); };
    document.addEventListener('theme', repaint);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
    let wide = document.documentElement.clientWidth;
    addEventListener('resize', () => {
      if (document.documentElement.clientWidth === wide) return;
      wide = document.documentElement.clientWidth;
      this.layout();
    });
  }

  wirePointer(gantt) {
    const { canvas, box } = gantt;
    let from = null;
    const place = event => {
      const frame = canvas.getBoundingClientRect();
      return [event.clientX - frame.left, event.clientY - frame.top];
    };
    canvas.addEventListener('pointermove', event => {
      const [x, y] = place(event);
      if (from) this.drawBox(gantt, from, [x, y]);
      this.hover(gantt, x, y, event);
    });
    canvas.addEventListener('pointerleave', () => this.leave());
    canvas.addEventListener('pointerdown', event => {
      if (event.pointerType === 'touch' || event.button) return;
      const [x, y] = place(event);
      if (gantt.inside(x, y)) from = [x, y];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', event => {
      const [x, y] = place(event), begun = from;
      from = null;
      box.style.display = 'none';
      if (begun && Math.abs(x - begun[0]) + Math.abs(y - begun[1]) > 8) return this.zoomTo(gantt, begun, [x, y]);
      const { row } = gantt.at(x, y);
      if (row >= 0) this.tell(gantt.run, row);
    });
    canvas.addEventListener('dblclick', () => { this.zoom(4); this.zoomNodes(4, gantt); });
    canvas.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return;
      event.preventDefault();
      const [x, y] = place(event), by = 1.2 ** Math.sign(event.deltaY || event.deltaX);
      if (event.shiftKey) this.zoomNodes(by, gantt, gantt.nodeAt(y));
      else this.zoom(by, gantt.timeAt(x));
    }, { passive: false });
  }

  drawBox(gantt, [x0, y0], [x1, y1]) {
    const clip = (v, low, high) => Math.min(Math.max(v, low), high);
    x1 = clip(x1, gantt.gutter, gantt.gutter + gantt.wide);
    y1 = clip(y1, gantt.top, gantt.top + gantt.high);
    Object.assign(gantt.box.style, { display: 'block', left: Math.min(x0, x1) + 'px',
      top: Math.min(y0, y1) + 'px', width: Math.abs(x1 - x0) + 'px', height: Math.abs(y1 - y0) + 'px' });
  }

  hover(gantt, x, y, event) {
    const tip = el('tip'), inside = gantt.inside(x, y);
    this.mark(inside ? x - gantt.gutter : null);
    for (const chart of this.charts)
      if (inside && chart.overTime) chart.setCursor({ left: x - gantt.gutter, top: 5 }, false);
    if (!inside) { tip.style.visibility = 'hidden'; return; }
    const { row, count } = gantt.at(x, y), node = gantt.run.nodes[Math.floor(gantt.nodeAt(y))] || '';
    const here = `${node}, ${instant(gantt.timeAt(x), gantt.run.zero)}`;
    tip.textContent = (row < 0 ? 'No job' : story(gantt.run, row)) + `\n${here}` +
      (count > 1 ? `; ${count - 1} more job${count > 2 ? 's' : ''} here, zoom in to see them` : '');
    tip.style.visibility = 'visible';
    const right = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const below = event.clientY + 18, above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, right)) + 'px';
    tip.style.top = (below + tip.offsetHeight > innerHeight && above > 0 ? above : below) + 'px';
  }

  leave() {
    el('tip').style.visibility = 'hidden';
    this.mark(null);
  }

  mark(left) {
    for (const { mark, gutter, top, high } of this.gantts)
      Object.assign(mark.style, { display: left === null ? 'none' : 'block',
        left: gutter + left + 'px', top: top + 'px', height: high + 'px' });
  }

  tell(run, row) {
    const place = el('story'), button = make('button', '', 'Zoom to it');
    button.type = 'button';
    button.addEventListener('click', () => this.zoomToJob(run, row));
    place.replaceChildren(make('p', '', story(run, row)), button);
  }

  find(text) {
    if (!text) return;
    for (const run of this.runs) {
      const row = findJob(run, text);
      if (row >= 0) {
        this.tell(run, row);
        if (!Number.isNaN(run.columns.start[row])) this.zoomToJob(run, row);
        return;
      }
    }
    el('story').replaceChildren(make('p', '', `No job is called ${text}.`));
  }

  // --- what is on show ----------------------------------------------------------------------------

  show(from, to) {
    const { whole, view } = this, least = Math.min(1, whole.to - whole.from);
    const span = Math.min(Math.max(to - from, least), whole.to - whole.from);
    view.from = Math.min(Math.max(from, whole.from), whole.to - span);
    view.to = view.from + span;
    this.redraw();
  }
  zoom(by, about = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.show(about - (about - from) * by, about + (to - about) * by);
  }
  pan(by) {
    const { from, to } = this.view;
    this.show(from + by * (to - from), to + by * (to - from));
  }
  showNodes(gantt, from, to) {
    const all = Math.max(gantt.run.nodes.length, 1), span = Math.min(Math.max(to - from, 1), all);
    const first = Math.min(Math.max(from, 0), all - span);
    gantt.nodes = [first, first + span];
  }
  zoomNodes(by, only = null, about = null) {
    for (const gantt of only ? [only] : this.gantts) {
      const [from, to] = gantt.nodes, at = about === null ? (from + to) / 2 : about;
      this.showNodes(gantt, at - (at - from) * by, at + (to - at) * by);
    }
    this.redraw();
  }
  panNodes(by) {
    for (const gantt of this.gantts) {
      const [from, to] = gantt.nodes;
      this.showNodes(gantt, from + by * (to - from), to + by * (to - from));
    }
    this.redraw();
  }
  zoomTo(gantt, [x0, y0], [x1, y1]) {
    const n0 = gantt.nodeAt(Math.min(y0, y1)), n1 = gantt.nodeAt(Math.max(y0, y1));
    const t0 = gantt.timeAt(Math.min(x0, x1)), t1 = gantt.timeAt(Math.max(x0, x1));
    if (Math.abs(y1 - y0) > 8) this.showNodes(gantt, n0, n1);
    if (Math.abs(x1 - x0) > 8) this.show(t0, t1); else this.redraw();
  }
  zoomToJob(run, row) {
    const gantt = this.gantts[this.runs.indexOf(run)], { begin, runs, at } = run.lists;
    const b = begin[at[row]], e = begin[at[row] + 1], start = run.columns.start[row];
    if (e > b) {
      const last = runs[e - 2] + runs[e - 1], span = Math.max(last - runs[b], 8);
      this.showNodes(gantt, runs[b] - span / 4, runs[b] + span * 1.25);
    }
    const length = Math.max(run.until[row] - start, 1);
    this.show(start - length, run.until[row] + length);
  }
  reset() {
    for (const gantt of this.gantts) this.showNodes(gantt, 0, Infinity);
    this.show(this.whole.from, this.whole.to);
  }

  // --- drawing ------------------------------------------------------------------------------------

  layout() {
    const frame = el('gantts'), context = make('canvas').getContext('2d');
    context.font = '12px system-ui, sans-serif';
    this.width = Math.max(Math.floor(frame.clientWidth), 240);
    const names = this.runs.flatMap(run => run.nodes.filter((_, k) => k % 97 === 0).concat(
      run.nodes.slice(-1)));
    const longest = Math.max(0, ...names.map(name => context.measureText(name).width));
    this.gutter = Math.round(Math.min(Math.max(longest + 10, 52), this.width < 500 ? 64 : 110));
    this.wide = this.width - this.gutter - 12;
    for (const gantt of this.gantts) {
      const most = this.runs.length > 1 ? 340 : 460;
      const nodes = gantt.run.nodes.length;
      gantt.size(this.width, Math.min(most, Math.max(28 + 36 * nodes, 130)), this.gutter);
    }
    this.recolour();
    this.drawDistributions();
    this.drawHeat();
  }

  recolour() {
    this.classes = classes(this.runs, this.field);
    this.gantts.forEach(gantt => {
      gantt.colours = colouring(gantt.run, this.classes, this.only);
    });
    this.drawLegend();
    this.makeTimeCharts();
    this.redraw();
    if (this.drawn) this.drawDistributions();
    this.drawn = true;
  }

  emphasise(name) {
    this.only = this.classes.all.includes(name) ? name : '';
    el('only').value = this.only;
    this.gantts.forEach(gantt => {
      gantt.colours = colouring(gantt.run, this.classes, this.only);
    });
    this.drawLegend();
    this.redraw();
  }

  drawLegend() {
    const { names, colours, rest, field, all } = this.classes, list = el('legend');
    const entry = (name, colour, value) => {
      const item = make('li'), button = make('button'), key = make('span', 'key');
      button.type = 'button';
      key.style.background = this.only && value !== this.only ? css('--faint')
        : this.only ? BRIGHT[0] : colour;
      button.append(key, name || '(none)');
      button.setAttribute('aria-pressed', String(!!this.only && this.only === value));
      button.addEventListener('click', () => this.emphasise(this.only === value ? '' : value));
      if (value === null) button.disabled = true;
      item.append(button);
      return item;
    };
    const items = names.map((name, k) => entry(name, colours[k], name));
    if (this.only && !names.includes(this.only)) items.push(entry(this.only, BRIGHT[0], this.only));
    if (rest > 0) items.push(entry(`${rest.toLocaleString('en')} other${rest > 1 ? 's' : ''}`,
      colours[names.length], null));
    list.replaceChildren(...items);
    el('names').replaceChildren(...all.slice(0, 2000).map(name => {
      const option = make('option');
      option.value = name;
      return option;
    }));
    const label = el('colour').selectedOptions[0].textContent;
    el('by').textContent = field === 'wait' ? 'wait' : label;
  }

  makeTimeCharts() {
    this.charts.filter(chart => chart.overTime).forEach(chart => chart.destroy());
    this.charts = this.charts.filter(chart => !chart.overTime);
    const several = this.runs.length > 1;
    const add = (place, lines, y) => {
      const chart = timeChart(this, place, lines, y);
      chart.overTime = true;
      this.charts.push(chart);
      return chart;
    };
    const name = (what, run) => several ? `${run.title}: ${what}` : what;
    const percent = { range: (u, low, high) => [0, Math.max(100, high || 0)], name: v => `${v} %` };
    const count = { range: (u, low, high) => [0, Math.max(high || 0, 1) * 1.05],
      name: v => v.toLocaleString('en') };
    const stroke = k => () => css(RUN_COLOURS[k]);
    const share = v => v == null ? '–' : one(v) + ' %';
    const one = v => v == null ? '–' : v.toLocaleString('en', { maximumFractionDigits: 1 });
    this.useChart = add(el('use'), this.runs.map((run, k) => ({ label: name('CPUs in use', run),
      stroke: stroke(k), fill: several ? undefined : () => wash(css('--blue')),
      dash: k ? [6, 4] : undefined, value: (u, v) => share(v) })), percent);
    this.runningChart = add(el('running'), this.runs.map((run, k) => ({ label: name('mean', run),
      stroke: stroke(k), dash: k ? [6, 4] : undefined, value: (u, v) => one(v) })), count);
    this.queueChart = add(el('queue'), this.runs.flatMap((run, k) => [
      { label: name('mean', run), stroke: stroke(several ? k : 1), value: (u, v) => one(v),
        dash: k ? [6, 4] : undefined },
      ...(several ? [] : [{ label: 'most', fill: () => wash(css('--orange')), width: 0,
        value: (u, v) => one(v) }])]), count);
    this.makeStateCharts(add, count);
    this.makeDueCharts(add, percent, share);
    el('shares').replaceChildren();
    this.shareCharts = this.runs.map(run => {
      if (several) el('shares').append(make('h4', '', run.title));
      const place = el('shares').appendChild(make('div', 'chart'));
      const { names, colours, rest } = this.classes, shown = [...names, ...(rest > 0 ? ['others'] : [])];
      // The topmost first, as each is filled down to the floor.
      const lines = shown.map((each, k) => ({ label: each || '(none)', stroke: colours[k], width: 1,
        fill: colours[k], value: (u, v, s, at) => share(at === null || !u.raw ? null : u.raw[k][at])
      })).reverse();
      const chart = add(place, lines, percent);
      chart.shown = shown.length;
      return chart;
    });
  }

  // Nodes by state, the topmost first, as each is filled down to the floor.
  makeStateCharts(add, count) {
    const told = this.runs.filter(run => run.states);
    el('nodes').hidden = !told.length;
    el('states').replaceChildren();
    this.stateCharts = told.map(run => {
      if (this.runs.length > 1) el('states').append(make('h4', '', run.title));
      const place = el('states').appendChild(make('div', 'chart'));
      const value = (u, v, s, at) => at === null || !u.raw ? '–'
        : u.raw[STATES_SHOWN.length - s][at].toLocaleString('en', { maximumFractionDigits: 1 });
      const lines = STATES_SHOWN.map(([name, , colour]) => ({ label: name, width: 1, value,
        stroke: () => css(colour), fill: () => css(colour) })).reverse();
      return Object.assign(add(place, lines, count), { run });
    });
  }

  drawStates() {
    const { from, to } = this.view, { count, xs } = this.buckets();
    for (const chart of this.stateCharts) {
      const { states } = chart.run;
      const raw = STATES_SHOWN.map(([, of]) => {
        const values = states.times.map((_, k) => of(states, k));
        return queueBuckets({ times: states.times, values }, from, to, count).mean;
      });
      const stacked = [];
      raw.forEach((values, k) => stacked.push(values.map((v, b) => v + (k ? stacked[k - 1][b] : 0))));
      const closed = values => [...values, values[values.length - 1]];
      chart.raw = raw.map(closed);
      chart.setData([xs, ...stacked.reverse().map(closed)]);
    }
  }

  // What the accounts with the most use had of it, and what was due to them.
  makeDueCharts(add, percent, share) {
    const told = this.runs.filter(run => Object.keys(run.shares).length);
    el('fair').hidden = !told.length;
    el('due').replaceChildren();
    this.dueCharts = told.map(run => {
      if (this.runs.length > 1) el('due').append(make('h4', '', run.title));
      const place = el('due').appendChild(make('div', 'chart'));
      const found = classes(this.runs, 'account');
      const names = found.names.filter(name => name in run.shares);
      const value = (u, v) => share(v);
      const lines = names.flatMap(name => {
        const stroke = found.colours[found.names.indexOf(name)];
        return [{ label: name, stroke, value },
          { label: `due to ${name}`, stroke, value, dash: [6, 4] }];
      });
      return Object.assign(add(place, lines, percent), { run, names, found });
    });
  }

  drawDue(held) {
    for (const { run, names, found, setData } of this.dueCharts.map(chart => (
      { ...chart, setData: data => chart.setData(data) }))) {
      const of = found.of(run), { length } = found.names;
      const raw = Array.from({ length: length + 1 }, (_, k) =>
        held(run, i => of[i] === k, run.first, run.last, 600));
      this.decay(run, raw);
      const times = Array.from({ length: 601 }, (_, k) => run.first + (run.last - run.first) * k / 600);
      const rows = names.flatMap(name => {
        const values = raw[found.names.indexOf(name)];
        return [[...values, values[599]], times.map(() => 100 * run.shares[name])];
      });
      setData([times, ...rows]);
    }
  }

  redraw() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      for (const gantt of this.gantts) {
        gantt.draw();
        Object.assign(gantt.canvas.dataset, { from: this.view.from, to: this.view.to,
          nodes: gantt.nodes.join(' ') });
      }
      this.drawUse();
    });
  }

  buckets() {
    const { from, to } = this.view, count = Math.max(2, Math.min(600, Math.floor(this.wide / 2)));
    return { count, xs: Array.from({ length: count + 1 }, (_, k) => from + (to - from) * k / count) };
  }

  drawUse() {
    const { from, to } = this.view, { count, xs } = this.buckets();
    const closed = values => [...values, values[values.length - 1]];
    const held = (run, chosen, first = from, last = to, n = count) => {
      const { start, cpus } = run.columns, weigh = 100 / (run.cpus || 1);
      return means(run.rows, first, last, n, i => chosen(i) ? start[i] : NaN, i => run.until[i],
        i => cpus[i] * weigh);
    };
    const running = run => means(run.rows, from, to, count, i => run.columns.start[i],
      i => run.until[i], () => 1);
    this.useChart.setData([xs, ...this.runs.map(run => closed(held(run, () => true)))]);
    this.runningChart.setData([xs, ...this.runs.map(run => closed(running(run)))]);
    const queues = this.runs.map(run => queueBuckets(run.queue, from, to, count));
    this.queueChart.setData([xs, ...queues.flatMap(({ mean, most }) =>
      this.runs.length > 1 ? [closed(mean)] : [closed(mean), closed(most)])]);
    this.drawStates();
    this.drawDue(held);
    const decayed = el('measure').value === 'decayed';
    this.runs.forEach((run, r) => {
      const chart = this.shareCharts[r], { of } = this.gantts[r].colours;
      const each = k => i => of[i] === k;
      const raw = Array.from({ length: chart.shown }, (_, k) => decayed
        ? held(run, each(k), run.first, run.last, 600) : held(run, each(k)));
      if (decayed) this.decay(run, raw);
      const times = decayed
        ? Array.from({ length: 601 }, (_, k) => run.first + (run.last - run.first) * k / 600) : xs;
      const stacked = [];
      raw.forEach((values, k) => stacked.push(values.map((v, b) => v + (k ? stacked[k - 1][b] : 0))));
      chart.raw = raw.map(closed);
      chart.setData([times, ...stacked.reverse().map(closed)]);
    });
  }

  // Of what was used until then, shares in %, with what is long ago counting less.
  decay(run, raw) {
    const width = (run.last - run.first) / 600;
    const kept = run.halfLife ? 0.5 ** (width / run.halfLife) : 1;
    const sums = raw.map(() => 0);
    for (let b = 0; b < 600; b++) {
      raw.forEach((values, k) => { sums[k] = sums[k] * kept + values[b]; });
      const all = sums.reduce((sum, each) => sum + each, 0);
      raw.forEach((values, k) => { values[b] = all > 1e-9 ? 100 * sums[k] / all : 0; });
    }
  }

  // Of each run, and of one run for the names of the legend as well.
  sets(of) {
    const several = this.runs.length > 1, sets = this.runs.map((run, k) => [
      several ? run.title : 'all jobs', RUN_COLOURS[k], ranJobs(run).map(i => of(run, i))]);
    const { names, colours, field } = this.classes;
    if (several || field === 'wait' || names.length < 2) return sets;
    sets[0][1] = '--ink';
    const [run] = this.runs, { of: classOf } = this.gantts[0].colours;
    const each = names.map((name, k) => [name || '(none)', colours[k], []]);
    ranJobs(run).forEach((i, k) => {
      if (classOf[i] < names.length) each[classOf[i]][2].push(sets[0][2][k]);
    });
    return [...sets, ...each];
  }

  drawDistributions() {
    this.charts.filter(chart => !chart.overTime).forEach(chart => chart.destroy());
    this.charts = this.charts.filter(chart => chart.overTime);
    const half = el('waits').clientWidth;
    this.charts.push(
      distributionChart(this, el('waits'), this.sets(waitOf), WAIT_AXIS, half),
      distributionChart(this, el('slowdowns'), this.sets(slowdownOf), SLOWDOWN_AXIS, half));
    const errors = (run, field) => ranJobs(run)
      .map(i => run.columns.start[i] - number(run, field, i)).filter(each => !Number.isNaN(each));
    const several = this.runs.length > 1;
    const sets = this.runs.flatMap((run, k) => ['first_promise', 'last_promise'].map((field, last) => [
      `${last ? 'last' : 'first'} promise${several ? `, ${run.title}` : ''}`, RUN_COLOURS[k],
      errors(run, field)]));
    const any = sets.some(([, , values]) => values.length);
    el('promises').hidden = !any;
    if (any) this.charts.push(distributionChart(this, el('errors'), sets, ERROR_AXIS,
      el('errors').clientWidth));
  }

  drawHeat() {
    const sizes = sizeClasses(this.runs);
    el('heat').replaceChildren();
    for (const run of this.runs) {
      if (this.runs.length > 1) el('heat').append(make('h3', '', run.title));
      const place = el('heat').appendChild(make('div', 'scroll'));
      if (sizes.length) heatMap(run, place, el('figure').value, sizes);
      else place.append(make('p', '', 'No job ran.'));
    }
  }
}

el('theme').addEventListener('change', event => {
  const root = document.documentElement;
  if (event.target.value) root.dataset.theme = event.target.value;
  else delete root.dataset.theme;
  document.dispatchEvent(new Event('theme'));
});
decode(el('runs').textContent).then(runs => {
  window.page = new Page(runs);
  document.documentElement.dataset.ready = 'yes';
}).catch(error => {
  el('explorer').dataset.error = 'yes';
  el('wrong').textContent = `The pictures cannot be drawn here: ${error.message}`;
  throw error;
});
