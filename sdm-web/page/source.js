// The source around the place where most of the focus stand, or what `list` has shown since.

import { el, byId, fill } from './dom.js';
import { isPanel, line, on, show } from './link.js';
import { label } from './sets.js';

let board = null;
let source = null;
let listing = null;
let isMoved = false;
// The line that was asked for last.
let wanted = 0;

const fileOf = (path) => path.split('/').at(-1);

// Shows the source around a line: here, or in the editor.
export function find(file, number) {
  wanted = number;
  line(`list ${file}:${number}`);
}

// A text that leads to a line in the editor, where there is one.
const code = (text, path, number) => (isPanel && text && path.startsWith('/')
  ? el('button', { type: 'button', class: 'code', title: `line ${number} in the editor`, onclick: () => show(path, number) }, text)
  : el('code', {}, text));

function draw() {
  if (!source && !listing) {
    fill(byId('source'), el('p', { class: 'note' }, 'The selected frame has no source.'));
    return;
  }
  const path = listing?.file ?? source.path;
  const file = fileOf(path);
  const points = new Map();
  for (const { number, places } of board?.breakpoints ?? []) {
    for (const place of places) if (fileOf(place.file) === file) points.set(place.line, number);
  }
  const head = listing
    ? el('p', {}, code(path, path, wanted || listing.lines[0]?.line || 1), ' ', source ? el('button', { type: 'button', onclick: () => { listing = null; draw(); } }, 'Current line') : null)
    : el('p', {}, code(path, path, source.line), ` ${source.function}: `, label(source.tasks), source.caller ? ' (further in)' : '');
  const lines = listing?.lines ?? source.lines.map((text, at) => ({ line: source.first + at, text, here: source.first + at === source.line ? source.tasks : '' }));
  fill(byId('source'), head,
    el('table', { class: 'lines' }, lines.map(({ line: number, text, here }) => {
      const point = points.get(number);
      return el('tr', { class: here ? 'here' : '', 'aria-current': here ? 'true' : null },
        el('td', {}, el('button', { type: 'button', class: point ? 'point' : '', 'aria-label': `${point ? `breakpoint ${point} at` : 'break at'} line ${number}`, onclick: () => line(point ? `delete ${point}` : `break ${file}:${number}`) }, number)),
        el('td', {}, code(text, path, number)), el('td', { class: 'note' }, here ? label(here) : ''));
    })));
}

export function start() {
  const placeOf = (it) => it && `${it.path}:${it.line} ${it.function}`;
  on('stop', () => { isMoved = true; });
  // A look follows each command, also the one that has listed.
  on('sight', (sight) => {
    if (isMoved || placeOf(sight.source) !== placeOf(source)) listing = null;
    isMoved = false;
    source = sight.source;
    draw();
  });
  on('listing', (record) => {
    listing = record;
    isMoved = false;
    if (isPanel && wanted && listing.file.startsWith('/')) show(listing.file, wanted);
    wanted = 0;
    draw();
  });
  on('board', (record) => { board = record; draw(); });
  draw();
}
