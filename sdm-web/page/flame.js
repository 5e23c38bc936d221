// What ranks did over a while: the frames of a profile, or of the stops, as wide as they were seen often, in all of the time or a
// part of it.

import { el, byId, fill, walk } from './dom.js';
import { line, on } from './link.js';
import { count, counted, label, union } from './sets.js';

const WIDTH = 600;
const TALL = 20;
const LETTER = 6.6;
// Narrower frames are not drawn.
const NARROWEST = 0.5;
// So many stops are kept, with so many frames in all.
const STOPS_MAX = 32;
const FRAMES_MAX = 20000;

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

// These stops as the nodes of a profile: a frame counts once at each stop for each rank that is in it.
function ofStops(stops) {
  const root = { children: new Map() };
  for (const { tasks, frames: stack } of stops.flatMap(({ stacks }) => stacks)) {
    let node = root;
    stack.forEach(({ module, function: name, file, line: number }, depth) => {
      const key = `${module}\t${name}\t${file}`;
      if (!node.children.has(key)) node.children.set(key, { depth, function: name, file, lines: [number, number], times: 0, sets: [], children: new Map() });
      node = node.children.get(key);
      node.lines = [Math.min(node.lines[0], number), Math.max(node.lines[1], number)];
      node.times += count(tasks);
      node.sets.push(tasks);
    });
  }
  const flat = ({ children }) => [...children.values()].flatMap((node) => [{ ...node, tasks: union(node.sets) }, ...flat(node)]);
  return flat(root);
}

function drawStops(stops, at) {
  draw(ofStops(at === 0 ? stops : [stops[at - 1]]), null, at === 0 ? `all of ${counted(stops.length, 'stop')}` : `stop ${at} of ${stops.length}, ${stops[at - 1].when}`);
}

function drawProfile({ nodes, parts, span_ms: span }, at) {
  const seconds = (part) => `${((part / (parts || 1)) * (span / 1000)).toFixed(1)} s`;
  draw(nodes, at === 0 ? null : at - 1, at === 0 ? `all of ${seconds(parts)}` : `from ${seconds(at - 1)} to ${seconds(at)}`);
}

function draw(nodes, part, when) {
  byId('flamewhen').textContent = when;
  const all = frames(nodes, part);
  const height = (Math.max(0, ...all.map(({ node }) => node.depth)) + 1) * TALL;
  const drawn = el('svg', { id: 'flame', role: 'group', viewBox: `0 0 ${WIDTH} ${height}`, 'aria-label': `Flame graph, ${when}: ${all.length} functions` },
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
  let profile = null;
  let isMoved = false;
  const stops = [];
  const slider = el('input', { id: 'flamepart', type: 'range', min: 0, max: 0, value: 0, oninput: () => redraw() });
  const of = el('select', { id: 'flameof', onchange: () => turn() }, ['stops', 'profile'].map((name) => el('option', { value: name }, name)));
  const time = el('p', {}, el('label', { for: 'flameof' }, 'Frames of the '), of, ' ', el('label', { for: 'flamepart' }, 'Time '), slider, ' ', el('span', { id: 'flamewhen', role: 'status', class: 'note' }));
  time.hidden = true;
  fill(byId('profile'), time, el('div', { id: 'flamegraph' }), el('ul', { id: 'flameclasses', 'aria-label': 'Classes' }),
    el('p', { id: 'flamenote', class: 'note' }, 'Profile looks for ten seconds at ranks that gdb is not attached to.'));
  const isOfStops = () => of.value === 'stops' || !profile;
  function redraw() {
    time.hidden = isOfStops() && stops.length === 0;
    byId('flamenote').hidden = !isOfStops();
    if (!isOfStops()) drawProfile(profile, Number(slider.value));
    else if (stops.length > 0) drawStops(stops, Number(slider.value));
    else fill(byId('flamegraph'));
  }
  function turn() {
    of.lastElementChild.disabled = !profile;
    slider.setAttribute('max', isOfStops() ? stops.length : profile.parts);
    slider.value = 0;
    byId('flameclasses').hidden = isOfStops();
    redraw();
  }
  turn();

  on('stop', () => { isMoved = true; });
  // What is looked at anew at the same stop replaces what was seen before.
  on('sight', ({ stacks }) => {
    if (!stacks || (!isMoved && stops.length === 0)) return;
    if (!isMoved) stops.pop();
    isMoved = false;
    stops.push({ stacks: stacks.stacks, when: new Date().toLocaleTimeString() });
    const size = (stop) => stop.stacks.reduce((sum, { frames: stack }) => sum + stack.length, 0);
    let room = FRAMES_MAX - stops.reduce((sum, stop) => sum + size(stop), 0);
    while (stops.length > 1 && (stops.length > STOPS_MAX || room < 0)) room += size(stops.shift());
    showStops();
  });
  // They are drawn where they are seen.
  function showStops() {
    if (!isOfStops() || byId('profile').hidden) return;
    slider.setAttribute('max', stops.length);
    redraw();
  }
  byId('profile').addEventListener('show', showStops);
  on('profile', (record) => {
    profile = record;
    of.value = 'profile';
    turn();
    fill(byId('flameclasses'), record.classes.map(({ tasks, moved, places, times, all, frames: stack }) => {
      const inner = stack.at(-1);
      const place = inner && `${inner.function}${inner.file ? ` ${inner.file}${inner.line ? `:${inner.line}` : ''}` : ''}`;
      const where = !inner ? 'elsewhere' : moved ? `${places} places; ${percent(times, all)} of the time in ${place}` : `always in the same place, ${place}`;
      return el('li', {}, el('button', { type: 'button', onclick: () => line(`focus ${tasks}`) }, label(tasks)), ` ${where}`);
    }));
  });
}
