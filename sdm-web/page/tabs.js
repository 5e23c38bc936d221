// Views that share a place: one is shown at a time.

import { el, byId, fill } from './dom.js';

export function start(id, views) {
  const show = (name, focus) => {
    for (const [view] of views) {
      const tab = byId(`tab-${view}`);
      const isShown = view === name;
      byId(view).hidden = !isShown;
      if (isShown) byId(view).dispatchEvent(new Event('show'));
      tab.setAttribute('aria-selected', String(isShown));
      tab.setAttribute('tabindex', isShown ? '0' : '-1');
      if (isShown && focus) tab.focus();
    }
  };
  fill(byId(id), views.map(([view, title], at) => el('button', {
    type: 'button', role: 'tab', id: `tab-${view}`, 'aria-controls': view, onclick: () => show(view, false),
    onkeydown: (event) => {
      const to = { ArrowRight: (at + 1) % views.length, ArrowLeft: (at + views.length - 1) % views.length, Home: 0, End: views.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(views[to][0], true);
    },
  }, title)));
  show(views[0][0], false);
  return (view) => show(view, false);
}
