// The packed runs as columns again: packing.py beside this file says how they are packed.

async function inflate(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(plain).json();
}

// Numbers become a Float64Array, NaN where a job has none; texts {words, at}.
function column(packed, rows, others) {
  const [kind, first, second] = packed;
  if (kind === 'same' && typeof first === 'string')
    return { words: [first], at: new Int32Array(rows) };
  if (kind === 'same') return new Float64Array(rows).fill(first === null ? NaN : Number(first));
  if (kind === 'text') return { words: first, at: Int32Array.from({ length: rows }, (_, i) => i) };
  if (kind === 'word') return { words: first, at: Int32Array.from(second) };
  const out = new Float64Array(rows), values = kind === 'after' ? second : first;
  const base = kind === 'after' ? others[first] : null;
  let before = 0;
  for (let i = 0; i < rows; i++) {
    const value = values[i];
    if (value === null) out[i] = NaN;
    else if (kind === 'delta') out[i] = before += value;
    else out[i] = base ? value + (base[i] || 0) : value;
  }
  return out;
}

// Runs of neighbours, flat: those of list k are at [begin[k], begin[k + 1]), two numbers each.
function nodeLists([, lists, places]) {
  const begin = new Int32Array(lists.length + 1);
  lists.forEach((list, k) => { begin[k + 1] = begin[k] + list.length; });
  const runs = new Int32Array(begin[lists.length]);
  lists.forEach((list, k) => {
    let end = 0;
    for (let i = 0; i < list.length; i += 2) {
      runs[begin[k] + i] = end + list[i];
      runs[begin[k] + i + 1] = list[i + 1];
      end += list[i] + list[i + 1];
    }
  });
  return { begin, runs, at: Int32Array.from(places) };
}

const ORDER = ['submit', 'start', 'end']; // others are told after these

async function decode(text) {
  const packed = await inflate(text);
  return packed.map(({ columns, ...run }) => {
    const { nodes, ...rest } = columns, found = {};
    const names = [...ORDER, ...Object.keys(rest).filter(name => !ORDER.includes(name))];
    for (const name of names)
      if (rest[name]) found[name] = column(rest[name], run.rows, found);
    if (run.states) {
      let at = 0;
      run.states.times = run.states.times.map(gap => at += gap);
    }
    return { ...run, columns: found, lists: nodeLists(nodes) };
  });
}

const word = (run, name, i) => {
  const found = run.columns[name];
  return found ? found.words[found.at[i]] : '';
};
const number = (run, name, i) => run.columns[name] ? run.columns[name][i] : NaN;

// The nodes of a row as a host list expression.
function hostList(run, i) {
  const { begin, runs, at } = run.lists, k = at[i], groups = [];
  const split = name => /^(.*?)([0-9]*)$/.exec(name);
  for (let r = begin[k]; r < begin[k + 1]; r += 2) {
    for (let node = runs[r], end = runs[r] + runs[r + 1]; node < end;) {
      const [, prefix, digits] = split(run.nodes[node]);
      let last = node, shown = digits;
      while (digits && last + 1 < end) {
        const [, next, more] = split(run.nodes[last + 1]);
        if (next !== prefix || Number(more) !== Number(shown) + 1) break;
        shown = more;
        last++;
      }
      const range = last > node ? `${digits}-${shown}` : digits;
      const group = groups[groups.length - 1];
      if (group && digits && group[0] === prefix && group[1][0]) group[1].push(range);
      else groups.push([prefix, [range]]);
      node = last + 1;
    }
  }
  return groups.map(([prefix, ranges]) => ranges.length > 1 || ranges[0].includes('-')
    ? `${prefix}[${ranges.join(',')}]` : prefix + ranges[0]).join(',');
}
