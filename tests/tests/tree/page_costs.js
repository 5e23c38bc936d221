// Notes of each record from now on how long it is and how many nodes of the document its listeners change: `costs()` returns the
// most of each kind. The listeners of the page come first.
import('/link.js').then(({ on }) => {
  const most = {};
  const nodes = (list) => [...list].reduce((sum, it) => sum + 1 + (it.querySelectorAll?.('*').length ?? 0), 0);
  const changed = ({ type, addedNodes, removedNodes }) => (type === 'childList' ? nodes(addedNodes) + nodes(removedNodes) : 1);
  const watch = new MutationObserver(() => {});
  watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  for (const kind of ['board', 'sight', 'prompt', 'status', 'said', 'stop', 'answer', 'values']) {
    on(kind, (record) => {
      const [bytes, touched] = most[kind] ?? [0, 0];
      const own = watch.takeRecords().reduce((sum, it) => sum + changed(it), 0);
      most[kind] = [Math.max(bytes, JSON.stringify(record).length), Math.max(touched, own)];
    });
  }
  window.costs = () => most;
  return true;
});
