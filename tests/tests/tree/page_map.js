// Draws the map of 100,000 ranks in eight states that alternate from rank to rank, by number and by host; returns what it is made
// of, and which ranks are found in some cells.
import('/link.js').then(({ deliver }) => {
  const last = 99999;
  const states = ['stopped', 'running', 'exited', 'detached', 'starting', 'absent', 'signalled', 'gdb_dead'];
  const row = (state, at) => ({ tasks: `${at}-${last - 7 + at}/8`, count: 12500, state, health: 'reachable', program: '', last: null, crashed: false });
  deliver({ kind: 'nodes', rows: Array.from({ length: 1000 }, (_, at) => ({ host: `n${at}`, servers: 1, tasks: `${at * 100}-${at * 100 + 99}`, count: 100, states: '' })) });
  const svg = document.getElementById('mapsvg');
  const found = {};
  for (const order of ['rank', 'host']) {
    const choice = document.getElementById('maporder');
    choice.value = order;
    choice.dispatchEvent(new Event('change'));
    deliver({ kind: 'board', prompt: '', all: `0-${last}`, focus: `0-${last}`, running: '', stale: false, breakpoints: [], ranks: states.map(row) });
    const paths = [...document.querySelectorAll('#mapcells .class')];
    const cells = paths.map((it) => it.getAttribute('d').match(/M/g).length);
    const box = paths.map((it) => it.getBBox()).reduce((most, it) => Math.max(most, it.x + it.width, it.y + it.height), 0);
    const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
    // The cell of a rank, as its class draws it, is that rank's under the mouse.
    const here = [0, 54321, last].map((rank) => {
      const d = paths[rank % 8].getAttribute('d').split('M')[1 + Math.floor(rank / 8)];
      const [, x, y] = /^([\d.]+) ([\d.]+)h([\d.]+)/.exec(d).map(Number);
      const side = Number(/h([\d.]+)/.exec(d)[1]);
      const at = new DOMPoint(x + side / 2, y + side / 2).matrixTransform(svg.getScreenCTM());
      svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
      return document.getElementById('maphere').textContent;
    });
    found[order] = { elements: document.querySelectorAll('#map *').length, bytes: document.getElementById('mapcells').innerHTML.length, cells, isInside: box <= Math.max(width, height) + 0.1, here };
  }
  return found;
});
