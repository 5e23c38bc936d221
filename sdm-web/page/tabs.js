// Views that share a place: one is shown at a time.

import { el, byId, fill } from './dom.js';

export function start(id, views) {
  const show = (name, focus) => {
    for (const [view] of views) {
      const tab = byId(`tab-${view}`);
      const isShown = view === name;
      byId(view).hidden = !isShown;
      tab.setAttribute('aria-selected', String(isShown));
      tab.setAttribute('tabindex', isShown ? '0' : '-1');
      if (isShown && focus) tab.focus();
    }
  };
  fill(byId(id), views.map(([view, title], at) => el('button', {
    type: 'button', role: 'tab', id: `tab-${view}`, 'aria-controls': view, onclick: () => show(view, false),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show(views[(at + step + views.length) % views.length][0], true);
    },
  }, title)));
  show(views[0][0], false);
  return (view) => show(view, false);
}
