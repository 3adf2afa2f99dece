// Colours of numbers.

// Every eighth of viridis, a map of even perceived contrast that those with a weak colour sense can tell, too; and of a
// map from blue over white (or black) to red, for differences. Public domain (CC0).
const viridis = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const diverging = [[33, 102, 172], [67, 147, 195], [146, 197, 222], [209, 229, 240], [247, 247, 247], [253, 219, 199], [244, 165, 130], [214, 96, 77], [178, 24, 43]];
const grey = [[0, 0, 0], [255, 255, 255]];

/** @type {Record<string, number[][]>} */
export const maps = { viridis, diverging, grey };

/**
 * 256 colours of a map, as they lie in the memory of a picture.
 * @param {string} name
 */
export function table(name) {
  const stops = maps[name] ?? viridis;
  const bytes = new Uint8ClampedArray(4 * 256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1);
    const k = Math.min(Math.floor(at), stops.length - 2);
    for (let c = 0; c < 3; c++) bytes[4 * i + c] = Math.round(stops[k][c] + (stops[k + 1][c] - stops[k][c]) * (at - k));
    bytes[4 * i + 3] = 255;
  }
  return new Uint32Array(bytes.buffer);
}

/** Cells without a finite element, and with some NaN among others: colours that no map has. */
export const nanColour = [230, 0, 122];

/** @param {number[]} rgb */
export function packed([r, g, b]) {
  return new Uint32Array(new Uint8ClampedArray([r, g, b, 255]).buffer)[0];
}
