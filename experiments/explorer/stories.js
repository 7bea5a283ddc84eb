// What is said of a job.

const STARTED_BY = { Main: ' by the main scheduler', Backfill: ' by the backfill scheduler',
  Submit: ' as it was submitted' };

function story(run, i) {
  const { submit, start, end, cpus } = run.columns, at = t => instant(t, run.zero);
  const lines = [], wait = start[i] - submit[i], name = word(run, 'name', i);
  const id = word(run, 'id', i) || number(run, 'job', i);
  lines.push(`Job ${id}${name && name !== id ? ` (${name})` : ''}, ${word(run, 'state', i)}` +
    (i >= run.jobs ? ', an earlier run' : ''));
  const groups = [['', 'user'], ['account ', 'account'], ['partition ', 'partition'],
    ['QOS ', 'qos']];
  lines.push(groups.map(([what, field]) => word(run, field, i) && what + word(run, field, i))
    .filter(Boolean).join(', '));
  lines.push(`Submitted ${at(submit[i])}`);
  const longest = word(run, 'waited_for', i);
  if (Number.isNaN(start[i])) lines.push('Not started: ' + (word(run, 'reason', i) || 'waits'));
  else {
    const by = word(run, 'scheduled_by', i);
    lines.push(`Started ${at(start[i])}${STARTED_BY[by] || by && ` by ${by}`}, after ` +
      said(wait) + (longest ? `, longest for ${longest}` : ''));
    const limit = number(run, 'req_time', i), ran = end[i] - start[i];
    lines.push((Number.isNaN(ran) ? 'Not ended' : `Ran ${said(ran)}`) +
      (limit >= 0 ? ` of at most ${said(limit)}` : ', without a limit') +
      (word(run, 'exit_code', i) ? `, exit code ${word(run, 'exit_code', i)}` : ''));
  }
  const list = hostList(run, i), shown = list.length > 90 ? list.slice(0, 88) + ' …' : list;
  const count = number(run, 'node_count', i);
  lines.push(`${cpus[i].toLocaleString('en')} CPUs, ${count.toLocaleString('en')} node` +
    `${count === 1 ? '' : 's'}${shown && `: ${shown}`}`);
  const first = number(run, 'first_promise', i), last = number(run, 'last_promise', i);
  if (!Number.isNaN(first)) {
    const moves = number(run, 'promise_moves', i);
    lines.push(`First promised ${at(first)}` +
      (moves ? `, moved ${moves} time${moves === 1 ? '' : 's'}, last ${at(last)}` : ''));
  }
  if (number(run, 'restarts', i)) lines.push(`Requeued ${number(run, 'restarts', i)} times`);
  return lines.filter(Boolean).join('\n');
}

const findJob = (run, text) => {
  for (let i = 0; i < run.jobs; i++)
    if (word(run, 'id', i) === text) return i;
  for (let i = 0; i < run.jobs; i++)
    if (String(number(run, 'job', i)) === text) return i;
  return -1;
};
