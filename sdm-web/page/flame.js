// What ranks did over a while: the frames of a profile, as wide as they were seen often, in all of the time or a part of it.

import { el, byId, fill, walk } from './dom.js';
import { line, on } from './link.js';
import { label } from './sets.js';

const WIDTH = 600;
const TALL = 20;
const LETTER = 6.6;
// Narrower frames are not drawn.
const NARROWEST = 0.5;

const percent = (part, whole) => `${((part / (whole || 1)) * 100).toFixed(1)} %`;

// The frames in a part of the time, or in all of it: each with its place. A node comes after its caller.
export function frames(nodes, part) {
  const times = (node) => (part === null ? node.times : node.parts[part] ?? 0);
  const whole = nodes.reduce((sum, node) => sum + (node.depth === 0 ? times(node) : 0), 0);
  const next = [0];
  return nodes.map((node) => {
    const x = next[node.depth];
    const width = (times(node) / (whole || 1)) * WIDTH;
    next[node.depth] = x + width;
    next[node.depth + 1] = x;
    return { node, x, width, share: percent(times(node), whole) };
  }).filter(({ width }) => width >= NARROWEST);
}

function draw({ nodes, parts, span_ms: span }) {
  const at = Number(byId('flamepart').value);
  const seconds = (part) => `${((part / (parts || 1)) * (span / 1000)).toFixed(1)} s`;
  byId('flamewhen').textContent = at === 0 ? `all of ${seconds(parts)}` : `from ${seconds(at - 1)} to ${seconds(at)}`;
  const all = frames(nodes, at === 0 ? null : at - 1);
  const height = (Math.max(0, ...all.map(({ node }) => node.depth)) + 1) * TALL;
  const drawn = el('svg', { id: 'flame', role: 'group', viewBox: `0 0 ${WIDTH} ${height}`, 'aria-label': `Flame graph, ${byId('flamewhen').textContent}: ${all.length} functions` },
    all.map(({ node, x, width, share }) => {
      const { function: name, file, lines: [first, last], tasks } = node;
      const place = file ? ` at ${file}:${first}${last > first ? `-${last}` : ''}` : '';
      const room = Math.floor((width - 6) / LETTER);
      return el('g', { class: `flame f${node.depth % 2}`, role: 'button', 'aria-label': `${name}${place}: ${share}, ${label(tasks)}`, onclick: () => line(`focus ${tasks}`) },
        el('rect', { x: x.toFixed(2), y: node.depth * TALL, width: width.toFixed(2), height: TALL - 1 }),
        room > 2 ? el('text', { x: (x + 3).toFixed(2), y: node.depth * TALL + 14 }, name.length > room ? `${name.slice(0, room - 1)}…` : name) : null,
        el('title', {}, `${name}${place}: ${share}, ${label(tasks)}`));
    }));
  fill(byId('flamegraph'), walk(drawn, [...drawn.querySelectorAll('.flame')]));
}

export function start() {
  let last = null;
  const slider = el('input', { id: 'flamepart', type: 'range', min: 0, max: 0, value: 0, oninput: () => last && draw(last) });
  const time = el('p', {}, el('label', { for: 'flamepart' }, 'Time '), slider, ' ', el('span', { id: 'flamewhen', role: 'status', class: 'note' }));
  time.hidden = true;
  fill(byId('profile'), time, el('div', { id: 'flamegraph' },
    el('p', { class: 'note' }, 'Profile looks for ten seconds at ranks that gdb is not attached to.')), el('ul', { id: 'flameclasses', 'aria-label': 'Classes' }));
  on('profile', (record) => {
    last = record;
    time.hidden = false;
    slider.setAttribute('max', record.parts);
    slider.value = 0;
    draw(record);
    fill(byId('flameclasses'), record.classes.map(({ tasks, moved, places, times, all, frames: stack }) => {
      const inner = stack.at(-1);
      const place = inner && `${inner.function}${inner.file ? ` ${inner.file}${inner.line ? `:${inner.line}` : ''}` : ''}`;
      const where = !inner ? 'elsewhere' : moved ? `${places} places; ${percent(times, all)} of the time in ${place}` : `always in the same place, ${place}`;
      return el('li', {}, el('button', { type: 'button', onclick: () => line(`focus ${tasks}`) }, label(tasks)), ` ${where}`);
    }));
  });
}
