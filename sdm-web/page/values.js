// What an expression is on the ranks: compared, alone, as numbers, and arrays as a line, a table and a heat map.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { label } from './sets.js';

const WIDTH = 600;
const HEIGHT = 180;
const CELLS_MAX = 20000;
const ROWS_MAX = 200;
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
  return [el('table', {}, el('tr', {}, heads.map((head) => (head ? el('th', { scope: 'col' }, head) : el('td')))),
    rows.slice(0, ROWS_MAX).map((cells) => el('tr', {}, cells.map((cell) => el('td', {}, cell))))), more];
}

function show(title, ...parts) {
  fill(byId('shown'), el('h3', {}, title), parts.flat(2).filter(Boolean));
}

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

function lines(plot) {
  const all = plot.lines.flatMap(({ numbers }) => numbers).filter((value) => value !== null);
  const [low, high] = all.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const most = Math.max(...plot.lines.map(({ numbers }) => numbers.length), 2);
  const x = (at) => (at / (most - 1)) * WIDTH;
  const y = (value) => HEIGHT - ((value - low) / (high - low || 1)) * HEIGHT;
  const parts = plot.lines.slice(0, 8).map(({ numbers, tasks }, at) => {
    let pen = 'M';
    const d = numbers.map((value, index) => {
      if (value === null) { pen = 'M'; return ''; }
      const point = `${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = 'L';
      return point;
    }).join('');
    return el('path', { class: `curve k${at}`, d }, el('title', {}, label(tasks)));
  });
  return [el('svg', { id: 'plot', role: 'img', viewBox: `-2 -4 ${WIDTH + 4} ${HEIGHT + 8}`, 'aria-label': `${plot.expression} over ${plot.over}, from ${number(low)} to ${number(high)}` }, parts),
    el('p', { class: 'note' }, `from ${number(low)} to ${number(high)} over ${most} ${plot.over}`)];
}

// Each class is a row of cells, from the lowest (dark) to the highest; one rank's array can be folded into rows.
function heat(plot, columns) {
  const rows = columns > 0
    ? plot.lines.flatMap(({ numbers, tasks }) => Array.from({ length: Math.ceil(numbers.length / columns) }, (_, at) => ({ tasks, first: at * columns, numbers: numbers.slice(at * columns, (at + 1) * columns) })))
    : plot.lines.map((it) => ({ ...it, first: 0 }));
  const all = rows.flatMap(({ numbers }) => numbers).filter((value) => value !== null);
  if (all.length === 0 || all.length > CELLS_MAX) return el('p', { class: 'note' }, 'There is no room for a heat map.');
  const [low, high] = all.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const wide = Math.max(...rows.map(({ numbers }) => numbers.length));
  const cell = Math.min(WIDTH / wide, 24);
  const step = (value) => (value === null ? 'none' : `h${Math.min(7, Math.floor(((value - low) / (high - low || 1)) * 8))}`);
  return el('svg', { id: 'heat', role: 'img', viewBox: `0 0 ${wide * cell} ${rows.length * cell}`, 'aria-label': `${plot.expression} as a heat map of ${rows.length} rows` },
    rows.map(({ numbers, tasks, first }, row) => numbers.map((value, at) =>
      el('rect', { class: `heat ${step(value)}`, x: at * cell, y: row * cell, width: cell, height: cell }, el('title', {}, `${label(tasks)} [${first + at}]: ${value ?? 'no number'}`)))));
}

function drawPlot(plot) {
  const columns = Number(byId('columns').value) || 0;
  const most = Math.max(...plot.lines.map(({ numbers }) => numbers.length), 0);
  const rows = Array.from({ length: most }, (_, at) => [at, ...plot.lines.slice(0, 8).map(({ numbers }) => (numbers[at] === null || numbers[at] === undefined ? '-' : number(numbers[at])))]);
  const data = new Blob([[['', ...plot.lines.map(({ tasks }) => `"${tasks}"`)], ...Array.from({ length: most }, (_, at) => [at, ...plot.lines.map(({ numbers }) => numbers[at] ?? '')])].map((row) => row.join(',')).join('\n')], { type: 'text/csv' });
  const save = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(data);
    link.download = 'values.csv';
    link.click();
    URL.revokeObjectURL(link.href);
  };
  show(plot.expression, lines(plot), heat(plot, columns), el('button', { type: 'button', onclick: save }, 'Save as CSV'),
    table([plot.over === 'ranks' ? 'rank' : 'element', ...plot.lines.slice(0, 8).map(({ tasks }) => focus(tasks))], rows));
}

export function start() {
  const input = el('input', { id: 'expression', size: 28, autocomplete: 'off', spellcheck: 'false' });
  const columns = el('input', { id: 'columns', type: 'number', min: 0, value: 0, size: 4 });
  let last = null;
  columns.addEventListener('change', () => last && drawPlot(last));
  const form = el('form', { id: 'valuesform' }, el('label', { for: 'expression' }, 'Expression'), input,
    ASKED.map(([name, word, title]) => el('button', { type: word === 'outliers' ? 'submit' : 'button', title, 'data-word': word, onclick: (event) => {
      event.preventDefault();
      if (input.value.trim()) line(`${word} ${input.value.trim()}`);
    } }, name)), el('label', { for: 'columns' }, 'Columns'), columns);
  fill(byId('values'), form, el('div', { id: 'shown', role: 'region', 'aria-label': 'Values' }), el('div', { id: 'locals' }));

  on('values', ({ expression, values }) => {
    const all = values.reduce((sum, { count }) => sum + count, 0);
    show(expression, table(['ranks', '', 'value'], values.map(({ tasks, count, value }) =>
      [focus(tasks), el('span', { class: 'share' }, el('span', { class: 'bar', 'width%': (count / all) * 100 })), value])));
  });
  on('comparison', ({ expression, reference, value, others }) => show(expression,
    el('p', {}, focus(reference), ` have ${value}`),
    table(['ranks', 'differ in', 'first', 'there', 'they have'], others.map((other) =>
      [focus(other.tasks), `${other.differing} elements`, other.path, other.reference ?? '-', other.value ?? '-']))));
  on('stats', ({ expression, count, min, max, mean, stddev, histogram, nan }) => {
    const part = histogram ? (histogram.high - histogram.low) / histogram.counts.length : 0;
    const rows = [['smallest', min && `${min.value}`, min?.on.tasks && focus(min.on.tasks)], ['largest', max && `${max.value}`, max?.on.tasks && focus(max.on.tasks)], ['mean', mean, null], ['deviation', stddev, null], ['not a number', nan.count, nan.tasks && focus(nan.tasks)]];
    show(expression, histogram ? bars(histogram.counts, (at) => `from ${number(histogram.low + at * part)} to ${number(histogram.low + (at + 1) * part)}`) : null,
      el('p', { class: 'note' }, `${count} numbers`), table(['', 'value', 'ranks'], rows.filter(([, value]) => value !== null && value !== undefined)));
  });
  on('plot', (plot) => {
    last = plot;
    drawPlot(plot);
  });
  on('sight', ({ locals, watched, missing }) => {
    const named = (title, all) => (all.length ? [el('h3', {}, title), ...table(['name', 'value', 'ranks'], all.flatMap(({ name, values }) =>
      values.map(({ tasks, value }, at) => [at === 0 ? el('code', {}, name) : '', value, values.length > 1 ? focus(tasks) : '']))) ] : []);
    fill(byId('locals'), [...named('Watched', watched), ...named('Variables', locals), missing ? el('p', { class: 'note' }, missing) : null].filter(Boolean));
  });
}
