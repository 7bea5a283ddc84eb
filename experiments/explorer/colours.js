// Which colour a job has: by what was chosen on the page, the same in both runs.

// Paul Tol's "bright", which colour-blind people tell apart; all others are grey.
const BRIGHT = ['#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', '#aa3377'];
const PALE = ['#ee6677', '#ccbb44', '#66ccee']; // letters on them are dark
const STATES = ['COMPLETED', 'FAILED', 'OUT_OF_MEMORY', 'TIMEOUT', 'NODE_FAIL', 'CANCELLED'];
// "viridis": of a wait the longest stands out from the page
const VIRIDIS = ['#fde725', '#90d743', '#35b779', '#21918c', '#31688e', '#443983', '#440154'];
const WAITS = [1, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 4 * DAY, Infinity]; // the classes' upper ends
const WAIT_NAMES = ['none', 'below 10 min', '10–60 min', '1–6 h', '6–24 h', '1–4 d', 'above 4 d'];

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => getComputedStyle(document.documentElement).colorScheme === 'dark' ||
  !document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches;
const waitClass = wait => WAITS.findIndex(end => wait < end);
const waitColours = () => isDark() ? [...VIRIDIS].reverse() : VIRIDIS;
const channels = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
const isPale = hex => {
  const [r, g, b] = channels(hex);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140;
};

// The names of a field, those with the most CPU time first, over all runs.
function ranked(runs, field) {
  const work = new Map();
  for (const run of runs) {
    const { start, cpus } = run.columns;
    for (let i = 0; i < run.rows; i++) {
      const name = word(run, field, i), held = cpus[i] * (run.until[i] - start[i]) || 0;
      work.set(name, (work.get(name) || 0) + held);
    }
  }
  return [...work].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

// {names, colours, rest, of(run) -> class of each row}; the class behind the last is "others".
function classes(runs, field) {
  if (field === 'wait') {
    const of = run => {
      const { submit, start } = run.columns;
      return Int32Array.from(start, (t, i) => Number.isNaN(t) ? 0 : waitClass(t - submit[i]));
    };
    return { field, names: WAIT_NAMES, all: WAIT_NAMES, colours: waitColours(), rest: 0, of };
  }
  const all = ranked(runs, field), others = css('--others');
  const names = field === 'state' ? STATES.filter(name => all.includes(name))
    : all.slice(0, BRIGHT.length);
  const colours = names.map((name, k) => BRIGHT[field === 'state' ? STATES.indexOf(name) : k]);
  const of = run => {
    const found = run.columns[field];
    if (!found) return new Int32Array(run.rows).fill(names.length);
    const places = found.words.map(name => {
      const k = names.indexOf(name);
      return k < 0 ? names.length : k;
    });
    return Int32Array.from(found.at, k => places[k]);
  };
  return { field, names, all, colours: [...colours, others], rest: all.length - names.length, of };
}

// The colours of a run's rows; only: the one name that is to stand out, '' for none.
function colouring(run, chosen, only) {
  const of = chosen.of(run), faint = css('--faint'), one = BRIGHT[0];
  const hexes = only ? [] : chosen.colours, found = run.columns[chosen.field];
  const hex = i => !only ? hexes[of[i]]
    : (chosen.field === 'wait' ? chosen.names[of[i]] : found && found.words[found.at[i]]) === only
      ? one : faint;
  const parts = new Map([...chosen.colours, faint, one].map(each => [each, channels(each)]));
  return {
    of,
    css: hex,
    rgb: i => parts.get(hex(i)),
    ink: i => isPale(hex(i)) ? '#1b1d21' : '#ffffff',
    page: () => ({ axis: css('--axis'), soft: css('--soft') }),
  };
}
