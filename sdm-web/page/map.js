// All ranks as cells in the order of their numbers: a path for each class, so that a hundred thousand are a few elements.
// What is drawn with the mouse or marked by the keyboard is a set like every other: the focus.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { format, has, label, runs } from './sets.js';

const WIDTH = 600;
const HEIGHT = 260;
// So many classes have a colour of their own.
const COLOURS = 8;
const NUMBERS_MAX = 160;

let board = null;
let sight = null;
let values = null;
let by = 'state';
let total = 0;
let grid = { columns: 1, cell: 1 };
let mark = null;

// What distinguishes the ranks: [what it is called, its set], biggest first.
function classes() {
  if (by === 'value' && values) return values.rows.map(({ value, tasks }) => [`${values.expression} = ${value}`, tasks]);
  if (by === 'place' && sight?.stacks) {
    const places = new Map();
    for (const { frames, tasks } of sight.stacks.stacks) {
      const inner = frames.findLast(({ module }) => module === '') ?? frames.at(-1);
      const name = inner ? `${inner.function}${inner.file ? ` ${inner.file}:${inner.line}` : ''}` : 'no frame';
      places.set(name, [...(places.get(name) ?? []), tasks]);
    }
    return [...places].map(([name, sets]) => [name, sets.join(',')]);
  }
  return (board?.ranks ?? []).map(({ state, health, last, tasks }) => {
    const how = last?.signal ?? (last?.kind === 'exit' ? `code ${last.code}` : last?.reason);
    return [[health === 'reachable' ? state : health, how].filter(Boolean).join(', '), tasks];
  });
}

function shape(count) {
  let columns = Math.max(1, Math.ceil(Math.sqrt((count * WIDTH) / HEIGHT)));
  // Rows of tens are read more easily.
  if (columns > 8) columns = Math.ceil(columns / 8) * 8;
  const rows = Math.max(1, Math.ceil(count / columns));
  return { columns, cell: Math.min(WIDTH / columns, HEIGHT / rows, 40), rows };
}

// The outline of a set of cells: a rectangle for each run within a row.
function outline(tasks) {
  const { columns, cell } = grid;
  const size = cell > 4 ? cell - 1 : cell;
  const parts = [];
  runs(tasks, (first, last) => {
    for (let at = first; at <= last;) {
      const end = Math.min(last, at - (at % columns) + columns - 1);
      const width = (end - at) * cell + size;
      parts.push(`M${((at % columns) * cell).toFixed(2)} ${(Math.floor(at / columns) * cell).toFixed(2)}h${width.toFixed(2)}v${size.toFixed(2)}h${(-width).toFixed(2)}z`);
      at = end + 1;
    }
  });
  return parts.join('');
}

function between(a, b) {
  const { columns } = grid;
  const [left, right] = [a % columns, b % columns].sort((x, y) => x - y);
  const [top, bottom] = [Math.floor(a / columns), Math.floor(b / columns)].sort((x, y) => x - y);
  const pairs = [];
  for (let row = top; row <= bottom; row += 1) {
    const first = row * columns + left;
    const last = Math.min(row * columns + right, total - 1);
    if (first <= last) pairs.push([first, last]);
  }
  return format(pairs);
}

function drawMark() {
  byId('mapmark')?.setAttribute('d', mark ? outline(between(mark.from, mark.to)) : '');
  if (mark) {
    const found = classes().find(([, tasks]) => has(tasks, mark.to));
    byId('maphere').textContent = `rank ${mark.to}: ${found?.[0] ?? 'unknown'}`;
  }
}

function draw() {
  if (!board) return;
  const last = board.all ? Number(/(\d+)(?:\/\d+)?$/.exec(board.all)[1]) : -1;
  total = last + 1;
  grid = shape(total);
  const found = classes();
  const name = (at) => (at < COLOURS ? `class c${at}` : 'class rest');
  const height = grid.rows * grid.cell;
  const cells = found.map(([text, tasks], at) =>
    el('path', { class: name(at), d: outline(tasks), 'data-tasks': tasks }, el('title', {}, `${text}: ${label(tasks)}`)));
  const numbers = total > NUMBERS_MAX || grid.cell < 16 ? [] : Array.from({ length: total }, (_, rank) => rank)
    .filter((rank) => has(board.all, rank))
    .map((rank) => el('text', { x: (rank % grid.columns) * grid.cell + (grid.cell - 1) / 2, y: Math.floor(rank / grid.columns) * grid.cell + grid.cell / 2 + 4, 'text-anchor': 'middle' }, rank));
  fill(byId('mapcells'), cells, numbers,
    el('path', { id: 'mapfocus', d: board.focus === board.all ? '' : outline(board.focus) }),
    el('path', { id: 'mapmark', d: '' }));
  const svg = byId('mapsvg');
  svg.setAttribute('viewBox', `0 0 ${grid.columns * grid.cell} ${height}`);
  // Few ranks are not blown up.
  svg.setAttribute('width', grid.columns * grid.cell);
  svg.setAttribute('aria-label', `Map of ${total} ranks by ${by}; arrows move, shift and arrows mark, Enter makes the mark the focus`);
  fill(byId('maplegend'), found.map(([text, tasks], at) => el('li', {},
    el('button', { type: 'button', onclick: () => line(`focus ${tasks}`) },
      el('span', { class: `swatch ${name(at)}`, 'aria-hidden': 'true' }), text, ' ', el('span', { class: 'tasks' }, label(tasks))))));
  drawMark();
}

// The rank under the mouse, or the nearest.
function rankAt(event) {
  const svg = byId('mapsvg');
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const column = Math.min(Math.max(Math.floor(at.x / grid.cell), 0), grid.columns - 1);
  const row = Math.min(Math.max(Math.floor(at.y / grid.cell), 0), grid.rows - 1);
  return Math.min(row * grid.columns + column, total - 1);
}

function choose() {
  if (mark) line(`focus ${between(mark.from, mark.to)}`);
}

export function start() {
  const svg = el('svg', { id: 'mapsvg', role: 'img', tabindex: 0, preserveAspectRatio: 'xMinYMin meet' }, el('g', { id: 'mapcells' }));
  const select = el('select', { id: 'mapby', onchange: (event) => { by = event.target.value; draw(); } },
    ['state', 'place', 'value'].map((name) => el('option', { value: name }, name)));
  fill(byId('map'), el('p', {}, el('label', { for: 'mapby' }, 'Colour by '), select, ' ', el('span', { id: 'maphere', role: 'status', class: 'note' })),
    svg, el('ul', { id: 'maplegend', 'aria-label': 'Classes' }));

  let draws = false;
  svg.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || total === 0) return;
    draws = true;
    svg.setPointerCapture(event.pointerId);
    mark = { from: rankAt(event), to: rankAt(event) };
    drawMark();
  });
  svg.addEventListener('pointermove', (event) => {
    if (!draws) return;
    mark.to = rankAt(event);
    drawMark();
  });
  svg.addEventListener('pointerup', () => {
    if (draws) choose();
    draws = false;
  });
  svg.addEventListener('keydown', (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns };
    if (event.key in steps && total > 0) {
      const to = Math.min(Math.max((mark?.to ?? 0) + (mark ? steps[event.key] : 0), 0), total - 1);
      mark = { from: event.shiftKey && mark ? mark.from : to, to };
      drawMark();
    } else if (event.key === 'Enter') choose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  on('board', (record) => { board = record; draw(); });
  on('sight', (record) => { sight = record; if (by === 'place') draw(); });
  on('values', (record) => {
    values = { expression: record.expression, rows: record.values };
    if (by === 'value') draw();
  });
}
