// Who waits for whom, as the last diagnosis has found: groups of ranks and arrows between them, the circle marked.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { count, has, label } from './sets.js';

const WIDTH = 640;
const BOX = 190;
const TALL = 54;

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 3)}...` : text);

// The call, and the place in the program that it was called from, each a line of a box.
const parts = (what) => {
  const [, call, place] = /^(.*?)(?:, called from (.*?))?(?:;.*)?$/s.exec(what);
  return [call, place].filter(Boolean);
};

// The step as `diagnose` begins its answer.
const named = (step) => (/^\w+$/.test(step) ? `${step[0].toUpperCase()}${step.slice(1).replaceAll('_', ' ')}: ` : '');

// Where the middle of each node is: those of the circle on one, the others in rows below.
function layout(nodes, inCircle) {
  const circle = nodes.filter(inCircle);
  const rest = nodes.filter((node) => !inCircle(node));
  const places = new Map();
  // A loop: down on the right, up on the left, so that each arrow has room between two boxes.
  const half = Math.ceil(circle.length / 2);
  circle.forEach((node, at) => {
    const isRight = at < half;
    const row = isRight ? at : circle.length - 1 - at + (circle.length % 2) / 2;
    places.set(node, [WIDTH * (isRight ? 0.75 : 0.25), TALL + row * TALL * 1.7]);
  });
  const top = TALL + half * TALL * 1.7;
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

// From the edge of one box to that of another.
function arrow([x1, y1], [x2, y2]) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const part = Math.min(BOX / 2 / Math.max(Math.abs(dx), 1e-6), TALL / 2 / Math.max(Math.abs(dy), 1e-6), 0.45);
  // To the right of its way, so that two that wait for each other have an arrow each.
  const bend = Math.min(18, Math.hypot(dx, dy) / 8);
  const [ax, ay, bx, by] = [x1 + dx * part, y1 + dy * part, x2 - dx * part, y2 - dy * part];
  const long = Math.hypot(dx, dy) || 1;
  const [mx, my] = [(ax + bx) / 2 - (dy / long) * bend, (ay + by) / 2 + (dx / long) * bend];
  const n = (value) => value.toFixed(1);
  return { d: `M${n(ax)} ${n(ay)}Q${n(mx)} ${n(my)} ${n(bx)} ${n(by)}`, x: n(mx), y: n(my) };
}

function draw({ conclusion, graph, circle, findings, step, suspects, held_up_by: holders }) {
  const whose = step === 'held_up' && holders ? `Held up by ${label(holders)}: ` : `${named(step)}${suspects ? `likely to blame: ${label(suspects)}: ` : ''}`;
  const inCircle = (node) => count(node.tasks) === 1 && circle.some((rank) => has(node.tasks, rank));
  const { nodes, edges } = graph;
  const next = new Map(circle.map((rank, at) => [rank, circle[(at + 1) % circle.length]]));
  const isOnCircle = ({ from, to }) => [...next].some(([a, b]) => inCircle(nodes[from]) && inCircle(nodes[to]) && has(nodes[from].tasks, a) && has(nodes[to].tasks, b));
  const ordered = [...nodes].sort((a, b) => circle.findIndex((rank) => has(a.tasks, rank)) - circle.findIndex((rank) => has(b.tasks, rank)));
  const { places, height } = layout(ordered, inCircle);
  const arrows = edges.filter(({ from, to }) => from !== to).map((edge) => {
    const { d, x, y } = arrow(places.get(nodes[edge.from]), places.get(nodes[edge.to]));
    const text = `${label(nodes[edge.from].tasks)} for ${label(nodes[edge.to].tasks)}: ${nodes[edge.from].what}`;
    return el('g', { class: isOnCircle(edge) ? 'wait circle' : 'wait' },
      el('path', { d }, el('title', {}, text)), edge.waits > 1 ? el('text', { x, y }, edge.waits) : null);
  });
  const boxes = nodes.map((node) => {
    const [x, y] = places.get(node);
    return el('g', { class: `node ${/^\w+$/.test(node.kind) ? node.kind : ''}`, onclick: () => line(`focus ${node.tasks}`) },
      el('rect', { x: x - BOX / 2, y: y - TALL / 2, width: BOX, height: TALL, rx: 5 }),
      el('text', { x, y: y - 10, 'text-anchor': 'middle' }, short(label(node.tasks), 28)),
      parts(node.what).map((part, at) => el('text', { x, y: y + 6 + at * 14, 'text-anchor': 'middle', class: 'what' }, short(part, 34))),
      el('title', {}, `${label(node.tasks)}: ${node.what}`));
  });
  const head = el('defs', {}, ['arrow', 'arrowcircle'].map((id, at) =>
    el('marker', { id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7 - 3 * at, markerHeight: 7 - 3 * at, orient: 'auto' }, el('path', { d: 'M0 0L8 4L0 8z' }))));
  fill(byId('waits'),
    el('p', { class: `verdict ${/^\w+$/.test(step) ? step : ''}` }, whose, conclusion),
    nodes.length ? el('svg', { id: 'waitssvg', role: 'img', 'aria-label': `Who waits for whom: ${conclusion}`, viewBox: `0 0 ${WIDTH} ${height}` }, head, arrows, boxes) : null,
    el('ul', { id: 'findings', 'aria-label': 'Findings' }, findings.map((finding) => el('li', {},
      el('button', { type: 'button', onclick: () => line(`focus ${finding.tasks}`) }, label(finding.tasks)), ' ', finding.what,
      el('ul', { class: 'note' }, finding.evidence.map((text) => el('li', {}, text)))))));
}

export function start() {
  fill(byId('waits'), el('p', { class: 'note' }, 'Diagnose shows who waits for whom.'));
  on('diagnosis', draw);
}
