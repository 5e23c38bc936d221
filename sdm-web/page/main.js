// The page: what the session is like at a glance, run control, and the views.

import { el, byId, fill } from './dom.js';
import { interrupt, line, on, open } from './link.js';
import { count, label } from './sets.js';
import * as prompt from './console.js';
import * as flame from './flame.js';
import * as map from './map.js';
import * as source from './source.js';
import * as tabs from './tabs.js';
import * as tree from './tree.js';
import * as values from './values.js';
import * as waits from './waits.js';

// Each button, its key, and the line of the prompt that it stands for.
const CONTROLS = [
  ['Continue', 'c', 'continue &'],
  ['Next', 'n', 'next &'],
  ['Step', 's', 'step &'],
  ['Finish', 'f', 'finish &'],
  ['Interrupt', 'i', 'interrupt'],
  ['Stacks', 'k', 'stacks'],
  ['Diagnose', 'd', 'diagnose'],
  ['Profile', 'p', 'profile'],
];

let board = null;
let isAsked = true;

// While a command is waited for there is no prompt: what Ctrl-C does reaches it.
function control(text) {
  if (text === 'interrupt' && !isAsked) interrupt();
  else line(text);
}

function showStates() {
  fill(byId('states'), map.states(board.ranks).map(([name, tasks, colour]) => el('li', { class: `state ${colour}` }, `${count(tasks)} ${name}`)));
  const focus = byId('focus');
  if (document.activeElement !== focus) focus.value = board.focus === board.all ? 'all' : board.focus;
}

fill(byId('controls'), CONTROLS.map(([name, key, text]) =>
  el('button', { type: 'button', title: `${text} (key ${key})`, 'data-line': text, onclick: () => control(text) }, name)));

byId('keys').textContent = [...CONTROLS.map(([name, key]) => `${key} ${name}`), '/ console', 'arrows, Home, End move in stacks, tabs and pictures', 'Shift and arrows mark', 'Enter makes the row, the mark or the box the focus', 'l source of the row', '? these keys'].join(', ');
function tellKeys() {
  byId('keys').hidden = !byId('keys').hidden;
  byId('keysbutton').setAttribute('aria-expanded', String(!byId('keys').hidden));
}
byId('keysbutton').addEventListener('click', tellKeys);

byId('focusform').addEventListener('submit', (event) => {
  event.preventDefault();
  line(`focus ${byId('focus').value.trim() || 'all'}`);
  byId('focus').blur();
});

document.addEventListener('keydown', (event) => {
  const isText = event.target.closest('input, textarea, select');
  if (isText || event.ctrlKey || event.altKey || event.metaKey) return;
  const found = CONTROLS.find(([, key]) => key === event.key);
  if (found) control(found[2]);
  else if (event.key === '/') byId('command').focus();
  else if (event.key === '?') tellKeys();
  else return;
  event.preventDefault();
});

on('start', ({ program, tasks, pids }) => {
  const name = program[0]?.split('/').at(-1) ?? (pids[0] ? `attached to ${pids.length > 1 ? 'processes from ' : 'process '}${pids[0].pid}` : 'attached');
  byId('program').textContent = `${name}: ${label(tasks)}`;
  document.title = `${name} (${count(tasks)}) - sdm`;
});
on('board', (record) => {
  board = record;
  showStates();
});
on('prompt', ({ asked }) => { isAsked = asked; });

const show = tabs.start('tabs', [['map', 'Map'], ['waits', 'Waits'], ['profile', 'Profile'], ['values', 'Values'], ['source', 'Source']]);
for (const part of [prompt, tree, map, waits, flame, values, source]) part.start();
// What was asked for is what a person wants to see.
for (const [kind, view] of [['diagnosis', 'waits'], ['profile', 'profile'], ['listing', 'source']]) on(kind, () => show(view));
for (const kind of ['plot', 'stats', 'comparison']) on(kind, () => show('values'));
on('values', ({ expression }) => { if (!/^\d+: /.test(expression)) show('values'); });
open((text) => { byId('link').textContent = text; }, () => {
  document.body.classList.add('over');
  for (const it of document.querySelectorAll('#controls button, #focusform button, #focus, #command, #valuesform button')) it.disabled = true;
});
