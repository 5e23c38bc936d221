// The stacks of all ranks as one tree: a row for each frame, as wide as many ranks are in it.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { find } from './source.js';
import { count, counted, label, union } from './sets.js';

// So many rows are unfolded at first, and so many with the same caller are shown: more than a screen has.
const ROWS_MAX = 80;
const SIBLINGS_MAX = 60;

// A tree of the distinct stacks, outermost frames at the root.
export function merge(stacks) {
  const root = { children: new Map(), key: '' };
  for (const stack of stacks) {
    let node = root;
    for (const frame of stack.frames) {
      // Recursion of another depth is another place, as in `stacks`.
      const key = `${frame.module}\t${frame.function}\t${frame.file}\t${frame.line}\t${frame.repeat}`;
      if (!node.children.has(key)) {
        node.children.set(key, { frame, key: `${node.key}\n${key}`, parts: [], children: new Map() });
      }
      node = node.children.get(key);
      node.parts.push(stack.tasks);
    }
  }
  const finish = (node, level) => {
    node.level = level;
    node.tasks = union(node.parts ?? []);
    node.count = count(node.tasks);
    node.children = [...node.children.values()].map((child) => finish(child, level + 1)).sort((a, b) => b.count - a.count);
    return node;
  };
  return finish(root, 0).children;
}

// The keys of the rows that are unfolded at first: level by level, as long as there is room.
function unfolded(roots) {
  const open = new Set();
  let room = ROWS_MAX - roots.length;
  for (let level = roots; level.length > 0;) {
    const next = [];
    for (const node of level) {
      const children = node.children.slice(0, SIBLINGS_MAX);
      if (children.length > room) continue;
      room -= children.length;
      open.add(node.key);
      next.push(...children);
    }
    level = next;
  }
  return open;
}

const placeOf = ({ module, file, line: number }) => (file ? `${file}${number ? `:${number}` : ''}` : module);

const file = ({ frame }) => frame.module === '' && frame.file && frame.line;

// Shows the source at the place of a row.
function list(node) {
  if (file(node)) find(node.frame.file, node.frame.line);
}

export function start() {
  const tree = byId('tree');
  const note = byId('stacksnote');
  // What a person has folded or unfolded: true where it is folded.
  const folded = new Map();
  let open = new Set();
  let all = 0;
  let shown = null;
  // The stacks that the overview has sent, since ranks have moved.
  let sighted = null;
  let before = new Map();
  let now = new Map();
  let current = '';
  let board = null;
  let last = null;

  const rows = () => [...tree.querySelectorAll('[role=treeitem]')];
  const isFolded = (node) => folded.get(node.key) ?? !open.has(node.key);

  function select(row, focus = true) {
    for (const other of tree.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    row.setAttribute('tabindex', '0');
    current = row.dataset.key;
    if (focus) row.focus();
  }

  function fold(row, closed) {
    if (!row.hasAttribute('aria-expanded')) return;
    row.setAttribute('aria-expanded', String(!closed));
    folded.set(row.dataset.key, closed);
    row.querySelector(':scope > [role=group]')?.remove();
    if (!closed) row.append(group(now.get(row.dataset.key)));
  }

  const group = (node) => el('ul', { role: 'group' }, items(node.children));

  function items(nodes) {
    const more = nodes.slice(SIBLINGS_MAX);
    return [...nodes.slice(0, SIBLINGS_MAX).map(item),
      more.length ? el('li', { role: 'none', class: 'note' }, `${counted(more.length, 'more row')}, ${label(union(more.map(({ tasks }) => tasks)))}: a smaller focus shows them`) : null];
  }

  function item(node) {
    const isNew = before.size > 0 && before.get(node.key)?.tasks !== node.tasks;
    const closed = isFolded(node);
    const repeat = node.frame.repeat > 1 ? ` (${node.frame.repeat} times)` : '';
    const place = placeOf(node.frame);
    const row = el('div', { class: 'row', onclick: () => { select(element); line(`focus ${node.tasks}`); } },
      el('span', { class: 'bar', 'aria-hidden': 'true', 'width%': (node.count / all) * 100 }),
      el('span', { class: 'twisty', 'aria-hidden': 'true', onclick: (event) => { event.stopPropagation(); select(element); fold(element, !isFolded(node)); } }),
      el('span', { class: 'function', title: node.frame.function }, node.frame.function || '??', repeat),
      el('span', { class: file(node) ? 'place source' : 'place', title: file(node) ? `${place}: shows the source (key l)` : place, onclick: (event) => { event.stopPropagation(); select(element); list(node); } }, place),
      isNew ? el('span', { class: 'new' }, 'changed') : null,
      el('span', { class: 'tasks' }, label(node.tasks)));
    const element = el('li', {
      role: 'treeitem', tabindex: -1, 'aria-level': node.level, 'data-key': node.key, 'data-tasks': node.tasks,
      class: node.count < all / 8 || node.count === 1 ? 'few' : '',
      'aria-label': `${node.frame.function || 'unknown function'}${repeat}${place ? `, ${place}` : ''}: ${label(node.tasks)}${isNew ? ', changed' : ''}`,
      'aria-expanded': node.children.length ? String(!closed) : null,
    }, row);
    if (node.children.length && !closed) element.append(group(node));
    return element;
  }

  function draw(stacks) {
    const text = JSON.stringify(stacks);
    last = stacks;
    say();
    if (text === shown) return;
    shown = text;
    before = now;
    now = new Map();
    const had = tree.contains(document.activeElement);
    const roots = stacks ? merge(stacks.stacks) : [];
    all = stacks?.count ?? 0;
    open = unfolded(roots);
    const keep = (node) => { now.set(node.key, node); node.children.forEach(keep); };
    roots.forEach(keep);
    fill(tree, items(roots).filter(Boolean));
    const again = rows().find((row) => row.dataset.key === current) ?? rows()[0];
    if (again) select(again, had);
  }

  // What there is to say about the rows, or instead of them.
  function say() {
    const isLooked = board?.stale && board.running !== board.all;
    const none = board?.running ? 'No rank is stopped: Interrupt (the key i) stops the running ranks.' : 'No rank is stopped.';
    const rest = last ? [
      last.others && `${label(last.others)} in stacks that there was no room for`,
      last.bare && `${label(last.bare)} with a thread without a frame`,
    ] : [isLooked || !board ? 'Looking ...' : none];
    note.textContent = rest.filter(Boolean).join('; ');
    byId('stacks').classList.toggle('stale', Boolean(last && board?.stale));
  }

  tree.addEventListener('keydown', (event) => {
    const row = event.target.closest('[role=treeitem]');
    if (!row || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = rows();
    const at = all.indexOf(row);
    const isOpen = row.getAttribute('aria-expanded') === 'true';
    const parent = row.parentElement.closest('[role=treeitem]');
    const act = {
      ArrowDown: () => all[at + 1] && select(all[at + 1]),
      ArrowUp: () => all[at - 1] && select(all[at - 1]),
      Home: () => select(all[0]),
      End: () => select(all.at(-1)),
      ArrowRight: () => (isOpen ? select(all[at + 1]) : fold(row, false)),
      ArrowLeft: () => (isOpen ? fold(row, true) : parent && select(parent)),
      Enter: () => line(`focus ${row.dataset.tasks}`),
      l: () => list(now.get(row.dataset.key)),
      ' ': () => fold(row, isOpen),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });

  on('board', (record) => {
    board = record;
    if (board.stale) sighted = null;
    say();
  });
  on('sight', ({ stacks }) => {
    // An answer of `stacks` is newer than the stacks that the overview had before it.
    const text = JSON.stringify(stacks);
    if (text !== sighted) draw(stacks);
    sighted = text;
  });
  on('answer', ({ classes }) => {
    const stacks = classes.find(({ type }) => type === 'stacks');
    if (stacks) draw(stacks);
  });
}
