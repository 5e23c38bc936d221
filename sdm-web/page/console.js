// The prompt's own language, and what the session says as text.

import { el, byId } from './dom.js';
import { answer, interrupt, on } from './link.js';

const ENTRIES_MAX = 500;
const HISTORY_MAX = 200;

export function start() {
  const log = byId('log');
  const input = byId('command');
  const history = [];
  let at = 0;

  function add(text, name) {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.append(el('pre', { class: name }, text.replace(/\n$/, '')));
    while (log.childElementCount > ENTRIES_MAX) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  on('said', ({ text }) => add(text));
  on('typed', ({ text }) => add(text, 'typed'));
  on('left_out', () => add('(more was said than there is room for)', 'note'));
  on('prompt', ({ text, question }) => {
    byId('prompt').textContent = text.trim() || '(sdm)';
    input.classList.toggle('question', question);
  });
  on('status', ({ text }) => { byId('status').textContent = text ?? ''; });

  byId('line').addEventListener('submit', (event) => {
    event.preventDefault();
    const text = input.value;
    if (text.trim() && history.at(-1) !== text) history.push(text);
    if (history.length > HISTORY_MAX) history.shift();
    at = history.length;
    input.value = '';
    // What was not taken can be sent again.
    answer(text).then((isTaken) => { if (!isTaken && input.value === '' && !input.disabled) input.value = text; });
  });
  input.addEventListener('keydown', (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) {
      event.preventDefault();
      at = Math.min(Math.max(at + step, 0), history.length);
      input.value = history[at] ?? '';
    } else if (event.key === 'c' && event.ctrlKey && input.selectionStart === input.selectionEnd) {
      event.preventDefault();
      input.value = '';
      interrupt();
    }
  });
}
