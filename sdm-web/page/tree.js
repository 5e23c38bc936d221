// The stacks of all ranks as one tree: a row for each frame, as wide as many ranks are in it.

import { el, byId, fill } from './dom.js';
import { line, on } from './link.js';
import { count, label, union } from './sets.js';

const ROWS_MAX = 2000;

// A tree of the distinct stacks, outermost frames at the root.
export function merge(stacks) {
  const root = { children: new Map(), key: '' };
  for (const stack of stacks) {
    let node = root;
    for (const frame of stack.frames) {
      const key = `${frame.module}\t${frame.function}\t${frame.file}\t${frame.line}`;
      if (!node.children.has(key)) {
        node.children.set(key, { frame, key: `${node.key}\n${key}`, parts: [], children: new Map() });
      }
      node = node.children.get(key);
      node.parts.push(stack.tasks);
    }
  }
  const finish = (node) => {
    node.tasks = union(node.parts ?? []);
    node.count = count(node.tasks);
    node.children = [...node.children.values()].map(finish).sort((a, b) => b.count - a.count);
    return node;
  };
  return finish(root).children;
}

const placeOf = ({ module, file, line: number }) => (file ? `${file}${number ? `:${number}` : ''}` : module);

export function start() {
  const tree = byId('tree');
  const note = byId('stacksnote');
  const folded = new Set();
  let shown = null;
  let before = new Map();
  let now = new Map();
  let current = '';

  const rows = () => [...tree.querySelectorAll('[role=treeitem]')].filter((row) => !row.closest('[hidden]'));

  function select(row, focus = true) {
    for (const other of tree.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    row.setAttribute('tabindex', '0');
    current = row.dataset.key;
    if (focus) row.focus();
  }

  function fold(row, closed) {
    if (!row.hasAttribute('aria-expanded')) return;
    row.setAttribute('aria-expanded', String(!closed));
    row.querySelector(':scope > [role=group]').hidden = closed;
    if (closed) folded.add(row.dataset.key);
    else folded.delete(row.dataset.key);
  }

  function item(node, level, all, left) {
    left.rows -= 1;
    now.set(node.key, node.tasks);
    const isNew = before.size > 0 && before.get(node.key) !== node.tasks;
    const children = left.rows > 0 ? node.children : [];
    const closed = folded.has(node.key);
    const repeat = node.frame.repeat > 1 ? ` (${node.frame.repeat} times)` : '';
    const place = placeOf(node.frame);
    const row = el('div', { class: 'row', onclick: () => { select(element); line(`focus ${node.tasks}`); } },
      el('span', { class: 'bar', 'aria-hidden': 'true', 'width%': (node.count / all) * 100 }),
      el('span', { class: 'twisty', 'aria-hidden': 'true', onclick: (event) => { event.stopPropagation(); select(element); fold(element, !folded.has(node.key)); } }),
      el('span', { class: 'function' }, node.frame.function || '??', repeat),
      el('span', { class: 'place' }, place),
      isNew ? el('span', { class: 'new' }, 'changed') : null,
      el('span', { class: 'tasks' }, label(node.tasks)));
    const element = el('li', {
      role: 'treeitem', tabindex: -1, 'aria-level': level, 'data-key': node.key, 'data-tasks': node.tasks,
      class: node.count < all / 8 || node.count === 1 ? 'few' : '',
      'aria-label': `${node.frame.function || 'unknown function'}${repeat}${place ? `, ${place}` : ''}: ${label(node.tasks)}${isNew ? ', changed' : ''}`,
      'aria-expanded': children.length ? String(!closed) : null,
    }, row);
    if (children.length) {
      const group = el('ul', { role: 'group' }, children.map((child) => item(child, level + 1, all, left)));
      group.hidden = closed;
      element.append(group);
    }
    return element;
  }

  function draw(stacks) {
    const text = JSON.stringify(stacks);
    if (text === shown) return;
    shown = text;
    before = now;
    now = new Map();
    const had = tree.contains(document.activeElement);
    const left = { rows: ROWS_MAX };
    const roots = stacks ? merge(stacks.stacks) : [];
    fill(tree, roots.map((root) => item(root, 1, stacks.count, left)));
    const rest = stacks ? [
      stacks.others && `${label(stacks.others)} in stacks that there was no room for`,
      stacks.bare && `${label(stacks.bare)} with a thread without a frame`,
      left.rows <= 0 && 'deeper frames are not shown',
    ] : ['No rank stands: Interrupt (the key i) stops those that run.'];
    note.textContent = rest.filter(Boolean).join('; ');
    const again = rows().find((row) => row.dataset.key === current) ?? rows()[0];
    if (again) select(again, had);
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
      ' ': () => fold(row, isOpen),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });

  on('sight', ({ stacks }) => draw(stacks));
  on('answer', ({ classes }) => {
    const stacks = classes.find(({ type }) => type === 'stacks');
    if (stacks) draw(stacks);
  });
}
