// What is drawn, as plain numbers: steps over time, shares, quantiles, ticks and how times are said.

const MINUTE = 60, HOUR = 3600, DAY = 86400;

function said(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  if (seconds < 0) return '−' + said(-seconds);
  const units = [[1, 's', MINUTE], [MINUTE, 'min', HOUR], [HOUR, 'h', DAY], [DAY, 'd', Infinity]];
  const [unit, name] = units.find(([, , until]) => seconds < until);
  const n = seconds / unit, whole = Math.round(n) === n || n >= 100;
  return seconds ? `${n.toLocaleString('en', { maximumFractionDigits: whole ? 0 : 1 })} ${name}` : '0';
}

// The end of each row on its nodes: that of its run, or of all that is known if it has not ended.
function finish(run) {
  const { submit, start, end } = run.columns, rows = run.rows, until = new Float64Array(rows);
  let first = Infinity, last = -Infinity, unfinished = false;
  for (let i = 0; i < rows; i++) {
    first = Math.min(first, submit[i], start[i] === start[i] ? start[i] : Infinity);
    for (const t of [submit[i], start[i], end[i]]) if (t > last) last = t;
    unfinished ||= start[i] === start[i] && end[i] !== end[i];
  }
  if (first > last) [first, last] = [0, 1];
  run.first = first;
  run.last = Math.max(unfinished ? last + (last - first) / 50 : last, first + 1);
  for (let i = 0; i < rows; i++)
    until[i] = start[i] !== start[i] ? NaN : end[i] === end[i] ? end[i] : run.last;
  run.until = until;
}

// Means of a sum of steps in equal buckets of [from, to): weight(i) while [begin(i), end(i)).
function means(count, from, to, buckets, begin, end, weight) {
  const rate = new Float64Array(buckets + 2), width = (to - from) / buckets;
  const edge = (t, w) => {
    const x = Math.min(Math.max((t - from) / width, 0), buckets), k = Math.floor(x), part = x - k;
    rate[k] += w * (1 - part);
    rate[k + 1] += w * part;
  };
  for (let i = 0; i < count; i++) {
    const b = begin(i), e = end(i);
    if (!(b < to && e > from) || !(e > b)) continue;
    edge(b, weight(i));
    edge(e, -weight(i));
  }
  const out = new Float64Array(buckets);
  for (let k = 0, sum = 0; k < buckets; k++) out[k] = sum += rate[k];
  return out;
}

// When the number of waiting jobs changes, and to what.
function queueSteps(run) {
  const { submit, start, state } = run.columns;
  const gone = state.words.map(name => /^(REJECTED|CANCELLED)/.test(name));
  const waits = (_, i) => !Number.isNaN(start[i]) || !gone[state.at[i]];
  const come = submit.filter(waits).sort(), go = start.filter(t => !Number.isNaN(t)).sort();
  const times = [], values = [];
  for (let c = 0, g = 0; c < come.length;) {
    const t = g < go.length ? Math.min(come[c], go[g]) : come[c];
    while (c < come.length && come[c] <= t) c++;
    while (g < go.length && go[g] <= t) g++;
    times.push(t);
    values.push(c - g);
    if (c < come.length) continue;
    for (; g < go.length; g++) { times.push(go[g]); values.push(c - g - 1); }
  }
  run.queue = { times, values };
}

// Mean and most of the queue in each bucket.
function queueBuckets({ times, values }, from, to, buckets) {
  const mean = new Float64Array(buckets), most = new Float64Array(buckets);
  const width = (to - from) / buckets;
  let k = 0;
  while (k < times.length && times[k] <= from) k++;
  for (let b = 0; b < buckets; b++) {
    const end = from + (b + 1) * width;
    let at = end - width, value = k ? values[k - 1] : 0, sum = 0;
    most[b] = value;
    while (k < times.length && times[k] < end) {
      sum += value * (times[k] - at);
      at = times[k];
      value = values[k++];
      most[b] = Math.max(most[b], value);
    }
    mean[b] = (sum + value * (end - at)) / width;
  }
  return { mean, most };
}

// Points of a distribution: at most so many, of which the share in % is not above x.
function distribution(values, points = 500) {
  const sorted = Float64Array.from(values).sort(), n = sorted.length, xs = [], ys = [];
  for (let k = 0; k < points && n; k++) {
    const place = Math.floor(k * (n - 1) / (points - 1));
    if (xs.length && xs[xs.length - 1] === sorted[place]) ys[ys.length - 1] = 100 * (place + 1) / n;
    else { xs.push(sorted[place]); ys.push(100 * (place + 1) / n); }
  }
  return [xs, ys];
}

function median(values) {
  const sorted = Float64Array.from(values).sort();
  return sorted.length ? (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2 : NaN;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  ...[1, 2, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650, 36500].map(days => days * DAY)];

// Where the axis of time is named, and how. zero: the instant of second 0, or null.
function timeTicks(from, to, most, zero) {
  const step = STEPS.find(each => (to - from) / each <= most) || STEPS[STEPS.length - 1];
  const shift = zero === null ? 0 : zero % step, ticks = [];
  for (let t = Math.ceil((from + shift) / step) * step - shift; t <= to; t += step) ticks.push(t);
  return { step, ticks, names: ticks.map(t => instant(t, zero, step)) };
}

const two = n => String(n).padStart(2, '0');
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

// An instant; step: how fine, 0 for all of it.
function instant(t, zero, step = 0) {
  if (!Number.isFinite(t)) return '–';
  if (zero !== null) {
    const d = new Date(Math.round((zero + t) * 1000));
    const time = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
    const seconds = step && step < MINUTE || !step ? `:${two(d.getUTCSeconds())}` : '';
    const date = `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
    if (!step) return `${date} ${d.getUTCFullYear()} ${time}${seconds}`;
    if (step >= 28 * DAY) return `${MONTHS[d.getUTCMonth()]} ${d.getUTCFullYear()}`;
    return step >= DAY || time + seconds === '00:00' ? date : time + seconds;
  }
  const s = Math.round(Math.abs(t)), sign = t < 0 ? '−' : '', days = Math.floor(s / DAY);
  if (step >= DAY) return `${sign}${days} d`;
  const time = `${two(Math.floor(s / HOUR) % 24)}:${two(Math.floor(s / MINUTE) % 60)}`;
  const seconds = !step || step < MINUTE ? `:${two(s % 60)}` : '';
  return `${sign}${days ? `${days}d ` : ''}${time}${seconds}`;
}
