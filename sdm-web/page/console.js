// The prompt's own language, and what the session says as text.

import { el, byId } from './dom.js';
import { answer, complete, interrupt, on, suspend, tellColumns } from './link.js';

const ENTRIES_MAX = 500;
const HISTORY_MAX = 200;
const WORDS_MAX = 60;
// While a window is resized its width is told once it rests, in milliseconds.
const REST = 200;

// Tells the session how many letters a line of the console has room for, at first and when that changes. Calls `rest` when
// the console has another size.
function measure(log, rest) {
  const pen = el('canvas').getContext('2d');
  let columns = 0;
  let timer = 0;
  const tell = () => {
    pen.font = getComputedStyle(byId('prompt')).font;
    const fit = Math.floor(log.clientWidth / pen.measureText('x').width);
    if (fit > 0 && fit !== columns) tellColumns(fit);
    columns = fit || columns;
  };
  new ResizeObserver(() => {
    rest();
    clearTimeout(timer);
    if (columns === 0) tell();
    else timer = setTimeout(tell, REST);
  }).observe(log);
}

// What all of these begin with.
function common(words) {
  let most = words[0].length;
  for (const word of words) while (!word.startsWith(words[0].slice(0, most))) most -= 1;
  return words[0].slice(0, most);
}

export function start() {
  const log = byId('log');
  const input = byId('command');
  const history = [];
  let at = 0;
  // False while a command is waited for.
  let isAsked = true;
  let isQuestion = false;
  // The line up to the cursor for which no word was found: a further Tab leads on, as it does in an empty line.
  let isWhole = '';

  // In another width the same lines have another height. The scrolling that follows is not the user's.
  let isAtEnd = true;
  let size = '';
  const room = () => `${log.clientWidth} ${log.clientHeight}`;
  const stay = () => {
    size = room();
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  };
  log.addEventListener('scroll', () => { if (room() === size) isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40; });
  measure(log, stay);

  // What comes together is laid out once: a program may print thousands of lines a second.
  let waiting = [];
  function flush() {
    log.append(...waiting.map(([text, name]) => el('pre', { class: name }, text.replace(/\n$/, ''))));
    waiting = [];
    while (log.childElementCount > ENTRIES_MAX) log.firstElementChild.remove();
    stay();
  }
  function add(text, name) {
    waiting.push([text, name]);
    if (waiting.length > ENTRIES_MAX) waiting.shift();
    if (waiting.length === 1) setTimeout(flush);
  }

  on('said', ({ text }) => add(text));
  on('typed', ({ text }) => add(isQuestion ? text.replace(/^\(sdm\) /, '') : text, 'typed'));
  on('left_out', () => add('(more was said than there is room for)', 'note'));
  on('prompt', ({ text, question, asked }) => {
    isAsked = asked;
    // A question is a part of what is said; other prompts are not.
    if (question && !isQuestion) add(text, 'note');
    isQuestion = question;
    byId('prompt').textContent = text.trim() || '(sdm)';
    input.classList.toggle('question', question);
  });
  on('status', ({ text }) => { byId('status').textContent = text ?? ''; });

  on('completion', ({ typed, kept, words }) => {
    const end = input.selectionStart;
    if (input.value.slice(0, end) !== typed) return;
    const found = words.length > 0 ? kept + common(words) : typed;
    if (found.length > typed.length) {
      const rest = input.value.slice(end);
      input.value = found + (found.endsWith(' ') ? rest.replace(/^ /, '') : rest);
      input.setSelectionRange(found.length, found.length);
    } else if (words.length > 1) {
      const more = words.length - WORDS_MAX;
      add(`${words.slice(0, WORDS_MAX).map((word) => word.trim()).join('  ')}${more > 0 ? `  and ${more} more` : ''}`, 'note');
    } else {
      isWhole = typed;
      add('(no completion)', 'note');
    }
  });

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
    const typed = input.value.slice(0, input.selectionStart);
    if (event.key === 'Tab' && !event.shiftKey && typed !== isWhole) {
      event.preventDefault();
      complete(typed);
    }
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) {
      event.preventDefault();
      at = Math.min(Math.max(at + step, 0), history.length);
      input.value = history[at] ?? '';
    } else if (event.key === 'c' && event.ctrlKey && input.selectionStart === input.selectionEnd) {
      event.preventDefault();
      input.value = '';
      interrupt();
    } else if (event.key === 'z' && event.ctrlKey && !isAsked) {
      event.preventDefault();
      suspend();
    }
  });
}
