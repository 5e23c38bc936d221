// Gives the page records with hostile strings in each place, by its own listeners, and looks at what became of them.
(async () => {
  const { deliver } = await import('/link.js');
  const before = document.querySelectorAll('script, img, iframe, object, embed, link, style, base, form').length;
  const problems = [];
  window.addEventListener('securitypolicyviolation', (event) => problems.push(`policy: ${event.violatedDirective}`));
  window.addEventListener('error', (event) => problems.push(`error: ${event.message}`));
  let seed = 7;
  const draw = (below) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };
  const PARTS = ['<script>window.owned = 1</script>', '<img src=x onerror="window.owned = 1">', '"onfocus="window.owned=1" autofocus x="', "' onclick='window.owned=1",
    'javascript:window.owned=1', '</pre></td></svg></title>', '<svg onload=window.owned=1>', '&lt;b&gt;', '\u202e', '\0', '%00', '${window.owned = 1}', '{{constructor}}',
    '__proto__', 'constructor', 'x'.repeat(3000), '-->', ']]>', '\n\n', 'url(javascript:1)', ''];
  const text = () => Array.from({ length: 1 + draw(3) }, () => PARTS[draw(PARTS.length)]).join('');
  const set = () => ['0', '0-7', '1,3', '0-6/2', '2-5'][draw(5)];
  const many = (make) => Array.from({ length: draw(4) }, make);
  const frame = () => ({ module: draw(2) ? '' : text(), function: text(), file: text(), line: draw(100), repeat: draw(3) });
  const stacks = () => ({ type: 'stacks', tasks: '0-7', count: 8, others: draw(2) ? '' : set(), bare: '', stacks: many(() => ({ tasks: set(), frames: [frame(), frame(), ...many(frame)] })) });
  const named = () => ({ name: text(), values: many(() => ({ tasks: set(), count: 1, value: text() })) });
  const numbers = () => many(() => (draw(5) ? draw(1000) / 7 : null));
  const MAKE = [
    () => ({ kind: 'board', all: '0-7', focus: set(), prompt: text(), stale: !!draw(2), breakpoints: many(() => ({ number: draw(9), places: many(() => ({ function: text(), file: text(), line: draw(99) })) })), ranks: many(() => ({ crashed: !!draw(2), state: text(), health: draw(2) ? 'reachable' : text(), count: 2, tasks: set(), last: draw(2) ? null : { kind: text(), reason: text(), signal: text(), code: 1 } })) }),
    () => ({ kind: 'sight', stacks: draw(4) ? stacks() : null, source: draw(3) ? { path: text(), function: text(), line: 3, first: 1, lines: many(text), caller: !!draw(2), tasks: set() } : null, frames: many(() => ({ tasks: set(), level: draw(9), place: text() })), locals: many(named), watched: many(named), missing: text() }),
    () => ({ kind: 'said', text: text() }),
    () => ({ kind: 'completion', typed: document.getElementById('command').value, kept: draw(2) ? '' : text(), words: many(text) }),
    () => ({ kind: 'typed', text: text() }),
    () => ({ kind: 'prompt', text: text(), question: !!draw(2), asked: true }),
    () => ({ kind: 'stop' }),
    () => ({ kind: 'status', text: draw(2) ? text() : null }),
    () => ({ kind: 'answer', classes: [stacks()] }),
    () => ({ kind: 'values', expression: text(), values: many(() => ({ tasks: set(), count: 1, value: text() })) }),
    () => ({ kind: 'values', expression: text(), values: Array.from({ length: 9 + draw(3) }, (_, at) => ({ tasks: `${at}`, count: 1, value: draw(9) ? `${at}` : text() })) }),
    () => ({ kind: 'profile', parts: draw(4), span_ms: 2000, nodes: many(() => 0).flatMap((_, at) => [{ depth: at, tasks: set(), times: 9 - at, parts: [1, 2], function: text(), file: text(), lines: [1, draw(9)] }]), classes: many(() => ({ tasks: set(), moved: !!draw(2), times: 1, all: 2, frames: draw(2) ? [frame()] : [] })) }),
    () => ({ kind: 'nodes', rows: [{ host: text(), tasks: set() }, { host: text(), tasks: '' }] }),
    () => ({ kind: 'listing', file: text(), tasks: set(), lines: many(() => ({ line: draw(99), text: text(), here: draw(2) ? '' : set(), count: 1 })) }),
    () => ({ kind: 'comparison', expression: text(), reference: set(), value: text(), others: many(() => ({ tasks: set(), differing: 2, of: 3, path: text(), reference: text(), value: text() })) }),
    () => ({ kind: 'plot', expression: text(), over: draw(2) ? 'ranks' : 'elements', row: draw(2) ? null : 1 + draw(3), lines: many(() => ({ tasks: set(), numbers: numbers(), not_finite: many(() => ({ at: draw(3), value: draw(2) ? text() : 'nan' })) })) }),
    () => ({ kind: 'stats', expression: text(), count: 3, min: { value: text(), on: { tasks: set() } }, max: null, mean: 1, stddev: null, nan: { count: 0, tasks: null }, histogram: draw(2) ? null : { low: 0, high: 1, counts: [1, 0, 2] } }),
    () => ({ kind: 'diagnosis', step: text(), conclusion: text(), suspects: draw(2) ? '' : set(), held_up_by: '', circle: draw(2) ? [] : [0, 1], findings: many(() => ({ tasks: set(), what: text(), evidence: many(text) })), graph: { nodes: [{ tasks: '0', kind: text(), what: text() }, { tasks: '1', kind: 'waits', what: text() }], edges: [{ from: 0, to: draw(2), waits: draw(9) }, { from: 1, to: 0, waits: 1 }], circles: draw(2) ? [] : [[0, 1]] } }),
  ];
  let records = 0;
  for (; records < 400; records += 1) {
    // The map is drawn in each of its ways.
    for (const [id, names] of [['mapby', ['state', 'place', 'value', 'host']], ['maporder', ['rank', 'host']], ['flameof', ['stops', 'profile']]]) {
      const choice = document.getElementById(id);
      const name = names[Math.floor(records / 20) % names.length];
      if (choice.value !== name) { choice.value = name; choice.dispatchEvent(new Event('change')); }
    }
    const record = MAKE[records % MAKE.length]();
    try {
      deliver(record);
    } catch (error) {
      problems.push(`${record.kind}: ${error.stack}`);
    }
    if (problems.length > 5) break;
  }
  // What was completed is no line of the test's.
  document.getElementById('command').value = '';
  // Whatever would have been started by them has its chance.
  await new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 0)); });
  if (window.owned) problems.push('a string was run');
  for (const element of document.querySelectorAll('*')) {
    for (const { name, value } of element.attributes) {
      if (/^on/.test(name)) problems.push(`a listener in markup: ${name}=${value}`);
      if (/^(href|src)$/.test(name) && !/^(\/[a-z.]*|#[a-z]+)$/.test(value)) problems.push(`an address: ${value}`);
    }
  }
  const after = document.querySelectorAll('script, img, iframe, object, embed, link, style, base, form').length;
  if (after !== before) problems.push(`${after - before} elements more`);
  return { problems, records };
})()
