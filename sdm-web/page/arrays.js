// Arrays of several ranks and of two stops: what has changed since the stop before, and the blocks of all ranks as one array.

import { format, runs } from './sets.js';

// The nearest number to one that may be larger than those that are exact. Null stays so.
export const near = (value) => (typeof value === 'bigint' ? Number(value) : value);

function minus(value, other) {
  if (value === null || other === null || other === undefined) return null;
  if (Number.isInteger(near(value)) && Number.isInteger(near(other))) {
    const rest = BigInt(value) - BigInt(other);
    return BigInt(Number(rest)) === rest ? Number(rest) : rest;
  }
  return near(value) - near(other);
}

export const difference = (numbers, less) => numbers.map((value, at) => minus(value, less?.[at]));

function members(tasks) {
  const found = [];
  runs(tasks, (first, last) => { for (let rank = first; rank <= last; rank += 1) found.push(rank); });
  return found;
}

// The numbers of each rank. Of a plot over ranks each has one.
function byRank({ over, lines }) {
  return new Map(lines.flatMap(({ tasks, numbers }) => members(tasks).map((rank, at) => [rank, over === 'ranks' ? [numbers[at]] : numbers])));
}

// These rows of a plot less the numbers that the same ranks had in an earlier one. Ranks that were and are equal stay one row.
export function since({ over }, rows, before) {
  const had = byRank(before);
  if (over === 'ranks') return rows.map((row) => ({ ...row, numbers: difference(row.numbers, members(row.tasks).map((rank) => had.get(rank)?.[0])) }));
  return rows.flatMap(({ tasks, numbers }) => [...Map.groupBy(members(tasks), (rank) => had.get(rank))].map(([less, ranks]) =>
    ({ tasks: format(ranks.map((rank) => [rank, rank])), numbers: difference(numbers, less) })));
}

// Rows of values, each for those of its ranks that had the same value in the earlier rows: `had`.
export function parted(rows, earlier) {
  const known = new Map(earlier.flatMap(({ tasks, value }) => members(tasks).map((rank) => [rank, value])));
  return rows.flatMap(({ tasks, value }) => [...Map.groupBy(members(tasks), (rank) => known.get(rank))].map(([had, ranks]) =>
    ({ tasks: format(ranks.map((rank) => [rank, rank])), count: ranks.length, value, had })));
}

const UNITS = { nan: NaN, inf: Infinity, '-inf': -Infinity };

// A plot's numbers with those that JSON has no numbers for.
export function whole(plot) {
  return { ...plot, lines: plot.lines.map((row) => {
    const numbers = [...row.numbers];
    for (const { at, value } of row.not_finite ?? []) numbers[at] = UNITS[value] ?? null;
    return { ...row, numbers };
  }) };
}

// The index of something by its place, as `a[2:8:3]` begins with 2 and goes on with 5.
const counted = ({ first, step } = { first: 0, step: 1 }) => (at) => first + at * step;
export const PLACES = { isFortran: false, rows: counted(), columns: counted() };

// The indices of rows and of columns, as the slices of an expression say, or the bounds of an array of Fortran, and whether it is one
// of Fortran's, whose first index is that of the columns.
export function bounds(expression, { row, most, given }) {
  const c = [...expression.matchAll(/\[\s*(-?\d+)\s*:\s*(-?\d+)\s*(?::\s*(\d+)\s*)?\]/g)];
  const ranges = (text) => [...(text ?? '').matchAll(/(-?\d+)\s*:\s*(-?\d+)(?:\s*:\s*(\d+))?\s*(?=,|$)/g)];
  const written = ranges(/\(([^()]*:[^()]*)\)$/.exec(expression)?.[1]);
  const declared = ranges(given);
  const f = written.length < declared.length ? declared : written;
  const isFortran = c.length === 0 && f.length > 0;
  const found = (isFortran ? f.toReversed() : c).map(([, first, last, step = 1]) => ({ first: Number(first), step: Number(step), length: Math.floor((last - first) / step) + 1 }));
  // A slice counts where it is as long as what it is to be the index of.
  const of = (at, length) => counted(found.at(at)?.length === length ? found.at(at) : undefined);
  return row ? { isFortran, rows: of(0, Math.ceil(most / row)), columns: found.length > 1 || row === found[0]?.length ? of(-1, row) : counted() } : { isFortran, rows: of(-1, most), columns: counted() };
}

// Where each of these lengths begins, one behind the other, and where the last one ends.
const edges = (lengths) => lengths.reduce((all, length) => [...all, all.at(-1) + length], [0]);

// The arrays of all ranks as one: as many ranks as `line` says stand in a row, or in a column, in the order of their numbers. A
// block has `columns` numbers in a row (0: all of them), and loses `ghosts` rows and columns at each edge. Null if it is too large.
export function stitch(rows, { columns, isDown, line, ghosts, most }) {
  const ranks = [...byRank({ lines: rows })].toSorted(([a], [b]) => a - b);
  const base = ranks[0][0] - (ranks[0][0] % line);
  const blocks = ranks.map(([rank, numbers]) => {
    const wide = Math.max(columns || numbers.length, 1);
    const [major, minor] = [Math.floor((rank - base) / line), (rank - base) % line];
    const edge = columns > 0 ? ghosts : 0;
    return { rank, numbers, wide, edge, row: isDown ? minor : major, column: isDown ? major : minor,
      width: Math.max(wide - 2 * ghosts, 0), height: Math.max(Math.ceil(numbers.length / wide) - 2 * edge, 0) };
  });
  const largest = (place, size) => blocks.reduce((all, block) => {
    while (all.length <= block[place]) all.push(0);
    all[block[place]] = Math.max(all[block[place]], block[size]);
    return all;
  }, []);
  if (Math.max(...blocks.map(({ row, column }) => Math.max(row, column))) > most) return null;
  const [left, top] = [edges(largest('column', 'width')), edges(largest('row', 'height'))];
  const [wide, tall] = [left.at(-1), top.at(-1)];
  if (wide * tall > most) return null;
  const numbers = Array(wide * tall).fill(null);
  const owners = Array(wide * tall).fill(null);
  for (const block of blocks) {
    for (let at = 0; at < block.width * block.height; at += 1) {
      const [y, x] = [Math.floor(at / block.width), at % block.width];
      const to = (top[block.row] + y) * wide + left[block.column] + x;
      numbers[to] = block.numbers[(y + block.edge) * block.wide + x + ghosts] ?? null;
      owners[to] = block.rank;
    }
  }
  return { columns: tall > 1 ? wide : 0, row: { tasks: format(ranks.map(([rank]) => [rank, rank])), numbers, owners } };
}
