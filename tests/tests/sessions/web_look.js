// How the page looks in the window that it has now: a list of what annoys a person, each as a line.
(() => {
  const problems = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) problems.push(`the page is ${page.scrollWidth} wide in a window of ${page.clientWidth}`);
  const isShown = (it) => it.checkVisibility({ visibilityProperty: true }) && it.getBoundingClientRect().width > 0;
  const name = (it) => (it.ariaLabel || it.textContent || it.id || it.className || it.tagName).toString().trim().slice(0, 40);

  // What can be clicked: as far as its section shows it, no two lie on each other, and each has a name.
  const seen = (it) => {
    const box = it.getBoundingClientRect();
    const area = { left: box.left, top: box.top, right: box.right, bottom: box.bottom };
    for (let around = it.parentElement; around; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === 'visible') continue;
      const outer = around.getBoundingClientRect();
      area.left = Math.max(area.left, outer.left); area.right = Math.min(area.right, outer.right);
      area.top = Math.max(area.top, outer.top); area.bottom = Math.min(area.bottom, outer.bottom);
    }
    return area;
  };
  const parts = [...document.querySelectorAll('button, input, select, label, h1, h2, .state, #mapsvg')].filter(isShown);
  const areas = parts.map((it) => [it, seen(it)]).filter(([, { left, right, top, bottom }]) => right - left > 1 && bottom - top > 1);
  for (const [at, [one, a]] of areas.entries()) {
    for (const [other, b] of areas.slice(at + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && tall > 1 && !one.contains(other) && !other.contains(one)) problems.push(`${name(one)} lies on ${name(other)}`);
    }
  }
  for (const it of document.querySelectorAll('button, input, select, svg, [role]')) {
    const roles = ['presentation', 'group'];
    const by = it.getAttribute('aria-labelledby');
    const named = it.getAttribute('aria-label') || (by && document.getElementById(by)?.textContent) || it.labels?.[0]?.textContent || (it.closest('button, [role=tab]') && it.textContent);
    if (!named?.trim() && !roles.includes(it.role) && it.role !== 'status') problems.push(`no name: ${it.tagName} ${it.id} ${it.getAttribute('role')}`);
  }

  // Each text against what it stands on: 4.5 to 1, as WCAG asks of small text.
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const isClear = (colour) => channels(colour)[3] === 0;
  const grounds = (it) => {
    const bar = it.closest('.row')?.querySelector('.bar');
    const found = bar && bar !== it ? [getComputedStyle(bar).backgroundColor] : [];
    for (let around = it; around; around = around.parentElement) {
      const colour = getComputedStyle(around).backgroundColor;
      if (!isClear(colour)) return [...found, colour];
    }
    return found;
  };
  let texts = 0;
  for (const it of document.querySelectorAll('body *')) {
    const own = [...it.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (!own || !isShown(it)) continue;
    texts += 1;
    const isCell = it.closest('#mapcells') !== null;
    const style = getComputedStyle(it);
    const colour = it instanceof SVGElement ? style.fill : style.color;
    const under = isCell ? [...document.querySelectorAll('#mapcells .class')].map((cell) => getComputedStyle(cell).fill) : grounds(it);
    for (const ground of under) {
      const ratio = contrast(colour, ground);
      if (ratio < 4.5) problems.push(`${name(it)}: ${colour} on ${ground} is ${ratio.toFixed(2)} to 1`);
    }
  }
  if (texts < 20) problems.push(`only ${texts} texts are there`);
  return [...new Set(problems)];
})()
