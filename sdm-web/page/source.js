// The source around the place where most of the focus stand.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { label } from './sets.js';

let board = null;
let source = null;

const fileOf = (path) => path.split('/').at(-1);

function draw() {
  if (!source) {
    fill(byId('source'), el('p', { class: 'note' }, 'There is no source where the focus stands.'));
    return;
  }
  const file = fileOf(source.path);
  const points = new Map();
  for (const { number, places } of board?.breakpoints ?? []) {
    for (const place of places) if (fileOf(place.file) === file) points.set(place.line, number);
  }
  fill(byId('source'),
    el('p', {}, el('code', {}, source.path), ` ${source.function}: `, label(source.tasks), source.caller ? ' (further in)' : ''),
    el('table', { class: 'lines' }, source.lines.map((text, at) => {
      const number = source.first + at;
      const point = points.get(number);
      return el('tr', { class: number === source.line ? 'here' : '', 'aria-current': number === source.line ? 'true' : null },
        el('td', {}, el('button', { type: 'button', class: point ? 'point' : '', 'aria-label': `${point ? `breakpoint ${point} at` : 'break at'} line ${number}`, onclick: () => line(point ? `delete ${point}` : `break ${file}:${number}`) }, number)),
        el('td', {}, el('code', {}, text)));
    })));
}

export function start() {
  on('sight', (sight) => { source = sight.source; draw(); });
  on('board', (record) => { board = record; draw(); });
  draw();
}
