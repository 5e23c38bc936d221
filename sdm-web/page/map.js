// All ranks as cells in the order of their numbers, or a block of rows for each host: a path for each class, so that a
// hundred thousand are a few elements.
// What is drawn with the mouse or marked by the keyboard is a set like every other: the focus.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { count, counted, format, has, label, runs, union, without } from './sets.js';

const WIDTH = 600;
const HEIGHT = 420;
// So many classes have a colour of their own.
const COLOURS = 8;
const NUMBERS_MAX = 160;
const HOSTS_MAX = 30;
const HOST_WIDTH = 140;
const STARTS_WIDTH = 48;

let board = null;
let sight = null;
let values = null;
// True if ranks have moved since the values came.
let isOld = false;
let nodes = null;
let by = 'state';
let order = 'rank';
// `cells` and `ranks`: the cell of each rank and the rank of each cell, where hosts have rows of their own.
let grid = { columns: 1, rows: 1, cell: 1, cells: null, ranks: null };
let total = 0;
let mark = null;
// The grid that the labels were drawn for: they stay as long as it does.
let labelled = '';

// Many numbers are coloured by their size. Null where it is another kind of value, or where there is a colour for each.
function sizes() {
  const rows = values.rows.map(({ value, tasks }) => [Number(value), tasks]);
  if (rows.length <= COLOURS || rows.some(([value]) => !Number.isFinite(value))) return null;
  const low = rows.reduce((least, [value]) => Math.min(least, value), Infinity);
  const step = (rows.reduce((most, [value]) => Math.max(most, value), -Infinity) - low) / COLOURS;
  const sets = Array.from({ length: COLOURS }, () => []);
  for (const [value, tasks] of rows) sets[Math.min(COLOURS - 1, Math.floor((value - low) / step))].push(tasks);
  const edge = (at) => Number((low + at * step).toPrecision(4));
  const name = (at) => `${values.expression} from ${edge(at)} to ${edge(at + 1)}`;
  return sets.map((tasks, at) => [name(at), union(tasks), `b${at}`]).filter(([, tasks]) => tasks !== '');
}

const STATES = new Set(['stopped', 'running', 'exited', 'lost', 'silent', 'gdb_dead', 'not attached']);
const HOW_MAX = 3;

// The ranks of each state: [its name, its set, its colour, how they came to it].
export function states(rows) {
  const found = new Map();
  for (const { state, health, crashed, last, tasks } of rows) {
    const isCrash = health === 'reachable' && crashed;
    const name = health !== 'reachable' ? health : isCrash && state === 'stopped' ? 'stopped at a crash' : state;
    const how = isCrash ? last?.signal ?? last?.what ?? last?.error : name === 'exited' && last && `code ${last.code}`;
    const known = found.get(name) ?? { sets: [], how: new Set(), isCrash };
    found.set(name, known);
    known.sets.push(tasks);
    if (how) known.how.add(how);
  }
  return [...found].map(([name, { sets, how, isCrash }]) =>
    [name, union(sets), isCrash ? 's-crashed' : STATES.has(name) ? `s-${name.replaceAll(/\W/g, '-')}` : 'rest', [...how].slice(0, HOW_MAX)]);
}

// What distinguishes the ranks: [what it is called, its set, its colour].
function classes() {
  const named = (rows) => rows.map(([text, tasks], at) => [text, tasks, at < COLOURS ? `c${at}` : 'rest']);
  if (by === 'value') return values ? sizes() ?? named(values.rows.map(({ value, tasks }) => [`${values.expression} = ${value}`, tasks])) : [];
  if (by === 'host') return named((nodes ?? []).map(({ host, tasks }) => [host, tasks]));
  if (by === 'place') {
    const places = new Map();
    for (const { frames, tasks } of sight?.stacks?.stacks ?? []) {
      const inner = frames.findLast(({ module }) => module === '') ?? frames.at(-1);
      const name = inner ? `${inner.function}${inner.file ? ` ${inner.file}:${inner.line}` : ''}` : 'no frame';
      places.set(name, [...(places.get(name) ?? []), tasks]);
    }
    return named([...places].map(([name, sets]) => [name, union(sets)]));
  }
  return states(board?.ranks ?? []).map(([name, tasks, colour, how]) => [[name, ...how].join(', '), tasks, colour]);
}

function shape() {
  let columns = Math.max(1, Math.ceil(Math.sqrt((total * WIDTH) / HEIGHT)));
  // Rows of tens are read more easily.
  if (columns > 8) columns = Math.ceil(columns / 8) * 8;
  if (order === 'rank' || !nodes) {
    const rows = Math.max(1, Math.ceil(total / columns));
    return { columns, rows, cell: Math.min(WIDTH / columns, HEIGHT / rows, 40), cells: null, ranks: null };
  }
  columns = Math.min(columns, Math.max(1, ...nodes.map(({ tasks }) => count(tasks))));
  const cells = new Int32Array(total).fill(-1);
  const starts = [];
  let at = 0;
  for (const { tasks } of nodes) {
    starts.push(at / columns);
    runs(tasks, (first, last) => { for (let rank = first; rank <= last && rank < total; rank += 1, at += 1) cells[rank] = at; });
    at = Math.ceil(at / columns) * columns;
  }
  const rows = Math.max(1, at / columns);
  const ranks = new Int32Array(at).fill(-1);
  cells.forEach((to, rank) => { if (to >= 0) ranks[to] = rank; });
  return { columns, rows, cell: Math.min(WIDTH / columns, HEIGHT / rows, 40), cells, ranks, starts };
}

const cellOf = (rank) => (grid.cells ? grid.cells[rank] : rank);
const rankOf = (at) => (grid.ranks ? grid.ranks[at] ?? -1 : at < total ? at : -1);

// The outline of a set of cells: a rectangle for each run within a row.
function outline(tasks) {
  const { columns, cell } = grid;
  const size = cell > 4 ? cell - 1 : cell;
  let d = '';
  const row = (at, end) => {
    const width = (end - at) * cell + size;
    d += `M${((at % columns) * cell).toFixed(2)} ${(Math.floor(at / columns) * cell).toFixed(2)}h${width.toFixed(2)}v${size.toFixed(2)}h${(-width).toFixed(2)}z`;
  };
  runs(tasks, (first, last) => {
    for (let rank = first; rank <= last;) {
      const at = cellOf(rank);
      let many = 1;
      if (!grid.cells) many = Math.min(last - rank + 1, columns - (at % columns));
      else while (rank + many <= last && cellOf(rank + many) === at + many && (at + many) % columns) many += 1;
      if (at >= 0) row(at, at + many - 1);
      rank += many;
    }
  });
  return d;
}

// The ranks in the rectangle between two cells.
function between(a, b) {
  const { columns } = grid;
  const [left, right] = [a % columns, b % columns].sort((x, y) => x - y);
  const [top, bottom] = [Math.floor(a / columns), Math.floor(b / columns)].sort((x, y) => x - y);
  const found = [];
  for (let row = top; row <= bottom; row += 1) {
    for (let at = row * columns + left; at <= row * columns + right; at += 1) {
      const rank = rankOf(at);
      if (rank >= 0) found.push([rank, rank]);
    }
  }
  return format(found);
}

function drawMark() {
  const tasks = mark ? between(mark.from, mark.to) : '';
  byId('mapmark').setAttribute('d', tasks && outline(tasks));
  tell(mark ? rankOf(mark.to) : -1);
}

// Says which rank a cell is, and its class.
function tell(rank) {
  const found = rank >= 0 ? classes().find((it) => has(it[1], rank)) : null;
  byId('maphere').textContent = rank >= 0 ? `rank ${rank}: ${found?.[0] ?? 'unknown'}` : '';
}

function draw() {
  if (!board) return;
  const last = board.all ? Number(/(\d+)(?:\/\d+)?$/.exec(board.all)[1]) : -1;
  total = last + 1;
  grid = shape();
  if (mark && Math.max(mark.from, mark.to) >= grid.columns * grid.rows) mark = null;
  const found = classes();
  const shown = found.slice(0, COLOURS);
  if (found.length > COLOURS) shown.push([`${found.length - COLOURS} more`, union(found.slice(COLOURS).map(([, tasks]) => tasks)), 'rest']);
  // Who is in none of the classes: where stacks are looked at, and where a value has not been asked for.
  const rest = without(board.all, shown.map(([, tasks]) => tasks));
  const unknown = rest && found.length + (by === 'place') > 0 ? [[by === 'place' && board.stale ? 'looking ...' : 'not known', rest, 'unknown']] : [];
  fill(byId('mapclasses'), el('path', { class: 'unknown', d: outline(board.all) }), shown.map(([text, tasks, colour]) =>
    el('path', { class: `class ${colour}`, d: outline(tasks), 'data-tasks': tasks }, el('title', {}, `${text}: ${label(tasks)}`))));
  drawLabels();
  byId('mapfocus').setAttribute('d', board.focus === board.all ? '' : outline(board.focus));
  fill(byId('maplegend'), [...shown, ...unknown].map(([text, tasks, colour]) => el('li', {},
    el('button', { type: 'button', onclick: () => line(`focus ${tasks}`) },
      el('span', { class: `swatch ${colour}`, 'aria-hidden': 'true' }), text, ' ', el('span', { class: 'tasks' }, label(tasks))))));
  byId('map').classList.toggle('old', by === 'value' && isOld);
  byId('mapsvg').setAttribute('aria-label', `Map of ${counted(total, 'rank')} by ${by}; arrows move, shift and arrows mark, Enter makes the mark the focus`);
  drawMark();
}

// The lines between cells, the numbers of ranks, and the names of hosts: at a stop they stay as they are.
function drawLabels() {
  const { columns, rows, cell } = grid;
  const hosts = grid.cells && nodes.length <= HOSTS_MAX;
  const wanted = JSON.stringify([board.all, columns, rows, cell, grid.cells ? nodes : null]);
  if (wanted === labelled) return;
  labelled = wanted;
  const numbers = [];
  if (total <= NUMBERS_MAX && cell >= 16) {
    runs(board.all, (from, to) => {
      for (let rank = from; rank <= to; rank += 1) {
        const at = cellOf(rank);
        if (at >= 0) numbers.push(el('text', { x: (at % columns) * cell + (cell - 1) / 2, y: Math.floor(at / columns) * cell + cell / 2 + 4, 'text-anchor': 'middle' }, rank));
      }
    });
  }
  // Neighbours of the same class are told apart.
  const between = cell > 4 ? el('path', { class: 'between', d: Array.from({ length: columns - 1 }, (_, at) => `M${((at + 1) * cell - 0.5).toFixed(2)} 0V${rows * cell}`).join('') }) : null;
  // Of too many ranks for a number each, the first of a row is named, where it has room.
  const every = Math.ceil(18 / cell);
  const firsts = numbers.length > 0 || grid.cells || rows < 2 ? [] : Array.from({ length: Math.ceil(rows / every) }, (_, at) => at * every).map((row) => [row, rankOf(row * columns)]).filter(([, rank]) => rank >= 0);
  const starts = firsts.map(([row, rank]) => el('text', { class: 'host', x: columns * cell + 6, y: row * cell + Math.max(cell / 2 + 4, 10) }, rank));
  const names = hosts ? nodes.map(({ host }, at) => el('text', { class: 'host', x: columns * cell + 6, y: grid.starts[at] * cell + cell / 2 + 4 }, host)) : [];
  fill(byId('maplabels'), between ?? [], numbers, starts, names);
  const svg = byId('mapsvg');
  const width = columns * cell + (hosts ? HOST_WIDTH : starts.length > 0 ? STARTS_WIDTH : 0);
  svg.setAttribute('viewBox', `0 0 ${width} ${rows * cell}`);
  // Few ranks are not blown up.
  svg.setAttribute('width', width);
}

// The cell under the mouse, or the nearest.
function cellAt(event) {
  const svg = byId('mapsvg');
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const column = Math.min(Math.max(Math.floor(at.x / grid.cell), 0), grid.columns - 1);
  const row = Math.min(Math.max(Math.floor(at.y / grid.cell), 0), grid.rows - 1);
  return row * grid.columns + column;
}

function choose() {
  const tasks = mark && between(mark.from, mark.to);
  if (tasks) line(`focus ${tasks}`);
}

export function start() {
  const svg = el('svg', { id: 'mapsvg', role: 'img', tabindex: 0, preserveAspectRatio: 'xMinYMin meet' }, el('g', { id: 'mapcells' }, el('g', { id: 'mapclasses' }), el('g', { id: 'maplabels' }), el('path', { id: 'mapfocus' }), el('path', { id: 'mapmark' })));
  const select = (id, names, set) => el('select', { id, onchange: (event) => {
    const isShown = by === 'host' || order === 'host';
    set(event.target.value);
    // Hosts are asked for when they are needed, and again when they are chosen once more.
    if (event.target.value === 'host' && !isShown) line('info nodes');
    draw();
  } }, names.map((name) => el('option', { value: name }, name)));
  fill(byId('map'), el('p', {}, el('label', { for: 'mapby' }, 'Colour by '), select('mapby', ['state', 'place', 'host', 'value'], (name) => { by = name; }),
    ' ', el('label', { for: 'maporder' }, 'in order of '), select('maporder', ['rank', 'host'], (name) => { order = name; mark = null; }), ' ', el('span', { id: 'maphere', role: 'status', class: 'note' })),
    svg, el('ul', { id: 'maplegend', 'aria-label': 'Classes' }));

  let draws = false;
  svg.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || total === 0) return;
    draws = true;
    svg.setPointerCapture(event.pointerId);
    mark = { from: cellAt(event), to: cellAt(event) };
    drawMark();
  });
  svg.addEventListener('pointermove', (event) => {
    if (!draws) return tell(total > 0 ? rankOf(cellAt(event)) : -1);
    mark.to = cellAt(event);
    drawMark();
  });
  svg.addEventListener('pointerleave', drawMark);
  svg.addEventListener('pointerup', () => {
    if (draws) choose();
    draws = false;
  });
  svg.addEventListener('keydown', (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns };
    if (event.key in steps && total > 0) {
      const to = (mark?.to ?? 0) + (mark ? steps[event.key] : 0);
      if (to >= 0 && to < grid.columns * grid.rows) mark = { from: event.shiftKey && mark ? mark.from : to, to };
      drawMark();
    } else if (['Home', 'End'].includes(event.key) && total > 0) {
      const to = event.key === 'Home' ? 0 : grid.ranks ? grid.ranks.findLastIndex((rank) => rank >= 0) : total - 1;
      mark = { from: event.shiftKey && mark ? mark.from : to, to };
      drawMark();
    } else if (event.key === 'Enter') choose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  on('board', (record) => { board = record; isOld ||= board.stale && board.running !== ''; draw(); });
  on('stop', () => { isOld = true; });
  on('sight', (record) => { sight = record; if (by === 'place') draw(); });
  on('nodes', ({ rows }) => { nodes = rows.filter(({ tasks }) => tasks !== ''); draw(); });
  on('values', (record) => {
    if (/^\d+: /.test(record.expression)) return;
    values = { expression: record.expression, rows: record.values };
    isOld = false;
    if (by === 'value') draw();
  });
}
