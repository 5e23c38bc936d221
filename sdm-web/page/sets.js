// Sets of ranks as the prompt writes them: `0-3,7,12-20/2`. They are held as ranges, so that a hundred thousand ranks are a few.

// The ranges of a set: [first, last, step], in their order.
export function parse(text) {
  if (text === '') return [];
  return text.split(',').map((part) => {
    const found = /^(\d+)(?:-(\d+)(?:\/(\d+))?)?$/.exec(part.trim());
    if (!found) throw new Error(`no set of ranks: ${text}`);
    const first = Number(found[1]);
    return [first, Number(found[2] ?? first), Number(found[3] ?? 1)];
  });
}

export function count(text) {
  return parse(text).reduce((sum, [first, last, step]) => sum + Math.floor((last - first) / step) + 1, 0);
}

// Calls `each` with the first and last of each run of neighbours.
export function runs(text, each) {
  for (const [first, last, step] of parse(text)) {
    if (step === 1) each(first, last);
    else for (let rank = first; rank <= last; rank += step) each(rank, rank);
  }
}

export function has(text, rank) {
  return parse(text).some(([first, last, step]) => first <= rank && rank <= last && (rank - first) % step === 0);
}

// The rank at a position of the set, from 0.
export function nth(text, at) {
  for (const [first, last, step] of parse(text)) {
    const many = Math.floor((last - first) / step) + 1;
    if (at < many) return first + at * step;
    at -= many;
  }
  return undefined;
}

// The set of these runs, written with as few words as there are runs.
export function format(pairs) {
  const sorted = pairs.toSorted((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [first, last] of sorted) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

export function union(texts) {
  const pairs = [];
  for (const text of texts) runs(text, (first, last) => pairs.push([first, last]));
  return format(pairs);
}

// The ranks of a set that are in none of these.
export function without(text, texts) {
  const taken = parse(union(texts));
  const left = [];
  runs(text, (first, last) => {
    let from = first;
    for (const [start, end] of taken) {
      if (end < from || start > last) continue;
      if (start > from) left.push([from, start - 1]);
      from = end + 1;
    }
    if (from <= last) left.push([from, last]);
  });
  return format(left);
}

// `1 row`, `2 rows`.
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;

// `rank 3`, `ranks 0-3 (4)`.
export function label(text) {
  const many = count(text);
  const shown = text.length > 40 ? `${text.slice(0, 37)}...` : text;
  return many === 1 ? `rank ${shown}` : `ranks ${shown} (${many})`;
}
