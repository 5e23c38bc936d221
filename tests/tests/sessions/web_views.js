// Gives the page records as of sessions that are hard to come by, and returns what it shows otherwise than it should.
(async () => {
  const { deliver } = await import('/link.js');
  const problems = [];
  const equal = (what, found, expected) => {
    const [a, b] = [found, expected].map((it) => JSON.stringify(it));
    if (a !== b) problems.push(`${what}: ${a} in place of ${b}`);
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const texts = (selector) => all(selector).map((it) => it.textContent);
  const row = (tasks, state, more) => ({ tasks, count: 1, state, health: 'reachable', program: '', last: null, crashed: false, ...more });
  const board = (more) => ({ kind: 'board', prompt: '', all: '0-7', focus: '0-7', running: '', stale: false, breakpoints: [], ranks: [row('0-7', 'stopped')], ...more });
  const sight = (more) => ({ kind: 'sight', stacks: null, source: null, frames: [], locals: [], watched: [], missing: '', ...more });

  // The first look takes its time, and nothing is said of ranks that nobody has looked at.
  deliver(sight());
  deliver(board({ stale: true }));
  equal('first look', texts('#stacksnote'), ['Looking ...']);
  deliver(board({ running: '0-7', ranks: [row('0-7', 'running')] }));
  equal('all run', texts('#stacksnote'), ['No rank is stopped: Interrupt (the key i) stops the running ranks.']);

  // A state is one class, and has the same colour in the map and above it.
  const crash = { crashed: true, last: { kind: 'stop', reason: 'signal', signal: 'SIGSEGV' } };
  deliver(board({ ranks: [row('0-3', 'running'), row('4', 'stopped', { last: { kind: 'stop', reason: 'at_main' } }), row('5', 'stopped'), row('6', 'stopped', crash), row('7', 'running', { health: 'lost' })] }));
  equal('states', texts('#states li'), ['4 running', '2 stopped', '1 stopped at a crash', '1 lost']);
  equal('classes', all('#mapcells .class').map((it) => `${it.getAttribute('class')} ${it.dataset.tasks}`), ['class s-running 0-3', 'class s-stopped 4-5', 'class s-crashed 6', 'class s-lost 7']);
  equal('legend', texts('#maplegend li'), ['running ranks 0-3 (4)', 'stopped ranks 4-5 (2)', 'stopped at a crash, SIGSEGV rank 6', 'lost rank 7']);
  const colour = (it) => getComputedStyle(it).getPropertyValue('--colour');
  equal('colours', all('#states li').map(colour), all('#mapcells .class').map(colour));
  equal('distinct colours', new Set(all('#states li').map(colour)).size, 4);

  // The cell under the mouse is named.
  document.getElementById('tab-map').click();
  const { x, y } = all('#mapcells text').find((it) => it.textContent === '6').getBoundingClientRect();
  document.getElementById('mapsvg').dispatchEvent(new PointerEvent('pointermove', { clientX: x + 2, clientY: y + 2 }));
  equal('cell', texts('#maphere'), ['rank 6: stopped at a crash, SIGSEGV']);

  // Many numbers are coloured by ranges.
  const by = document.getElementById('mapby');
  by.value = 'value';
  by.dispatchEvent(new Event('change'));
  deliver({ kind: 'values', expression: 'w', values: Array.from({ length: 9 }, (_, at) => ({ tasks: `${at}`, count: 1, value: `${at * 100}` })) });
  equal('ranges', texts('#maplegend li').slice(0, 2), ['w from 0 to 100 rank 0', 'w from 100 to 200 rank 1']);
  by.value = 'state';
  by.dispatchEvent(new Event('change'));

  // Recursion of another depth is another row.
  const frame = (name, line, repeat) => ({ module: '', function: name, file: 'a.c', line, repeat });
  const stack = (tasks, repeat) => ({ tasks, count: 4, threads: 4, frames: [frame('main', 9, 1), frame('down', 5, repeat)] });
  const stacks = { type: 'stacks', tasks: '0-7', count: 8, others: '', bare: '', stacks: [stack('0-3', 3), stack('4-7', 5)] };
  const source = { path: '/a.c', function: 'down', line: 5, first: 4, lines: ['x', 'y'], caller: false, tasks: '0-7' };
  const named = (name, ...values) => ({ name, values: values.map(([tasks, value]) => ({ tasks, count: 1, value })) });
  deliver(sight({ stacks, source, locals: [named('step', ['0-7', '60']), named('fault', ['3', 'FAULT_HANG']), named('sum', ['0-2,4-7', '1'])] }));
  deliver(board());
  equal('recursion', all('#tree [role=treeitem]').slice(1).map((it) => it.ariaLabel.replace(', changed', '')), ['down (3 times), a.c:5: ranks 0-3 (4)', 'down (5 times), a.c:5: ranks 4-7 (4)']);
  // Who has a variable is said where not everybody has it.
  equal('variables', all('#locals tr').map((it) => [...it.cells].map((cell) => cell.textContent)).filter(([name]) => name !== 'name'),
    [['step', '60'], ['sum', '1'], ['fault', 'FAULT_HANG']]);
  equal('whose variables', texts('#locals h3'), ['Variables', 'Variables of ranks 0-2,4-7 (7)', 'Variables of rank 3']);

  // Whose frame it is that has them, also where it is a caller's.
  const main = { tasks: '0-7', count: 8, level: 1, place: 'main () at a.c:9' };
  deliver(sight({ stacks, source, frames: [main], locals: [named('n', ['0-7', '3'])] }));
  equal('selected frame', texts('#locals h3'), ['Variables: #1 main () at a.c:9']);
  deliver(sight({ stacks, source, frames: [{ ...main, tasks: '0-6', count: 7 }, { tasks: '7', count: 1, level: 0, place: 'down () at a.c:5' }], locals: [named('n', ['0-7', '3']), named('depth', ['7', '5'])] }));
  equal('selected frames', texts('#locals h3'), ['Variables in 2 frames', 'Variables of rank 7: #0 down () at a.c:5']);
  deliver(sight({ stacks, source, frames: [main] }));
  equal('frame without variables', texts('#locals'), ['No variables: #1 main () at a.c:9']);

  // What is left out is counted, also where it is one.
  const callees = (many) => ({ ...stacks, stacks: Array.from({ length: many }, (_, at) => ({ tasks: `${at}`, count: 1, threads: 1, frames: [frame('main', 9, 1), frame(`f${at}`, 5, 1)] })) });
  for (const [many, note] of [[61, '1 more row, rank 60: a smaller focus shows them'], [62, '2 more rows, ranks 60-61 (2): a smaller focus shows them']]) {
    deliver(sight({ stacks: { ...callees(many), tasks: `0-${many - 1}`, count: many } }));
    equal('rows left out', texts('#tree .note'), [note]);
  }
  deliver(sight({ stacks, source, locals: [named('step', ['0-7', '60']), named('fault', ['3', 'FAULT_HANG']), named('sum', ['0-2,4-7', '1'])] }));

  const cells = (selector) => all(selector).map((it) => [...it.cells].map((cell) => cell.textContent));
  deliver({ kind: 'stop' });
  deliver(sight({ stacks, source, locals: [named('step', ['0-7', '61']), named('sum', ['0-1', '1'], ['2,4-7', '2'])] }));
  equal('variables at the stop before', cells('#locals tr'), [
    ['name', 'value', 'at the stop before'], ['step', '61', '60'],
    ['name', 'value', 'at the stop before', 'ranks'], ['sum', '1', '', 'ranks 0-1 (2)'], ['', '2', '1', 'ranks 2,4-7 (5)']]);

  // What was listed stays until the ranks are elsewhere.
  const shown = () => document.querySelector('#source code').textContent;
  deliver({ kind: 'listing', file: '/b.c', tasks: '0-7', lines: [{ line: 1, text: 'z', here: '', count: 0 }] });
  deliver(sight({ stacks, source }));
  equal('listing', shown(), '/b.c');
  deliver({ kind: 'stop' });
  deliver(sight({ stacks, source }));
  equal('source after a stop', shown(), '/a.c');

  // An expression that fails leaves no picture of another one.
  const plot = (expression, numbers, more) => ({ kind: 'plot', expression, over: 'elements', row: null, lines: [{ tasks: '0-7', count: 8, numbers, not_finite: [] }], ...more });
  const ask = (text) => deliver({ kind: 'typed', text: `[all 8: 8 stopped] (sdm) ${text}` });
  deliver(plot('line[2:4]', [1, 2, 3]));
  equal('indices', texts('#shown tr td:first-child').filter(Boolean), ['2', '3', '4']);
  deliver(plot('line[2:8:3]', [1, 2, 3]));
  equal('indices with a stride', texts('#shown tr td:first-child').filter(Boolean), ['2', '5', '8']);
  deliver(plot('ranks', [1, 2], { over: 'ranks', lines: [{ tasks: '1-5/4', count: 2, numbers: [1, 2], not_finite: [] }] }));
  equal('ranks', texts('#shown tr td:first-child').filter(Boolean), ['1', '5']);
  ask('plot nonsense(');
  equal('picture while another one is asked for', all('#shown svg, #shown table').length, 0);
  deliver({ kind: 'said', text: 'plot: a syntax error\n' });
  deliver({ kind: 'prompt', text: '(sdm)', question: false, asked: true });
  equal('failure', [all('#shown svg, #shown table, #shown button').length, texts('#shown [role=alert]')], [0, ['plot: a syntax error']]);

  // What an earlier line says is not the answer to this one.
  const busy = { kind: 'prompt', text: '', question: false, asked: false };
  const ready = { kind: 'prompt', text: '(sdm)', question: false, asked: true };
  ask('continue');
  deliver(busy);
  ask('plot wrong(');
  deliver(busy);
  deliver({ kind: 'said', text: 'stopped at breakpoint 1\n' });
  deliver(ready);
  equal('answer to an earlier line', texts('#shown'), ['plot wrong( ...']);
  deliver({ kind: 'said', text: 'plot: a syntax error\n' });
  deliver(ready);
  equal('answer in its turn', texts('#shown [role=alert]'), ['plot: a syntax error']);

  ask('plot large');
  deliver({ kind: 'notice', text: 'a record of 9999999 bytes is too long for the page' });
  deliver({ kind: 'said', text: 'large: 1000000 elements\n' });
  deliver({ kind: 'prompt', text: '(sdm)', question: false, asked: true });
  equal('too long', texts('#shown [role=alert]'), ['a record of 9999999 bytes is too long for the page: ask for a part of it']);

  // What a value was where it was asked for before, and asking for it anew.
  const values = (...rows) => ({ kind: 'values', expression: 'v', values: rows.map(([tasks, value]) => ({ tasks, count: 1, value })) });
  deliver(values(['0-5', '1'], ['6-7', '2']));
  deliver({ kind: 'stop' });
  deliver(values(['0-3,6-7', '1'], ['4-5', '3']));
  equal('values at the stop before', cells('#shown tr'), [['ranks', '', 'value', 'at the stop before'], ['ranks 0-3 (4)', '', '1', '1'], ['ranks 6-7 (2)', '', '1', '2'], ['ranks 4-5 (2)', '', '3', '1']]);
  const [send, sent] = [window.fetch, []];
  window.fetch = (path, { body }) => { sent.push(body); return Promise.resolve(new Response('')); };
  const free = { kind: 'prompt', text: '(sdm)', question: false, asked: true };
  ask('outliers v');
  deliver(values(['0-7', '1']));
  document.getElementById('follow').click();
  deliver(free);
  equal('nothing is asked anew without a stop', sent, []);
  deliver({ kind: 'stop' });
  deliver(free);
  deliver(sight({ stacks, source }));
  deliver(sight({ stacks, source }));
  equal('asked anew at a stop', sent, ['outliers v']);
  document.getElementById('follow').click();
  window.fetch = send;

  // What is no finite number, and a range that is too large for a number.
  ask('plot special');
  deliver(plot('special', [null, null, null, 1e308, -1e308, 0], { lines: [{ tasks: '0-7', count: 8, numbers: [null, null, null, 1e308, -1e308, 0], not_finite: [['nan', 0], ['inf', 1], ['-inf', 2]].map(([value, at]) => ({ value, at })) }] }));
  equal('numbers', texts('#shown tr td:last-child'), ['nan', 'inf', '-inf', '1e+308', '-1e+308', '0']);
  equal('outlines', all('#shown path').filter((it) => /NaN|Infinity/.test(it.getAttribute('d'))).length, 0);
  equal('cells', all('#heat path').map((it) => it.getAttribute('class')), ['heat h0', 'heat h4', 'heat h7', 'heat nan', 'heat inf', 'heat low']);
  const part = (count) => ({ count, tasks: count ? '0-7' : '' });
  const end = (value) => ({ value, on: part(8) });
  deliver({ kind: 'stats', expression: 'special[0:7]', tasks: '0-7', count: 3, min: end(`-1${'0'.repeat(308)}`), max: end('1e308'), mean: 0, stddev: null, sum: 0, nan: part(8), inf: part(8), minus_inf: part(16), histogram: { low: -1e308, high: 1e308, counts: [1, 1], below: 0, above: 0 } });
  equal('statistics', all('#shown tr').slice(1).map((it) => [...it.cells].slice(0, 2).map((cell) => cell.textContent).join(' ')), ['min -1e+308', 'max 1e308', 'mean 0', 'sum 0', 'nan 8', 'inf 8', '-inf 16']);
  equal('bars', texts('#histogram title'), ['from -1e+308 to 0: 1', 'from 0 to 1e+308: 1']);

  // Rows and columns have the indices that the program has; of Fortran's the first one goes to the right.
  const heads = () => [texts('#shown .numbers th').slice(1), texts('#shown .numbers td:first-child')];
  deliver(plot('g[2:3][5:7]', [1, 2, 3, 4, 5, 6], { row: 3 }));
  equal('bounds in C', heads(), [['5', '6', '7'], ['2', '3']]);
  deliver(plot('g[0:4:4][1:7:3]', [1, 2, 3, 4, 5, 6], { row: 3 }));
  equal('strides in C', heads(), [['1', '4', '7'], ['0', '4']]);
  deliver(plot('u(1:5:2,4:7:3)', [1, 2, 3, 4, 5, 6], { row: 3 }));
  equal('strides in Fortran', heads(), [['1', '3', '5'], ['4', '7']]);
  deliver(plot('u(-1:1,4:5)', [1, 2, 3, 4, 5, 6], { row: 3 }));
  equal('bounds in Fortran', heads(), [['-1', '0', '1'], ['4', '5']]);
  deliver(plot('whole', [1, 2, 3, 4, 5, 6], { row: 3, bounds: '-1:1,4:5' }));
  equal('declared bounds', heads(), [['-1', '0', '1'], ['4', '5']]);
  // What is older than a stop says so.
  const isOld = () => document.getElementById('shown').classList.contains('old');
  equal('new', isOld(), false);
  deliver(board({ stale: true }));
  equal('looked at', isOld(), false);
  deliver(board({ stale: true, running: '0-7' }));
  equal('old', isOld(), true);
  deliver(board());
  // Blocks that are nothing but ghosts.
  const enter = (id, value) => { const it = document.getElementById(id); it.value = value; it.dispatchEvent(new Event('change')); };
  enter('stitch', 'rows');
  enter('ghosts', 9);
  equal('nothing but ghosts', [all('#shown svg').length, texts('#shown .note')], [0, ['Nothing is left of the arrays without 9 ghosts at each edge.']]);
  enter('stitch', '');

  // Each circle is drawn and marked, and a group that waits within itself has an arrow.
  const node = (tasks) => ({ tasks, count: 1, kind: 'waits', what: 'waiting in MPI_Recv' });
  const edge = ([from, to]) => ({ from, to, waits: 1 });
  deliver({ kind: 'diagnosis', step: 'deadlock', conclusion: 'x', suspects: '', held_up_by: '', circle: [0, 1, 2], findings: [],
    graph: { nodes: [...['0', '1', '2', '3', '4', '5-7'].map(node)], edges: [[0, 1], [1, 2], [2, 0], [3, 4], [4, 3], [5, 5]].map(edge), circles: [[0, 1, 2], [3, 4]] } });
  equal('circles', [all('.wait.circle').length, texts('.wait:not(.circle) title')], [5, ['ranks 5-7 (3) for one another: waiting in MPI_Recv']]);

  // Boxes and places are reached by the keyboard.
  const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  const lines = [];
  window.fetch = (path, { body }) => { lines.push(body); return Promise.resolve(new Response('')); };
  document.getElementById('tab-waits').click();
  document.querySelector('#waitssvg [tabindex="0"]').focus();
  for (const key of ['ArrowRight', 'ArrowDown', 'Enter', 'End', 'Enter']) press(key);
  equal('boxes by keys', lines, ['focus 2', 'focus 5-7']);
  deliver({ kind: 'diagnosis', step: 'deadlock', conclusion: 'x', suspects: '', held_up_by: '', circle: [], findings: [{ tasks: '0', what: 'waiting in MPI_Recv, called from get () at a.c:60; nothing changed', evidence: [] }],
    graph: { nodes: ['0', '1'].map((tasks) => ({ ...node(tasks), what: 'waiting in MPI_Recv, called from get () at a.c:61' })), edges: [edge([0, 1])], circles: [] } });
  for (const list of ['edges', 'findings']) document.querySelector(`#${list} .code`).click();
  equal('places of waits', lines.slice(2), ['list a.c:61', 'list a.c:60']);
  equal('texts of waits', texts('#edges li'), ['rank 0 for rank 1: waiting in MPI_Recv, called from get () at a.c:61']);
  const flame = (depth, tasks) => ({ depth, function: 'f', file: 'a.c', lines: [1, 1], times: 4, parts: [4], tasks });
  deliver({ kind: 'profile', nodes: [flame(0, '0-7'), flame(1, '0-3')], parts: 1, span_ms: 10, classes: [] });
  document.querySelector('#flame [tabindex="0"]').focus();
  for (const key of ['ArrowDown', 'Enter']) press(key);
  equal('frames by keys', lines.slice(4), ['focus 0-3']);
  window.fetch = send;

  // Long names and values leave room for the ranks.
  const long = (size) => 'x'.repeat(size);
  const far = { ...stack('0-6', 1), frames: [frame(`solve(${long(90)})`, 5, 1)] };
  deliver(sight({ stacks: { ...stacks, stacks: [far, { ...stack('7', 1), count: 1 }] }, source, locals: [named(long(60), ['0-3', long(180)], ['4-7', '2'])] }));
  deliver(values(['0-3', long(180)], ['4-7', '2']));
  const wide = (it, around) => it.getBoundingClientRect().right > around.getBoundingClientRect().right;
  equal('rows wider than the stacks', all('#tree .tasks').filter((it) => wide(it, it.parentElement)).length, 0);
  equal('tables wider than the page', all('#values table').filter((it) => wide(it, document.getElementById('values'))).length, 0);

  deliver(sight({ source: { ...source, lines: [long(200), long(200)], tasks: '0-6' } }));
  document.getElementById('tab-source').click();
  equal('ranks beside a long line', all('#source .here td:last-child').filter((it) => wide(it, document.getElementById('source'))).length, 0);
  // A line of the session's text is one line of the console.
  const log = document.getElementById('log');
  for (let at = 0; at < 60; at += 1) deliver({ kind: 'said', text: long(72) });
  // The console is filled once for what comes together.
  await new Promise((done) => setTimeout(done));
  equal('height of a line', new Set([...log.children].slice(-60).map((it) => Math.round(it.getBoundingClientRect().height))).size === 1 && log.lastChild.getBoundingClientRect().height < 30, true);
  deliver({ kind: 'comparison', expression: 'part', reference: '0', value: '1', others: [{ tasks: '1', differing: 1, of: 4, path: '.rank', reference: '0', value: '1' }] });
  equal('difference', cells('#shown tr')[1], ['rank 1', '1 of 4', 'part.rank', '0', '1']);

  // Rows whose ranks are others than at the stop before are marked, and the stops are a flame graph.
  deliver(sight({ stacks, source }));
  deliver({ kind: 'stop' });
  deliver(sight({ stacks: { ...stacks, stacks: [stack('0-4', 3), stack('5-7', 5)] }, source }));
  equal('changed rows', all('#tree [role=treeitem]').filter((it) => it.querySelector(':scope > .row .new')).map((it) => it.ariaLabel),
    ['down (3 times), a.c:5: ranks 0-4 (5), changed', 'down (5 times), a.c:5: ranks 5-7 (3), changed']);
  document.getElementById('tab-profile').click();
  const of = document.getElementById('flameof');
  of.value = 'stops';
  of.dispatchEvent(new Event('change'));
  const slider = document.getElementById('flamepart');
  slider.value = slider.max;
  slider.dispatchEvent(new Event('input'));
  equal('last stop', texts('#flame title'), ['main at a.c:9: 100.0 %, ranks 0-7 (8)', 'down at a.c:5: 100.0 %, ranks 0-7 (8)']);

  // A button is no answer to a question.
  deliver({ kind: 'prompt', text: 'Delete all breakpoints? (y or n)', question: true, asked: true });
  document.querySelector("[data-line='stacks']").click();
  equal('question', texts('#link'), ['The console asks a question: answer it first.']);
  deliver({ kind: 'prompt', text: '(sdm)', question: false, asked: true });
  equal('after the question', texts('#link'), ['']);
  return problems;
})()
