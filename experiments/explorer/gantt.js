// Jobs by node over time, on a canvas. Where there is room each job is a box; where jobs or nodes
// are smaller than a pixel, each pixel has the mean colour of what is in it, as strong as it is in
// use. Its cost there grows with the number of jobs on show and that of pixels, not with their
// product: a job adds the changes at its ends, which are summed up along each row.

const BOXES = 6000; // the most that are drawn one by one
const SLICE_MS = 25; // ours: how long the page may stand still while a picture is made

class Gantt {
  constructor(run, canvas, view, colours) {
    Object.assign(this, { run, canvas, view, colours, boxes: null, turn: 0 });
    this.nodes = [0, Math.max(run.nodes.length, 1)];
    this.sums = null;
  }

  size(width, height, gutter) {
    const most = width * height > 600000 ? 1 : 2;
    this.dpr = Math.min(window.devicePixelRatio || 1, most);
    Object.assign(this, { width, height, gutter, right: 12, top: 4, bottom: 22 });
    this.canvas.width = Math.round(width * this.dpr);
    this.canvas.height = Math.round(height * this.dpr);
    this.canvas.style.height = height + 'px';
    this.wide = Math.max(width - gutter - this.right, 20);
    this.high = height - this.top - this.bottom;
  }

  timeAt(x) {
    return this.view.from + (x - this.gutter) / this.wide * (this.view.to - this.view.from);
  }
  nodeAt(y) { return this.nodes[0] + (y - this.top) / this.high * (this.nodes[1] - this.nodes[0]); }
  xAt(t) { return this.gutter + (t - this.view.from) / (this.view.to - this.view.from) * this.wide; }
  yAt(n) { return this.top + (n - this.nodes[0]) / (this.nodes[1] - this.nodes[0]) * this.high; }
  inside(x, y) {
    return x >= this.gutter && x <= this.gutter + this.wide && y >= this.top &&
      y <= this.top + this.high;
  }

  // Rows on show, and how many boxes they would be, counted up to BOXES.
  visible() {
    const { run, view } = this, { start } = run.columns, { begin, runs, at } = run.lists;
    const found = [];
    let boxes = 0;
    for (let i = 0; i < run.rows; i++) {
      if (!(start[i] < view.to) || !(run.until[i] >= view.from)) continue;
      let seen = 0;
      if (boxes > BOXES) seen = 1;
      else for (let r = begin[at[i]]; r < begin[at[i] + 1]; r += 2)
        if (runs[r] < this.nodes[1] && runs[r] + runs[r + 1] > this.nodes[0]) seen++;
      if (seen) found.push(i);
      boxes += seen;
    }
    return { found, boxes };
  }

  async draw() {
    const turn = ++this.turn, { found, boxes } = this.visible();
    const perNode = this.high / (this.nodes[1] - this.nodes[0]);
    if (boxes <= BOXES && perNode >= 2) this.drawBoxes(found, perNode);
    else if (!await this.drawPixels(found, turn)) return;
    this.drawAxes(perNode);
    this.canvas.dataset.drawn = this.boxes ? 'boxes' : 'pixels';
    this.canvas.dataset.jobs = found.length;
  }

  context() {
    const context = this.canvas.getContext('2d');
    context.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    return context;
  }

  // Jobs that share nodes get a lane each.
  lanes(found) {
    const { run } = this, { start } = run.columns, { begin, runs, at } = run.lists;
    const ends = new Map(), lane = new Map(), most = new Map();
    const each = (i, what) => {
      for (let r = begin[at[i]]; r < begin[at[i] + 1]; r += 2) {
        const to = Math.min(runs[r] + runs[r + 1], Math.ceil(this.nodes[1]));
        for (let n = Math.max(runs[r], Math.floor(this.nodes[0])); n < to; n++) what(n);
      }
    };
    for (const i of [...found].sort((a, b) => start[a] - start[b] || a - b)) {
      const taken = new Set();
      each(i, n => (ends.get(n) || []).forEach((end, k) => { if (end > start[i]) taken.add(k); }));
      let k = 0;
      while (taken.has(k)) k++;
      lane.set(i, k);
      each(i, n => {
        if (!ends.has(n)) ends.set(n, []);
        ends.get(n)[k] = run.until[i];
        most.set(n, Math.max(most.get(n) || 1, k + 1));
      });
    }
    return { lane, most };
  }

  drawBoxes(found, perNode) {
    const { run, colours } = this, { start } = run.columns, { begin, runs, at } = run.lists;
    const context = this.context(), { lane, most } = this.lanes(found);
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(this.gutter, this.top, this.wide, this.high);
    context.clip();
    context.font = '11px system-ui, sans-serif';
    this.boxes = [];
    for (const i of found) {
      const x = this.xAt(start[i]), wide = Math.max(this.xAt(run.until[i]) - x, 1.5);
      const left = Math.max(x, this.gutter), right = Math.min(x + wide, this.gutter + this.wide);
      for (const [first, count, lanes] of this.pieces(begin[at[i]], begin[at[i] + 1], runs, most)) {
        const tall = perNode / lanes, y = this.yAt(first) + tall * (lanes > 1 ? lane.get(i) : 0);
        const high = lanes > 1 ? tall : count * perNode, gap = Math.min(1, high / 4);
        this.boxes.push([i, x, y, wide, high]);
        context.fillStyle = colours.css(i);
        context.globalAlpha = i >= run.jobs ? 0.55 : 1;
        context.fillRect(x, y + gap / 2, Math.max(wide - (wide > 4 ? 1 : 0), 1), high - gap);
        context.globalAlpha = 1;
        const name = word(run, 'id', i);
        if (high >= 11 && right - left > 14 && context.measureText(name).width < right - left - 6) {
          context.fillStyle = colours.ink(i);
          context.fillText(name, left + 3, y + Math.min(high / 2 + 4, high - 2));
        }
      }
    }
    context.restore();
  }

  // (first, how many, lanes): neighbours with one lane are one piece.
  * pieces(from, to, runs, most) {
    for (let r = from; r < to; r += 2) {
      const end = Math.min(runs[r] + runs[r + 1], Math.ceil(this.nodes[1]));
      let first = Math.max(runs[r], Math.floor(this.nodes[0]));
      for (let n = first; n < end; n++) {
        const lanes = most.get(n) || 1;
        if (lanes > 1) {
          if (n > first) yield [first, n - first, 1];
          yield [n, 1, lanes];
          first = n + 1;
        }
      }
      if (end > first) yield [first, end - first, 1];
    }
  }

  // False if another picture was asked for before this one was done.
  async drawPixels(found, turn) {
    const w = Math.max(Math.round(this.wide * this.dpr), 1);
    const h = Math.max(Math.round(this.high * this.dpr), 1), size = (w + 2) * h;
    if (!this.sums || this.sums[0].length !== size)
      this.sums = [0, 0, 0, 0].map(() => new Float32Array(size));
    else this.sums.forEach(each => each.fill(0));
    let until = performance.now() + SLICE_MS;
    for (let k = 0; k < found.length; k++) {
      this.addJob(found[k], w, h);
      if (k % 64 === 63 && performance.now() > until) {
        await new Promise(resolve => setTimeout(resolve));
        if (turn !== this.turn) return false;
        until = performance.now() + SLICE_MS;
      }
    }
    const picture = this.picture(w, h);
    this.boxes = null;
    const context = this.context();
    context.clearRect(0, 0, this.width, this.height);
    context.putImageData(picture, Math.round(this.gutter * this.dpr), Math.round(this.top * this.dpr));
    return true;
  }

  addJob(i, w, h) {
    const { run, view } = this, { begin, runs, at } = run.lists, [all, red, green, blue] = this.sums;
    const perSecond = w / (view.to - view.from), perNode = h / (this.nodes[1] - this.nodes[0]);
    const x0 = Math.max((run.columns.start[i] - view.from) * perSecond, 0);
    const x1 = Math.min(Math.max((run.until[i] - view.from) * perSecond, x0 + 0.05), w);
    if (x1 <= x0) return;
    const c0 = Math.floor(x0), p0 = x0 - c0, c1 = Math.floor(x1), p1 = x1 - c1;
    const [r, g, b] = this.colours.rgb(i), stride = w + 2;
    for (let k = begin[at[i]], last = begin[at[i] + 1]; k < last; k += 2) {
      const y0 = Math.max((runs[k] - this.nodes[0]) * perNode, 0);
      const y1 = Math.min((runs[k] + runs[k + 1] - this.nodes[0]) * perNode, h);
      for (let y = Math.floor(y0); y < y1; y++) {
        const part = Math.min(y + 1, y1) - Math.max(y, y0), row = y * stride;
        const a = part * (1 - p0), b2 = part * p0, c = part * (1 - p1), d = part * p1;
        const i0 = row + c0, i1 = row + c1;
        all[i0] += a; red[i0] += a * r; green[i0] += a * g; blue[i0] += a * b;
        all[i0 + 1] += b2; red[i0 + 1] += b2 * r; green[i0 + 1] += b2 * g; blue[i0 + 1] += b2 * b;
        all[i1] -= c; red[i1] -= c * r; green[i1] -= c * g; blue[i1] -= c * b;
        all[i1 + 1] -= d; red[i1 + 1] -= d * r; green[i1 + 1] -= d * g; blue[i1 + 1] -= d * b;
      }
    }
  }

  picture(w, h) {
    const [all, red, green, blue] = this.sums, picture = new ImageData(w, h), out = picture.data;
    for (let y = 0, at = 0; y < h; y++) {
      let a = 0, r = 0, g = 0, b = 0;
      for (let x = 0, k = y * (w + 2); x < w; x++, k++, at += 4) {
        a += all[k]; r += red[k]; g += green[k]; b += blue[k];
        if (a < 0.002) continue;
        out[at] = r / a; out[at + 1] = g / a; out[at + 2] = b / a;
        out[at + 3] = 255 * (a >= 1 ? 1 : 0.15 + 0.85 * a);
      }
    }
    return picture;
  }

  drawAxes(perNode) {
    const { run, view } = this, context = this.context(), style = this.colours.page();
    context.font = '12px system-ui, sans-serif';
    context.strokeStyle = style.axis;
    context.lineWidth = 1;
    context.strokeRect(this.gutter + 0.5, this.top + 0.5, this.wide - 1, this.high - 1);
    context.fillStyle = style.soft;
    context.textAlign = 'right';
    const step = Math.max(1, Math.ceil(18 / perNode));
    const round = step === 1 ? 1 : [1, 2, 5].map(n => n * 10 ** Math.floor(Math.log10(step)))
      .concat(10 ** Math.ceil(Math.log10(step))).find(n => n >= step);
    for (let n = Math.ceil(this.nodes[0] / round) * round; n < this.nodes[1]; n += round) {
      const y = this.yAt(n + 0.5);
      if (run.nodes[n] && y < this.top + this.high - 3)
        context.fillText(this.fitting(context, run.nodes[n]), this.gutter - 5, Math.max(y + 4, 12));
    }
    context.textAlign = 'center';
    const { ticks, names } = timeTicks(view.from, view.to, this.wide / 78, run.zero);
    let taken = 0;
    ticks.forEach((t, k) => {
      const x = this.xAt(t), half = context.measureText(names[k]).width / 2;
      context.fillRect(x, this.top + this.high, 1, 4);
      const kept = Math.min(Math.max(x, half + 1), this.width - half - 1);
      if (kept - half < taken) return;
      context.fillText(names[k], kept, this.height - 5);
      taken = kept + half + 8;
    });
    context.textAlign = 'left';
  }

  fitting(context, name) {
    let shown = name;
    while (shown.length > 2 && context.measureText(shown).width > this.gutter - 8)
      shown = '…' + shown.slice(shown[0] === '…' ? 2 : 1);
    return shown;
  }

  // Rows at a place: what is nearest first, and how many are within its pixel.
  at(x, y) {
    if (!this.inside(x, y)) return { row: -1, count: 0 };
    if (this.boxes) {
      for (let k = this.boxes.length - 1; k >= 0; k--) {
        const [i, left, top, wide, high] = this.boxes[k];
        if (x >= left - 1 && x <= left + wide + 1 && y >= top && y <= top + high)
          return { row: i, count: 1 };
      }
      return { row: -1, count: 0 };
    }
    const { run } = this, { start } = run.columns, { begin, runs, at } = run.lists;
    const t0 = this.timeAt(x - 0.5), t1 = this.timeAt(x + 0.5);
    const n0 = this.nodeAt(y - 0.5), n1 = this.nodeAt(y + 0.5);
    let row = -1, count = 0, largest = 0;
    for (let i = 0; i < run.rows; i++) {
      if (!(start[i] <= t1) || !(run.until[i] >= t0)) continue;
      let covered = 0;
      for (let r = begin[at[i]]; r < begin[at[i] + 1]; r += 2)
        covered += Math.max(0, Math.min(n1, runs[r] + runs[r + 1]) - Math.max(n0, runs[r]));
      if (!covered) continue;
      count++;
      const area = covered * (Math.min(t1, run.until[i]) - Math.max(t0, start[i]) + 1e-9);
      if (area > largest) [row, largest] = [i, area];
    }
    return { row, count };
  }
}
