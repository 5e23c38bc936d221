// Who waits for whom, as the last diagnosis has found: groups of ranks and arrows between them, the circle marked.

import { el, byId, fill, walk } from './dom.js';
import { line, on } from './link.js';
import { find } from './source.js';
import { count, label, nth } from './sets.js';

const WIDTH = 640;
const BOX = 190;
const TALL = 54;
const EDGES_MAX = 40;

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 3)}...` : text);

// The call or signal, and the place in the program that it was called from or came at, each a line of a box.
const parts = (what) => {
  const [, call, from, at] = /^(?:stopped, and about to end: )?(.*?)(?:, called from (.*?)|, (\S+ \(.*?\) at .*?))?(?:;.*)?$/s.exec(what);
  return [call, from ?? at].filter(Boolean);
};

// The step as `diagnose` begins its answer.
const named = (step) => (/^\w+$/.test(step) ? `${step[0].toUpperCase()}${step.slice(1).replaceAll('_', ' ')}: ` : '');

// A text whose first place in the program is a button that shows its line.
function placed(text) {
  const found = / at ([^\s:;,]+):(\d+)/.exec(text);
  if (!found) return [text];
  const from = found.index + ' at '.length;
  const place = `${found[1]}:${found[2]}`;
  return [text.slice(0, from), el('button', { type: 'button', class: 'code', title: 'shows the source', onclick: () => find(found[1], Number(found[2])) }, place), text.slice(from + place.length)];
}

// Where the middle of each node is: those of each circle on one, the others in rows below.
function layout(loops, rest) {
  const places = new Map();
  let top = TALL;
  for (const loop of loops) {
    // A loop: down on the right, up on the left, so that each arrow has room between two boxes.
    const half = Math.ceil(loop.length / 2);
    loop.forEach((node, at) => {
      const isRight = at < half;
      const row = isRight ? at : loop.length - 1 - at + (loop.length % 2) / 2;
      places.set(node, [WIDTH * (isRight ? 0.75 : 0.25), top + row * TALL * 1.7]);
    });
    top += half * TALL * 1.7;
  }
  // What stands at an arrow has room between the boxes.
  if (loops.length > 0) top += TALL / 2;
  const columns = Math.min(3, Math.max(1, rest.length));
  rest.forEach((node, at) => {
    const gap = WIDTH / columns;
    // Every second row is shifted, so that arrows do not lie on each other.
    const shift = Math.floor(at / columns) % 2 ? 20 : -20;
    places.set(node, [(at % columns) * gap + gap / 2 + (columns > 1 ? shift / 2 : 0), top + Math.floor(at / columns) * TALL * 2.2 + ((at % columns) % 2) * TALL]);
  });
  const height = Math.max(...[...places.values()].map(([, y]) => y)) + TALL;
  return { places, height };
}

// From the edge of one box to that of another, around those between, where there is a way.
function arrow([x1, y1], [x2, y2], between) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const part = Math.min(BOX / 2 / Math.max(Math.abs(dx), 1e-6), TALL / 2 / Math.max(Math.abs(dy), 1e-6), 0.45);
  const [ax, ay, bx, by] = [x1 + dx * part, y1 + dy * part, x2 - dx * part, y2 - dy * part];
  const long = Math.hypot(dx, dy) || 1;
  const control = (bend) => [(ax + bx) / 2 - (dy / long) * bend, (ay + by) / 2 + (dx / long) * bend];
  const isFree = (bend) => [0.2, 0.35, 0.5, 0.65, 0.8].every((t) => {
    const [mx, my] = control(bend);
    const on = (a, m, b) => (1 - t) ** 2 * a + 2 * t * (1 - t) * m + t ** 2 * b;
    return between.every(([x, y]) => Math.abs(on(ax, mx, bx) - x) > BOX / 2 || Math.abs(on(ay, my, by) - y) > TALL / 2);
  });
  // To the right of its way, so that two that wait for each other have an arrow each.
  const least = Math.min(18, long / 8);
  const bend = [least, BOX / 2, -BOX / 2, BOX, -BOX, 1.5 * BOX, -1.5 * BOX].find(isFree) ?? least;
  const [mx, my] = control(bend);
  // A far control point is beside the line.
  const [tx, ty] = bend === least ? [mx, my] : [(ax + 2 * mx + bx) / 4, (ay + 2 * my + by) / 4];
  const n = (value) => value.toFixed(1);
  return { d: `M${n(ax)} ${n(ay)}Q${n(mx)} ${n(my)} ${n(bx)} ${n(by)}`, x: n(tx), y: n(ty) };
}

// From a box back to it: some of its ranks wait for others of them.
function within([x, y]) {
  const low = y + TALL / 2;
  return { d: `M${x - 24} ${low}C${x - 36} ${low + 26} ${x + 36} ${low + 26} ${x + 24} ${low}`, x: x + 30, y: low + 18 };
}

function draw({ conclusion, graph, circle, findings, step, suspects, held_up_by: holders }) {
  const whose = step === 'held_up' && holders ? `Held up by ${label(holders)}: ` : `${named(step)}${suspects ? `likely to blame: ${label(suspects)}: ` : ''}`;
  const { nodes, edges } = graph;
  const alone = new Map(nodes.filter(({ tasks }) => count(tasks) === 1).map((node) => [nth(node.tasks, 0), node]));
  const loops = (graph.circles ?? [circle]).map((ranks) => ranks.map((rank) => alone.get(rank)).filter(Boolean));
  const next = new Map(loops.flatMap((loop) => loop.map((node, at) => [node, loop[(at + 1) % loop.length]])));
  const isOnCircle = ({ from, to }) => next.get(nodes[from]) === nodes[to];
  const { places, height } = layout(loops, nodes.filter((node) => !next.has(node)));
  const arrows = edges.map((edge) => {
    const [from, to] = [nodes[edge.from], nodes[edge.to]];
    const { d, x, y } = from === to ? within(places.get(from)) : arrow(places.get(from), places.get(to), nodes.filter((node) => node !== from && node !== to).map((node) => places.get(node)));
    const text = from === to ? `${label(from.tasks)} for one another: ${from.what}` : `${label(from.tasks)} for ${label(to.tasks)}: ${from.what}`;
    return el('g', { class: isOnCircle(edge) ? 'wait circle' : 'wait' },
      el('path', { d }, el('title', {}, text)), edge.waits > 1 ? el('text', { x, y }, `${edge.waits} waits`) : null);
  });
  const boxes = nodes.map((node) => {
    const [x, y] = places.get(node);
    return el('g', { class: `node ${/^\w+$/.test(node.kind) ? node.kind : ''}`, role: 'button', 'aria-label': `${label(node.tasks)}: ${node.what}`, onclick: () => line(`focus ${node.tasks}`) },
      el('rect', { x: x - BOX / 2, y: y - TALL / 2, width: BOX, height: TALL, rx: 5 }),
      el('text', { x, y: y - 10, 'text-anchor': 'middle' }, short(label(node.tasks), 28)),
      parts(node.what).map((part, at) => el('text', { x, y: y + 6 + at * 14, 'text-anchor': 'middle', class: 'what' }, short(part, 34))),
      el('title', {}, `${label(node.tasks)}: ${node.what}`));
  });
  const head = el('defs', {}, ['arrow', 'arrowcircle'].map((id, at) =>
    el('marker', { id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7 - 3 * at, markerHeight: 7 - 3 * at, orient: 'auto' }, el('path', { d: 'M0 0L8 4L0 8z' }))));
  byId('waits').classList.remove('old');
  fill(byId('waits'),
    el('p', { class: `verdict ${/^\w+$/.test(step) ? step : ''}` }, whose, conclusion),
    nodes.length ? walk(el('svg', { id: 'waitssvg', role: 'group', 'aria-label': `Who waits for whom: ${conclusion}`, viewBox: `0 0 ${WIDTH} ${height}` }, head, arrows, boxes), boxes) : null,
    // As text as well: what stands at an arrow is seen by the mouse only.
    el('ul', { id: 'edges', class: 'note', 'aria-label': 'Waits' }, edges.slice(0, EDGES_MAX).map(({ from, to, waits }) =>
      el('li', {}, `${label(nodes[from].tasks)} for ${from === to ? 'one another' : label(nodes[to].tasks)}${waits > 1 ? ` (${waits} waits)` : ''}: `, placed(nodes[from].what))),
    edges.length > EDGES_MAX ? el('li', {}, `and ${edges.length - EDGES_MAX} more`) : null),
    el('ul', { id: 'findings', 'aria-label': 'Findings' }, findings.map((finding) => el('li', {},
      el('button', { type: 'button', onclick: () => line(`focus ${finding.tasks}`) }, label(finding.tasks)), ' ', placed(finding.what),
      el('ul', { class: 'note' }, finding.evidence.map((text) => el('li', {}, text)))))));
}

export function start() {
  fill(byId('waits'), el('p', { class: 'note' }, 'Diagnose shows who waits for whom.'));
  on('diagnosis', draw);
  on('board', ({ stale, running }) => { if (stale && running) byId('waits').classList.add('old'); });
  on('stop', () => byId('waits').classList.add('old'));
}
