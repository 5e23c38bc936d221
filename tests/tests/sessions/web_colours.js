// Draws the colours of the page's classes, and returns those that are told apart too little: by all, and by those who lack one of
// the three kinds of cones. The matrices are those of Machado, Oliveira and Fernandes (2009) for linear red, green and blue.
(() => {
  const SIGHTS = {
    all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
  };
  // Lab distance: about 2 can be seen of two colours that touch, small parts apart from one another need several times that.
  const APART = 15;
  const SETS = [['s-stopped', 's-running', 's-crashed', 's-exited', 's-lost', 's-silent', 's-gdb_dead', 's-not-attached', 'rest', 'unknown'],
    ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'rest', 'unknown']];
  const cells = document.getElementById('mapcells');
  const light = (name) => {
    const path = cells.appendChild(document.createElementNS(cells.namespaceURI, 'path'));
    path.setAttribute('class', `class ${name}`);
    const fill = getComputedStyle(path).fill;
    path.remove();
    return fill.match(/[\d.]+/g).slice(0, 3).map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
  };
  const lab = (rgb, sight) => {
    const [r, g, b] = sight.map((row) => Math.min(Math.max(row.reduce((sum, share, at) => sum + share * rgb[at], 0), 0), 1));
    const root = (it) => (it > 216 / 24389 ? Math.cbrt(it) : ((24389 / 27) * it + 16) / 116);
    const [x, y, z] = [(0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047, 0.2126729 * r + 0.7151522 * g + 0.072175 * b, (0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883].map(root);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const near = [];
  for (const names of SETS) {
    const colours = names.map(light);
    for (const [who, sight] of Object.entries(SIGHTS)) {
      const seen = colours.map((rgb) => lab(rgb, sight));
      seen.forEach((one, at) => seen.slice(0, at).forEach((other, to) => {
        const far = Math.hypot(...one.map((it, axis) => it - other[axis]));
        if (!(far >= APART)) near.push(`${who}: ${names[to]} and ${names[at]}: ${far.toFixed(1)}`);
      }));
    }
  }
  return near;
})();
