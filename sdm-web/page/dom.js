// Elements are made here and nowhere else. What a session says becomes text or the value of an attribute of this list: none
// of them is a place where text is read as code.

const SVG = 'http://www.w3.org/2000/svg';
const SHAPES = new Set(['svg', 'g', 'rect', 'path', 'circle', 'line', 'polyline', 'text', 'title', 'marker', 'defs', 'desc']);
const PLAIN = /^(class|id|role|tabindex|title|for|type|value|name|size|autocomplete|spellcheck|colspan|scope|disabled|checked|min|max|step|aria-[a-z]+|data-[a-z]+|x|y|x1|x2|y1|y2|cx|cy|r|rx|width|height|d|viewBox|points|transform|text-anchor|orient|refX|refY|markerWidth|markerHeight|preserveAspectRatio)$/;

// An element with attributes, listeners (`onclick`: a function) and children, which are elements or texts.
export function el(name, attributes = {}, ...children) {
  const element = SHAPES.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(key.slice(2), value);
    else if (key === 'width%') element.style.width = `${Number(value)}%`;
    else if (PLAIN.test(key)) element.setAttribute(key, String(value));
    else throw new Error(`no attribute for what is shown: ${key}`);
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// Leads the keyboard through what can be clicked in a picture: Tab comes to one part, arrows to the others, Enter clicks.
export function walk(picture, parts) {
  const go = (to) => { for (const part of parts) part.setAttribute('tabindex', part === to ? 0 : -1); };
  go(parts[0]);
  picture.addEventListener('keydown', (event) => {
    const at = parts.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: parts.length - 1 }[event.key];
    if (at < 0 || (to === undefined && event.key !== 'Enter')) return;
    event.preventDefault();
    event.stopPropagation();
    if (to === undefined) parts[at].dispatchEvent(new MouseEvent('click'));
    else if (parts[to]) {
      go(parts[to]);
      parts[to].focus();
    }
  });
  return picture;
}

export const byId = (id) => document.getElementById(id);

export function fill(element, ...children) {
  element.replaceChildren(...children.flat());
}
