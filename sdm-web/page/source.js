// The source around the place where most of the focus stand, or what `list` has shown since.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { label } from './sets.js';

let board = null;
let source = null;
let listing = null;

const fileOf = (path) => path.split('/').at(-1);

function draw() {
  if (!source && !listing) {
    fill(byId('source'), el('p', { class: 'note' }, 'There is no source where the focus stands.'));
    return;
  }
  const file = fileOf(listing?.file ?? source.path);
  const points = new Map();
  for (const { number, places } of board?.breakpoints ?? []) {
    for (const place of places) if (fileOf(place.file) === file) points.set(place.line, number);
  }
  const head = listing
    ? el('p', {}, el('code', {}, listing.file))
    : el('p', {}, el('code', {}, source.path), ` ${source.function}: `, label(source.tasks), source.caller ? ' (further in)' : '');
  const lines = listing?.lines ?? source.lines.map((text, at) => ({ line: source.first + at, text, here: source.first + at === source.line ? source.tasks : '' }));
  fill(byId('source'), head,
    el('table', { class: 'lines' }, lines.map(({ line: number, text, here }) => {
      const point = points.get(number);
      return el('tr', { class: here ? 'here' : '', 'aria-current': here ? 'true' : null },
        el('td', {}, el('button', { type: 'button', class: point ? 'point' : '', 'aria-label': `${point ? `breakpoint ${point} at` : 'break at'} line ${number}`, onclick: () => line(point ? `delete ${point}` : `break ${file}:${number}`) }, number)),
        el('td', {}, el('code', {}, text)), el('td', { class: 'note' }, here ? label(here) : ''));
    })));
}

export function start() {
  on('sight', (sight) => { source = sight.source; listing = null; draw(); });
  on('listing', (record) => { listing = record; draw(); });
  on('board', (record) => { board = record; draw(); });
  draw();
}
