// What an expression is on the ranks: compared, alone, as numbers, and arrays as a line, a table and a heat map.

import { difference, since, stitch } from './arrays.js';
import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { count, label, nth } from './sets.js';

const WIDTH = 600;
const HEIGHT = 180;
const CELLS_MAX = 100000;
const LINES_MAX = 8;
const CHOICES_MAX = 1000;
const TEXT_MAX = 200;
const ROWS_MAX = 200;
const PLOTS_MAX = 16;
// The choice of what the same ranks had at the stop before.
const BEFORE = 'before';
const ASKED = [
  ['Outliers', 'outliers', 'which values there are, and who has each'],
  ['Compare', 'compare', 'where it differs from what most have'],
  ['Histogram', 'stats', 'smallest, largest, mean, and how many have which'],
  ['Plot', 'plot', 'numbers over ranks, or an array over its elements'],
];

const focus = (tasks) => el('button', { type: 'button', onclick: () => line(`focus ${tasks}`) }, label(tasks));
const number = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(5));

function table(heads, rows) {
  const more = rows.length > ROWS_MAX ? el('p', { class: 'note' }, `and ${rows.length - ROWS_MAX} more`) : null;
  return [el('table', {}, el('tr', {}, heads.map((head) => (head !== '' ? el('th', { scope: 'col' }, head) : el('td')))),
    rows.slice(0, ROWS_MAX).map((cells) => el('tr', {}, cells.map((cell) => el('td', {}, cell))))), more];
}

let show = () => {};

const cut = (text) => (text?.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}...` : text);

function bars(counts, name) {
  const most = Math.max(1, ...counts);
  const wide = WIDTH / counts.length;
  return el('svg', { id: 'histogram', role: 'img', viewBox: `0 0 ${WIDTH} ${HEIGHT + 16}`, 'aria-label': `Histogram: ${counts.join(', ')}` },
    counts.map((many, at) => {
      const tall = (many / most) * HEIGHT;
      return el('g', {}, el('rect', { class: 'c0 class', x: at * wide + 1, y: HEIGHT - tall, width: Math.max(wide - 2, 1), height: tall }, el('title', {}, `${name(at)}: ${many}`)),
        many ? el('text', { x: at * wide + wide / 2, y: HEIGHT + 12, 'text-anchor': 'middle' }, many) : null);
    }));
}

const range = (all) => all.reduce(([a, b], value) => (value === null ? [a, b] : [Math.min(a, value), Math.max(b, value)]), [Infinity, -Infinity]);

function lines({ expression, over }, rows) {
  const [low, high] = range(rows.flatMap(({ numbers }) => numbers));
  const most = Math.max(...rows.map(({ numbers }) => numbers.length), 2);
  const x = (at) => (at / (most - 1)) * WIDTH;
  const y = (value) => HEIGHT - ((value - low) / (high - low || 1)) * HEIGHT;
  const parts = rows.slice(0, LINES_MAX).map(({ numbers, tasks }, at) => {
    let pen = 'M';
    const d = numbers.map((value, index) => {
      if (value === null) { pen = 'M'; return ''; }
      const point = `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = 'L';
      return point;
    }).join('');
    return el('path', { class: `curve k${at}`, d, 'data-tasks': tasks }, el('title', {}, label(tasks)));
  });
  return [el('svg', { id: 'plot', role: 'img', viewBox: `-2 -4 ${WIDTH + 4} ${HEIGHT + 8}`, 'aria-label': `${expression} over ${over}, from ${number(low)} to ${number(high)}` }, parts),
    el('p', { class: 'note' }, `from ${number(low)} to ${number(high)} over ${most} ${over}`)];
}

// Cells from the lowest (dark) to the highest, a path for each step of colour. A class is a row of them; of an array of
// several dimensions it is a block.
function heat({ expression }, rows, columns) {
  const [low, high] = range(rows.flatMap(({ numbers }) => numbers));
  const most = Math.max(...rows.map(({ numbers }) => numbers.length));
  if (!(low <= high) || rows.length * most > CELLS_MAX) return el('p', { class: 'note' }, 'There is no room for a heat map.');
  const wide = columns > 0 ? Math.min(columns, most) : most;
  const tall = Math.ceil(most / wide);
  const beside = columns > 0 ? Math.min(4, Math.ceil(Math.sqrt(rows.length))) : 1;
  const gap = columns > 0 ? 18 : 0;
  const cell = Math.min((WIDTH - gap * (beside - 1)) / (beside * wide), 24);
  const [across, down] = [wide * cell + gap, tall * cell + gap];
  const d = Array.from({ length: 9 }, () => '');
  rows.forEach(({ numbers }, block) => numbers.forEach((value, at) => {
    const step = value === null ? 8 : Math.min(7, Math.floor(((value - low) / (high - low || 1)) * 8));
    const x = (block % beside) * across + (at % wide) * cell;
    const y = Math.floor(block / beside) * down + gap + Math.floor(at / wide) * cell;
    d[step] += `M${x.toFixed(2)} ${y.toFixed(2)}h${cell.toFixed(2)}v${cell.toFixed(2)}h-${cell.toFixed(2)}z`;
  }));
  const here = el('p', { class: 'note', id: 'heathere', role: 'status' }, `dark is ${number(low)}, bright ${number(high)}`);
  const [width, height] = [beside * across - gap, Math.ceil(rows.length / beside) * down];
  const svg = el('svg', { id: 'heat', role: 'img', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-label': `${expression} as a heat map of ${rows.length} times ${tall} by ${wide}`, onpointermove: (event) => {
    const to = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [left, top] = [Math.floor(to.x / across), Math.floor(to.y / down)];
    const [row, column] = [Math.floor((to.y - top * down - gap) / cell), Math.floor((to.x - left * across) / cell)];
    const found = rows[top * beside + left];
    const value = row >= 0 && column < wide ? found?.numbers[row * wide + column] : undefined;
    if (value !== undefined) here.textContent = `${label(found.owners ? `${found.owners[row * wide + column]}` : found.tasks)}, ${columns > 0 ? `row ${row}, column ${column}` : `number ${column}`}: ${value ?? 'no number'}`;
  } }, d.map((path, step) => (path ? el('path', { class: `heat ${step === 8 ? 'none' : `h${step}`}`, d: path }) : null)),
  gap ? rows.map(({ tasks }, block) => el('text', { x: (block % beside) * across, y: Math.floor(block / beside) * down + 13 }, label(tasks))) : []);
  return [svg, here];
}

// The numbers of the classes that are asked for, less those of the one, or of the stop, that they are compared with, and how many
// are in a row. The blocks of all ranks are one array where that is chosen.
function chosen(plot, before) {
  let rows = byId('of').value === '' ? plot.lines : plot.lines.filter(({ tasks }) => tasks === byId('of').value);
  const less = plot.lines.find(({ tasks }) => tasks === byId('less').value);
  if (byId('less').value === BEFORE) rows = since(plot, rows, before);
  else if (less) rows = rows.map((row) => ({ ...row, numbers: difference(row.numbers, less.numbers) }));
  const columns = Number(byId('columns').value) || 0;
  if (byId('stitch').value === '' || plot.over === 'ranks' || rows.length === 0) return { rows, columns };
  const number = (id, least) => Math.max(Math.floor(Number(byId(id).value)) || 0, least);
  const whole = stitch(rows, { columns, isDown: byId('stitch').value === 'columns', line: number('line-length', 1), ghosts: number('ghosts', 0), most: CELLS_MAX });
  return whole ? { rows: [whole.row], columns: whole.columns } : { rows, columns, note: 'There is no room for the arrays of all ranks as one.' };
}

const cell = (value) => (value === null || value === undefined ? '-' : number(value));
const upTo = (most) => Array.from({ length: most }, (_, at) => at);

function drawPlot(plot, before) {
  const { rows, columns, note } = chosen(plot, before);
  const most = Math.max(...rows.map(({ numbers }) => numbers.length), 0);
  const save = () => {
    const lists = [['', ...rows.map(({ tasks }) => `"${tasks}"`)], ...upTo(most).map((at) => [at, ...rows.map(({ numbers }) => numbers[at] ?? '')])];
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([lists.map((row) => row.join(',')).join('\n')], { type: 'text/csv' }));
    link.download = 'values.csv';
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const first = rows.slice(0, LINES_MAX);
  const numbers = columns > 0 && rows.length === 1
    ? table(['row', ...upTo(Math.min(columns, most))], upTo(Math.ceil(most / columns)).map((at) => [at, ...rows[0].numbers.slice(at * columns, (at + 1) * columns).map(cell)]))
    : table([plot.over === 'ranks' ? 'rank' : 'element', ...first.map(({ tasks }) => focus(tasks))], upTo(most).map((at) => [plot.over === 'ranks' ? nth(plot.lines[0].tasks, at) : at, ...first.map((row) => cell(row.numbers[at]))]));
  const less = byId('less').value;
  const than = less === BEFORE ? 'that of the stop before' : less && `that of ${label(less)}`;
  show(than ? `${plot.expression}, less ${than}` : plot.expression, note ? el('p', { class: 'note' }, note) : null, columns > 0 ? null : lines(plot, rows), heat(plot, rows, columns),
    columns > 0 ? lines(plot, rows) : null, el('button', { type: 'button', onclick: save }, 'Save as CSV'), numbers);
}

export function start() {
  let last = null;
  // The last plot of an expression, the stop that it is of, and the plot of the stop before.
  const plots = new Map();
  let stop = 0;
  const again = () => last && drawPlot(last, plots.get(last.expression).before);
  const input = el('input', { id: 'expression', size: 14, autocomplete: 'off', spellcheck: 'false' });
  const choice = (id, name) => [el('label', { for: id }, name), el('select', { id, onchange: again })];
  const parts = el('p', { id: 'parts' }, choice('of', 'Of'), choice('less', 'less'),
    el('label', { for: 'columns' }, 'Columns'), el('input', { id: 'columns', type: 'number', min: 0, value: 0, onchange: again }),
    choice('stitch', 'Ranks'), el('label', { for: 'line-length' }, 'of'), el('input', { id: 'line-length', type: 'number', min: 1, value: 1, onchange: again }),
    el('label', { for: 'ghosts' }, 'Ghosts'), el('input', { id: 'ghosts', type: 'number', min: 0, value: 0, onchange: again }));
  const form = el('form', { id: 'valuesform' }, el('label', { for: 'expression' }, 'Expression'), input,
    ASKED.map(([name, word, title]) => el('button', { type: word === 'outliers' ? 'submit' : 'button', title, 'data-word': word, onclick: (event) => {
      event.preventDefault();
      if (input.value.trim()) line(`${word} ${input.value.trim()}`);
    } }, name)));
  fill(byId('values'), form, parts, el('div', { id: 'shown', role: 'region', 'aria-label': 'Values' }), el('div', { id: 'locals' }));
  parts.hidden = true;
  fill(byId('stitch'), [['', 'apart'], ['rows', 'in rows'], ['columns', 'in columns']].map(([value, name]) => el('option', { value }, name)));
  show = (title, ...found) => {
    parts.hidden = last === null;
    fill(byId('shown'), el('h3', {}, title), found.flat(2).filter(Boolean));
  };
  const answer = (...found) => {
    last = null;
    show(...found);
  };

  on('values', ({ expression, values }) => {
    // What `display` shows stands below.
    if (/^\d+: /.test(expression)) return;
    const all = values.reduce((sum, row) => sum + row.count, 0);
    answer(expression, table(['ranks', '', 'value'], values.map((row) =>
      [focus(row.tasks), el('span', { class: 'share' }, el('span', { class: 'bar', 'width%': (row.count / all) * 100 })), cut(row.value)])));
  });
  on('comparison', ({ expression, reference, value, others }) => answer(expression,
    el('p', {}, focus(reference), ` ${count(reference) === 1 ? 'has' : 'have'} ${cut(value)}`),
    table(['ranks', 'differ in', 'first', 'there', 'they have'], others.map((other) =>
      [focus(other.tasks), `${other.differing} of ${other.of}`, other.path, cut(other.reference) ?? '-', cut(other.value) ?? '-']))));
  // A sum in another order of the ranks differs in its last digits.
  const rounded = (value) => (typeof value === 'number' ? Number(value.toPrecision(12)) : value);
  on('stats', ({ expression, count: many, min, max, mean, stddev, histogram, nan }) => {
    const part = histogram ? (histogram.high - histogram.low) / histogram.counts.length : 0;
    const rows = [['smallest', min && `${min.value}`, min?.on.tasks && focus(min.on.tasks)], ['largest', max && `${max.value}`, max?.on.tasks && focus(max.on.tasks)], ['mean', rounded(mean), null], ['deviation', rounded(stddev), null], ['not a number', nan.count, nan.tasks && focus(nan.tasks)]];
    answer(expression, histogram ? bars(histogram.counts, (at) => `from ${number(histogram.low + at * part)} to ${number(histogram.low + (at + 1) * part)}`) : null,
      el('p', { class: 'note' }, `${many} numbers${histogram ? `, the bars from ${number(histogram.low)} to ${number(histogram.high)}` : ''}`), table(['', 'value', 'ranks'], rows.filter(([, value]) => value !== null && value !== undefined)));
  });
  on('stop', () => { stop += 1; });
  on('plot', (plot) => {
    const isNew = last?.expression !== plot.expression;
    last = plot;
    const earlier = plots.get(plot.expression);
    const before = earlier?.stop === stop ? earlier.before : earlier?.plot;
    plots.delete(plot.expression);
    plots.set(plot.expression, { plot, stop, before });
    if (plots.size > PLOTS_MAX) plots.delete(plots.keys().next().value);
    const had = [byId('of').value, byId('less').value];
    const names = plot.over === 'ranks' ? [] : plot.lines.slice(0, CHOICES_MAX).map(({ tasks }) => tasks);
    ['of', 'less'].forEach((id, at) => {
      fill(byId(id), el('option', { value: '' }, ['all', 'nothing'][at]), id === 'less' && before ? [el('option', { value: BEFORE }, 'the stop before')] : [], names.map((tasks) => el('option', { value: tasks }, label(tasks))));
      // What was chosen for the same expression stays, as at the next stop.
      if (!isNew && (names.includes(had[at]) || (had[at] === BEFORE && before))) byId(id).value = had[at];
    });
    if (isNew) byId('columns').value = plot.row ?? 0;
    drawPlot(plot, before);
  });
  on('sight', ({ locals, watched, missing }) => {
    const named = (title, all) => (all.length ? [el('h3', {}, title), ...table(['name', 'value', 'ranks'], all.flatMap(({ name, values }) =>
      values.map(({ tasks, value }, at) => [at === 0 ? el('code', {}, name) : '', value, values.length > 1 ? focus(tasks) : '']))) ] : []);
    fill(byId('locals'), [...named('Watched', watched), ...named('Variables', locals), missing ? el('p', { class: 'note' }, missing) : null].filter(Boolean));
  });
}
