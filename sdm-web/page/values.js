// What an expression is on the ranks: compared, alone, as numbers, and arrays as a line, a table and a heat map.

import { PLACES, bounds, difference, near, parted, since, stitch, whole } from './arrays.js';
import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { count, counted, label, nth, union, without } from './sets.js';

const WIDTH = 600;
const HEIGHT = 180;
const CELLS_MAX = 100000;
const LINES_MAX = 8;
const CHOICES_MAX = 1000;
const TEXT_MAX = 200;
const ROWS_MAX = 200;
const PLACE_MAX = 80;
const EDGES_MAX = 13;
const ANSWERS_MAX = 16;
const ADDRESSES_MAX = 3;
// The choice of what the same ranks had at the stop before.
const BEFORE = 'before';
// Colours of cells: eight steps, no number, and those that are none of the steps.
const HEATS = ['h0', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7', 'none', 'nan', 'inf', 'low'];
const ASKS = /^\s*(?:\[[^\]]*\]\s*)?(?:outliers|compare|stats|plot)\s+(.*)$/;
const ASKED = [
  ['Outliers', 'outliers', 'which values there are, and who has each'],
  ['Compare', 'compare', 'where it differs from what most have'],
  ['Stats', 'stats', 'min, max, mean, and a histogram'],
  ['Plot', 'plot', 'numbers over ranks, or an array over its elements'],
];

const focus = (tasks) => el('button', { type: 'button', onclick: () => line(`focus ${tasks}`) }, label(tasks));
// What has no digits is called as `stats` and gdb call it.
const odd = (value) => (Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf');
const number = (value) => (typeof value === 'bigint' || Number.isInteger(value) ? String(value) : Number.isFinite(value) ? String(Number(value.toPrecision(5))) : odd(value));
// Hundreds of digits are a power of ten.
const brief = (text) => (text.length > 24 && Number.isFinite(Number(text)) ? String(Number(text)) : text);

// A table of rows, each of which becomes its cells only if there is room for it.
function table(heads, rows, name, made = (row) => row) {
  const more = rows.length > ROWS_MAX ? el('p', { class: 'note' }, `and ${rows.length - ROWS_MAX} more`) : null;
  return [el('table', { class: name }, el('tr', {}, heads.map((head) => (head !== '' ? el('th', { scope: 'col' }, head) : el('td')))),
    rows.slice(0, ROWS_MAX).map((row) => el('tr', {}, made(row).map((cell) => el('td', {}, cell))))), more];
}

let show = () => {};

const verb = (tasks) => (count(tasks) === 1 ? 'has' : 'have');
const cut = (text, most = TEXT_MAX) => (text?.length > most ? `${text.slice(0, most)}...` : text);

// Rows of a value, what it was before, and ranks. Of many addresses, which differ between processes anyway, there is one row.
function folded(values, earlier) {
  const isAddress = ({ value }) => /^(?:\([^()]*\) )?0x[0-9a-f]+$/.test(value);
  if (values.length > ADDRESSES_MAX && values.every(isAddress)) return [{ value: `${values[0].value} and ${values.length - 1} other addresses`, tasks: union(values.map(({ tasks }) => tasks)) }];
  return earlier ? parted(values, earlier) : values;
}

// What a value was, where it is another one now.
const past = ({ value, had }) => (had === undefined || had === value ? '' : cut(had));

// A bar for each number of values between two edges, which are named at the first and the last bar, or at all of few.
function bars(counts, edge) {
  const most = Math.max(1, ...counts);
  const wide = WIDTH / counts.length;
  const name = (at) => `from ${edge(at)} to ${edge(at + 1)}`;
  const edges = upTo(counts.length + 1).filter((at, _, all) => all.length <= EDGES_MAX || at === 0 || at === counts.length);
  return el('svg', { id: 'histogram', role: 'img', viewBox: `0 0 ${WIDTH} ${HEIGHT + 32}`, 'aria-label': `Histogram: ${counts.map((many, at) => `${name(at)}: ${many}`).join(', ')}` },
    edges.map((at) => el('text', { x: at * wide, y: HEIGHT + 28, 'text-anchor': at === 0 ? 'start' : at === counts.length ? 'end' : 'middle' }, edge(at))),
    counts.map((many, at) => {
      const tall = (many / most) * HEIGHT;
      return el('g', {}, el('rect', { class: 'c0 class', x: at * wide + 1, y: HEIGHT - tall, width: Math.max(wide - 2, 1), height: tall }, el('title', {}, `${name(at)}: ${many}`)),
        many ? el('text', { x: at * wide + wide / 2, y: HEIGHT + 12, 'text-anchor': 'middle' }, many) : null);
    }));
}

const upTo = (most) => Array.from({ length: most }, (_, at) => at);
const range = (all) => all.reduce(([a, b], value) => (Number.isFinite(value) ? [Math.min(a, value), Math.max(b, value)] : [a, b]), [Infinity, -Infinity]);
// From 0 to 1. By halves, as the range itself may be too large for a number.
const share = (value, low, high) => (value / 2 - low / 2) / (high / 2 - low / 2 || 1);
const swatch = (colour) => el('span', { class: `swatch ${colour}`, 'aria-hidden': 'true' });

function lines({ expression, over }, exact) {
  const rows = exact.map((row) => ({ ...row, numbers: row.numbers.map(near) }));
  const [low, high] = range(rows.flatMap(({ numbers }) => numbers));
  const most = Math.max(...rows.map(({ numbers }) => numbers.length), 2);
  const x = (at) => (at / (most - 1)) * WIDTH;
  const y = (value) => HEIGHT - share(value, low, high) * HEIGHT;
  const parts = rows.slice(0, LINES_MAX).map(({ numbers, tasks }, at) => {
    let pen = 'M';
    const d = numbers.map((value, index) => {
      if (!Number.isFinite(value)) { pen = 'M'; return ''; }
      const point = `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = 'L';
      return point;
    }).join('');
    return el('path', { class: `curve k${at}`, d, 'data-tasks': tasks }, el('title', {}, label(tasks)));
  });
  if (!(low <= high)) return el('p', { class: 'note' }, 'There is no finite number to draw.');
  const zero = low < 0 && high > 0 ? [el('line', { class: 'zero', x1: 0, x2: WIDTH, y1: y(0).toFixed(1), y2: y(0).toFixed(1) }), el('text', { x: WIDTH, y: (y(0) - 3).toFixed(1), 'text-anchor': 'end' }, '0')] : [];
  const ends = [el('text', { x: 2, y: 8 }, number(high)), el('text', { x: 2, y: HEIGHT }, number(low))];
  const more = rows.length > LINES_MAX ? el('li', {}, `and ${rows.length - LINES_MAX} more, not drawn`) : null;
  return [el('svg', { id: 'plot', role: 'img', viewBox: `-2 -4 ${WIDTH + 4} ${HEIGHT + 8}`, 'aria-label': `${expression} over ${over}, from ${number(low)} to ${number(high)}` }, zero, parts, ends),
    el('ul', { class: 'legend', 'aria-label': 'Lines' }, rows.slice(0, LINES_MAX).map(({ tasks }, at) => el('li', {}, swatch(`k${at}`), label(tasks))), more),
    el('p', { class: 'note' }, `from ${number(low)} to ${number(high)} over ${most} ${over}`)];
}

// Cells from the lowest (dark) to the highest, a path for each step of colour. A class is a row of them; of an array of
// several dimensions it is a block.
function heat({ expression }, exact, columns, from) {
  const rows = exact.map((row) => ({ ...row, numbers: row.numbers.map(near) }));
  const [low, high] = range(rows.flatMap(({ numbers }) => numbers));
  const most = Math.max(...rows.map(({ numbers }) => numbers.length));
  if (!(low <= high) || rows.length * most > CELLS_MAX) return el('p', { class: 'note' }, 'There is no room for a heat map.');
  const wide = columns > 0 ? Math.min(columns, most) : most;
  const tall = Math.ceil(most / wide);
  const beside = columns > 0 ? Math.min(4, Math.ceil(Math.sqrt(rows.length))) : 1;
  const gap = columns > 0 ? 18 : 0;
  const cell = Math.min((WIDTH - gap * (beside - 1)) / (beside * wide), 24);
  // A row of many numbers is seen as well.
  const high_cell = columns > 0 ? cell : Math.max(cell, 8);
  const [across, down] = [wide * cell + gap, tall * high_cell + gap];
  const d = HEATS.map(() => '');
  const counts = { nan: 0, inf: 0, '-inf': 0 };
  rows.forEach(({ numbers }, block) => numbers.forEach((value, at) => {
    const name = value === null || Number.isFinite(value) ? null : odd(value);
    if (name) counts[name] += 1;
    const step = name ? HEATS.indexOf(name === '-inf' ? 'low' : name) : value === null ? 8 : Math.min(7, Math.floor(share(value, low, high) * 8));
    const x = (block % beside) * across + (at % wide) * cell;
    const y = Math.floor(block / beside) * down + gap + Math.floor(at / wide) * high_cell;
    d[step] += `M${x.toFixed(2)} ${y.toFixed(2)}h${cell.toFixed(2)}v${high_cell.toFixed(2)}h-${cell.toFixed(2)}z`;
  }));
  const odds = Object.entries(counts).filter(([, many]) => many > 0);
  const steps = Array.from({ length: 8 }, (_, at) => swatch(`h${at}`));
  const scale = el('p', { class: 'note scale' }, `${number(low)} `, steps, ` ${number(high)}`, odds.map(([name, many]) => [' ', swatch(name === '-inf' ? 'low' : name), `${name} (${many})`]).flat());
  const here = el('p', { class: 'note', id: 'heathere', role: 'status' });
  const [width, height] = [beside * across - gap, Math.ceil(rows.length / beside) * down];
  const svg = el('svg', { id: 'heat', role: 'img', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-label': `${expression} as a heat map of ${rows.length} times ${tall} by ${wide}`, onpointermove: (event) => {
    const to = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [left, top] = [Math.floor(to.x / across), Math.floor(to.y / down)];
    const [row, column] = [Math.floor((to.y - top * down - gap) / high_cell), Math.floor((to.x - left * across) / cell)];
    const found = exact[top * beside + left];
    const value = row >= 0 && column < wide ? found?.numbers[row * wide + column] : undefined;
    if (value !== undefined) here.textContent = `${label(found.owners ? `${found.owners[row * wide + column]}` : found.tasks)}, ${columns > 0 ? `row ${from.rows(row)}, column ${from.columns(column)}` : `element ${from.rows(column)}`}: ${value === null ? 'no number' : Number.isFinite(near(value)) ? value : odd(value)}`;
  } }, d.map((path, step) => (path ? el('path', { class: `heat ${HEATS[step]}`, d: path }) : null)),
  gap ? rows.map(({ tasks }, block) => el('text', { x: (block % beside) * across, y: Math.floor(block / beside) * down + 13 }, label(tasks))) : []);
  return [svg, scale, here];
}

// The numbers of the classes that are asked for, less those of the one, or of the stop, that they are compared with, and how many
// are in a row. The blocks of all ranks are one array where that is chosen.
function chosen(plot, before) {
  let rows = byId('of').value === '' ? plot.lines : plot.lines.filter(({ tasks }) => tasks === byId('of').value);
  const less = plot.lines.find(({ tasks }) => tasks === byId('less').value);
  if (byId('less').value === BEFORE) rows = since(plot, rows, before);
  else if (less) rows = rows.map((row) => ({ ...row, numbers: difference(row.numbers, less.numbers) }));
  const amount = (id) => Number(byId(id).value);
  const columns = amount('columns');
  if (byId('stitch').value === '' || plot.over === 'ranks' || rows.length === 0) return { rows, columns };
  const one = stitch(rows, { columns, isDown: byId('stitch').value === 'columns', line: amount('line-length'), ghosts: amount('ghosts'), most: CELLS_MAX });
  if (one?.row.numbers.length === 0) return { rows: [], columns, note: `Nothing is left of the arrays without ${counted(amount('ghosts'), 'ghost')} at each edge.` };
  return one ? { rows: [one.row], columns: one.columns, isStitched: true } : { rows, columns, note: 'There is no room for the arrays of all ranks as one.' };
}

const cell = (value) => (value === null || value === undefined ? '-' : number(value));

// Saves rows of cells under the name of an expression.
function save(name, rows) {
  const quoted = (it) => (typeof it === 'bigint' ? it : typeof it === 'number' ? (Number.isFinite(it) ? it : odd(it)) : it === null || it === undefined ? '' : `"${it.replaceAll('"', '""')}"`);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([rows.map((row) => row.map(quoted).join(',')).join('\n'), '\n'], { type: 'text/csv' }));
  link.download = `${name.replaceAll(/[^\w.-]+/g, '_').slice(0, 60)}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

// What a plot is called with what it is compared with: an earlier one by how many stops lie between, and when it was.
function titleOf({ expression }, before) {
  const less = byId('less').value;
  if (less === '') return expression;
  return `${expression}, less ${less === BEFORE ? `that of ${before.name}` : `that of ${label(less)}`}`;
}

function drawPlot(plot, before) {
  const { rows, columns, note, isStitched } = chosen(plot, before?.found);
  const title = titleOf(plot, before);
  const most = Math.max(...rows.map(({ numbers }) => numbers.length), 0);
  if (most === 0) return show(title, el('p', { class: 'note' }, note ?? 'There is no number.'));
  const own = columns === (plot.row ?? 0) && !isStitched && plot.over !== 'ranks';
  const from = own ? bounds(plot.expression, { row: columns, most, given: plot.bounds }) : PLACES;
  const first = rows.slice(0, LINES_MAX);
  const isTable = columns > 0 && rows.length === 1;
  const pair = (i, j) => (from.isFortran ? `(${j},${i})` : `[${i}][${j}]`);
  const index = (at) => (plot.over === 'ranks' ? nth(plot.lines[0].tasks, at)
    : columns > 0 && own ? pair(from.rows(Math.floor(at / columns)), from.columns(at % columns)) : columns > 0 ? at : from.rows(at));
  const kind = plot.over === 'ranks' ? 'rank' : 'element';
  const heads = upTo(Math.min(columns, most)).map(from.columns);
  const grid = isTable ? upTo(Math.ceil(most / columns)).map((at) => [from.rows(at), ...rows[0].numbers.slice(at * columns, (at + 1) * columns)]) : [];
  const named = ({ tasks }) => (isStitched ? 'all ranks' : label(tasks));
  const csv = () => save(plot.expression, isTable ? [[`${title}, ${named(rows[0])}`, ...heads], ...grid]
    : [[kind, ...rows.map((row) => `${title}, ${named(row)}`)], ...upTo(most).map((at) => [index(at), ...rows.map(({ numbers }) => numbers[at])])]);
  const numbers = isTable ? table(['row', ...heads], grid.map(([at, ...values]) => [at, ...values.map(cell)]), 'numbers')
    : table([kind, ...first.map(({ tasks }, at) => [columns > 0 ? null : swatch(`k${at}`), focus(tasks)])], upTo(most), 'numbers', (at) => [index(at), ...first.map((row) => cell(row.numbers[at]))]);
  const way = own && columns > 0 ? el('p', { class: 'note' }, from.isFortran ? 'The first index goes to the right, the last one down.' : 'In C and C++ the last index goes to the right, in Fortran the first one.') : null;
  const room = el('div', { class: 'wide', role: 'group', tabindex: 0, 'aria-label': `Numbers of ${plot.expression}` }, numbers.filter(Boolean));
  show(title, note ? el('p', { class: 'note' }, note) : null, columns > 0 ? null : lines(plot, rows), heat(plot, rows, columns, from),
    columns > 0 && !isStitched ? lines(plot, rows) : null, el('button', { type: 'button', onclick: csv }, 'Save as CSV'), way, room);
}

export function start() {
  let last = null;
  // The last answer for an expression, the stop that it is of, and the answer of a stop before.
  const answers = new Map();
  let stop = 0;
  // Stops since the page was opened: those that come together are one, as they are looked at together.
  let isMoved = false;
  const settle = () => { stop += isMoved ? 1 : 0; isMoved = false; };
  // What was asked for and is not answered, what has been said since, and how many lines are not carried out.
  let pending = null;
  let open = 0;
  const again = () => last && !pending && drawPlot(last, answers.get(`plot ${last.expression}`).before);
  // Keeps an answer for a later stop; returns what it was at an earlier one, and how that is called.
  const remember = (key, found) => {
    settle();
    const earlier = answers.get(key);
    const before = earlier?.stop === stop ? earlier.before : earlier;
    if (before) before.name = stop - before.stop === 1 ? 'the stop before' : `${before.when}, ${stop - before.stop} stops before`;
    answers.delete(key);
    // Of those before this one no further ones are kept.
    answers.set(key, { found, stop, when: new Date().toLocaleTimeString(), before: before && { ...before, before: null } });
    if (answers.size > ANSWERS_MAX) answers.delete(answers.keys().next().value);
    return before;
  };
  // What is asked for anew at each stop, and the stop that it was asked for last.
  const follows = { line: '', stop: 0, isFree: false };
  const follow = () => {
    if (!byId('follow').checked || !follows.line || !follows.isFree || isMoved || follows.stop === stop) return;
    follows.stop = stop;
    line(follows.line);
  };
  const input = el('input', { id: 'expression', size: 14, autocomplete: 'off', spellcheck: 'false' });
  const choice = (id, name) => el('span', { class: 'pair' }, el('label', { for: id }, name), el('select', { id, onchange: again }));
  const amount = (id, name, least) => el('span', { class: 'pair' }, el('label', { for: id }, name), el('input', { id, type: 'number', min: least, value: least, onchange: ({ target }) => {
    // What is no such number becomes the nearest one, as it is used.
    target.value = Math.max(Math.floor(Number(target.value)) || 0, least);
    again();
  } }));
  const parts = el('p', { id: 'parts' }, choice('of', 'Of'), choice('less', 'less'), amount('columns', 'Columns', 0),
    el('span', { class: 'pair' }, choice('stitch', 'Ranks'), amount('line-length', 'of', 1)), amount('ghosts', 'Ghosts', 0));
  const form = el('form', { id: 'valuesform' }, el('label', { for: 'expression' }, 'Expression'), input,
    ASKED.map(([name, word, title]) => el('button', { type: word === 'outliers' ? 'submit' : 'button', title, 'data-word': word, onclick: (event) => {
      event.preventDefault();
      if (input.value.trim()) line(`${word} ${input.value.trim()}`);
    } }, name)));
  form.append(el('span', { class: 'pair' }, el('input', { id: 'follow', type: 'checkbox', onchange: follow }), el('label', { for: 'follow' }, 'at each stop')));
  fill(byId('values'), form, parts, el('div', { id: 'shown', role: 'region', 'aria-label': 'Values' }), el('div', { id: 'locals' }));
  parts.hidden = true;
  fill(byId('stitch'), [['', 'apart'], ['rows', 'in rows'], ['columns', 'in columns']].map(([value, name]) => el('option', { value }, name)));
  show = (title, ...found) => {
    parts.hidden = last === null;
    pending = null;
    byId('shown').classList.remove('old');
    fill(byId('shown'), el('h3', {}, title), found.flat(2).filter(Boolean));
  };
  const answer = (...found) => {
    last = null;
    show(...found);
  };

  const fail = (text) => {
    last = null;
    pending = null;
    fill(byId('shown'), el('pre', { class: 'failed', role: 'alert' }, text));
  };
  // What was there belongs to another question from now on.
  on('typed', ({ text: whole }) => {
    open = (follows.isFree && !pending ? 0 : open) + 1;
    const text = whole.replace(/^.*?\(sdm\) */s, '').trim();
    const asks = ASKS.exec(text);
    if (!asks) return;
    // Who asks in the console can go on here. What is being typed here stays.
    if (document.activeElement !== input) input.value = asks[1];
    pending = { text, said: [] };
    settle();
    follows.line = text;
    follows.stop = stop;
    parts.hidden = true;
    fill(byId('shown'), el('p', { class: 'note' }, `${text} ...`));
  });
  on('said', ({ text }) => pending?.said.push(text));
  // What the page's server says in place of a record is in no console.
  on('notice', ({ text }) => { if (pending && / too long for the page$/.test(text)) fail(`${text}: ask for a part of it`); });
  on('prompt', ({ asked, question }) => {
    open = Math.max(open - Number(asked), 0);
    // What was said before it was its turn answers an earlier line.
    if (pending && asked && open > 0) pending.said = [];
    else if (pending && asked) fail(pending.said.join('').trim() || `${pending.text}: no answer`);
    follows.isFree = asked && !question;
    follow();
  });

  on('values', ({ expression, values }) => {
    // What `display` shows stands below.
    if (/^\d+: /.test(expression)) return;
    const all = values.reduce((sum, row) => sum + row.count, 0);
    const before = remember(`outliers ${expression}`, values);
    const rows = before ? [...parted(values.slice(0, ROWS_MAX), before.found), ...values.slice(ROWS_MAX)] : values;
    answer(expression, table(['ranks', '', 'value', ...(before ? [`at ${before.name}`] : [])], rows, null, (row) =>
      [focus(row.tasks), el('span', { class: 'share' }, el('span', { class: 'bar', 'width%': (row.count / all) * 100 })), cut(row.value), ...(before ? [cut(row.had) ?? '-'] : [])]));
  });
  on('comparison', ({ expression, reference, value, others }) => answer(expression,
    el('p', {}, focus(reference), ` ${verb(reference)} ${cut(value)}`),
    table(['ranks', 'differ in', 'first difference', `${label(reference)} ${verb(reference)}`, 'these have'], others, null, (other) =>
      [focus(other.tasks), `${other.differing} of ${other.of}`, `${/^[\w.:>[\]()-]+$/.test(expression) ? expression : `(${expression})`}${other.path}`, cut(other.reference) ?? '-', cut(other.value) ?? '-'])));
  // A sum in another order of the ranks differs in its last digits: where digits are cut, a power of ten says so.
  const rounded = (value) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const text = value.toPrecision(12);
    return text.includes('e+') ? text.replace(/\.?0*e/, 'e') : Number(text);
  };
  on('stats', ({ expression, count: all, min, max, mean, stddev, sum, histogram, nan, inf, minus_inf: minus }) => {
    // By shares of the ends, as the range itself may be too large for a number.
    const edge = (at) => number(histogram.low * (1 - at / histogram.counts.length) + histogram.high * (at / histogram.counts.length));
    const rows = [['min', min && brief(`${min.value}`), min?.on.tasks && focus(min.on.tasks)], ['max', max && brief(`${max.value}`), max?.on.tasks && focus(max.on.tasks)], ['mean', rounded(mean), null], ['stddev', rounded(stddev), null], ['sum', rounded(sum), null],
      ...[['nan', nan], ['inf', inf], ['-inf', minus]].filter(([, it]) => it?.count).map(([name, it]) => [name, it.count, it.tasks && focus(it.tasks)])];
    answer(expression, histogram ? bars(histogram.counts, edge) : null,
      el('p', { class: 'note' }, `${counted(all, 'number')}${histogram ? `, the bars from ${number(histogram.low)} to ${number(histogram.high)}` : ''}`), table(['', 'value', 'ranks'], rows.filter(([, value]) => value !== null && value !== undefined)));
  });
  on('stop', () => {
    isMoved = true;
    byId('shown').classList.add('old');
  });
  on('plot', (record) => {
    const plot = whole(record);
    const isNew = last?.expression !== plot.expression;
    last = plot;
    const before = remember(`plot ${plot.expression}`, plot);
    const had = [byId('of').value, byId('less').value];
    const names = plot.over === 'ranks' ? [] : plot.lines.slice(0, CHOICES_MAX).map(({ tasks }) => tasks);
    ['of', 'less'].forEach((id, at) => {
      fill(byId(id), el('option', { value: '' }, ['all', 'nothing'][at]), id === 'less' && before ? [el('option', { value: BEFORE }, before.name)] : [], names.map((tasks) => el('option', { value: tasks }, label(tasks))));
      // What was chosen for the same expression stays, as at the next stop.
      if (!isNew && (names.includes(had[at]) || (had[at] === BEFORE && before))) byId(id).value = had[at];
    });
    if (isNew) byId('columns').value = plot.row ?? 0;
    drawPlot(plot, before);
  });
  let sight = null;
  // What the ranks had where they stood before in the same function, and the stop that `sight` is of.
  let earlier = null;
  let seen = 0;
  let whom = '';
  // The frame that is selected on these ranks, as `up` and `frame` name it.
  const framed = (tasks) => {
    const those = sight.frames.filter((it) => without(tasks, [it.tasks]) !== union([tasks]));
    return those.length === 1 ? `: #${those[0].level} ${cut(those[0].place, PLACE_MAX)}` : those.length > 1 ? ` in ${those.length} frames` : '';
  };
  // Ranks in other functions have other variables: those of the same ranks stand together, and whose they are is said.
  const groups = (title, all, before, isFramed) => {
    const had = new Map(before?.map(({ name, values }) => [name, values]));
    const found = Map.groupBy(all, ({ values }) => union(values.map(({ tasks }) => tasks)));
    return [...found].sort(([a], [b]) => count(b) - count(a)).flatMap(([tasks, those]) => [
      el('h3', {}, tasks === whom ? title : [`${title} of `, focus(tasks)], isFramed ? framed(tasks) : ''),
      ...variables(those.flatMap(({ name, values }) => folded(values, had.get(name)).map((row, at, all) =>
        [at === 0 ? name : '', cut(row.value), past(row), all.length > 1 || union([row.tasks]) !== tasks ? row.tasks : '']))),
    ]);
  };
  // There is no room for what no variable was before, and for ranks where all have the same values.
  const variables = (rows) => {
    const heads = ['name', 'value', 'at the stop before', 'ranks'];
    const shown = heads.map((_, at) => at < 2 || rows.some((row) => row[at] !== ''));
    return table(heads.filter((_, at) => shown[at]), rows, null, ([name, value, had, tasks]) => [name && el('code', {}, name), value, had, tasks && focus(tasks)].filter((_, at) => shown[at]));
  };
  const drawSight = () => sight && fill(byId('locals'), [...groups('Watched', sight.watched, earlier?.watched), ...groups('Variables', sight.locals, earlier?.locals, true), sight.missing ? el('p', { class: 'note' }, sight.missing) : null,
    sight.locals.length === 0 && sight.frames.length > 0 ? el('p', { class: 'note' }, `No variables${framed(whom)}`) : null].filter(Boolean));
  on('sight', (record) => {
    settle();
    if (stop !== seen) earlier = sight?.source?.function === record.source?.function ? sight : null;
    seen = stop;
    sight = record;
    drawSight();
    follow();
  });
  on('board', ({ focus: tasks, stale, running }) => {
    if (stale && running) byId('shown').classList.add('old');
    const had = whom;
    // In the form in which sets are joined here.
    whom = union([tasks]);
    if (whom !== had) drawSight();
  });
}
