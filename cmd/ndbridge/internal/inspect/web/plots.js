// Lines and histograms, drawn by uPlot.

import uPlot from "./others/uplot.js";
import { colour, el } from "./dom.js";
import * as format from "./format.js";

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/** @param {string} side */
function axis(side) {
  const axis = {
    stroke: colour("--muted"), font: "11px " + colour("--sans"), ticks: { stroke: colour("--line"), size: 4, width: 1 }, grid: { stroke: colour("--grid"), width: 1 },
    values: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((x) => (x === null ? "" : format.number(x))),
  };
  return side === "x" ? { ...axis, size: 24, gap: 3, space: 60 } : { ...axis, gap: 4, space: 28, size: (/** @type {any} */ _, /** @type {string[] | null} */ texts) => {
    pen.font = axis.font; // a number that is cut off would pass for another one
    return Math.max(58, ...(texts ?? []).map((text) => 10 + Math.ceil(pen.measureText(text).width)));
  } };
}

/** A chart that fills its frame and keeps its colours those of the page. */
export class Chart {
  /**
   * @param {string} label what it shows, for those who do not see it
   * @param {(theme: any) => Record<string, any>} options of uPlot, made anew for each theme
   * @param {number} [height]
   */
  constructor(label, options, height = 150) {
    this.node = el("div", { class: "chart", role: "img", "aria-label": label });
    this.options = options;
    this.height = height;
    /** @type {any} */
    this.plot = null;
    /** @type {any} */
    this.data = null;
    this.key = "";
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.node);
    charts.add(this);
  }

  fit() {
    const width = this.node.clientWidth;
    if (this.plot && width > 0 && this.plot.width !== width) this.plot.setSize({ width, height: this.height });
    else if (!this.plot && this.data) this.set(this.data, this.key);
  }

  /**
   * @param {any[]} data
   * @param {string} [key] if it is another one than before, the chart is made anew
   */
  set(data, key = "") {
    this.data = data;
    const width = this.node.clientWidth;
    if (width === 0) return;
    if (this.plot && key === this.key) {
      this.plot.setData(data);
      return;
    }
    this.key = key;
    this.plot?.destroy();
    this.plot = new uPlot({ width, height: this.height, legend: { show: false }, cursor: { drag: { x: false, y: false } }, .../** @type {any} */ (this.options(key)) }, data, this.node);
  }

  redraw() {
    this.plot?.destroy();
    this.plot = null;
    if (this.data) this.set(this.data, this.key);
  }

  destroy() {
    charts.delete(this);
    this.resize.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}

/** @type {Set<Chart>} */
const charts = new Set();

/** Has all charts drawn in the colours that the page has now. */
export function redrawAll() {
  for (const chart of charts) chart.redraw();
}

/**
 * Shows what is under the pointer.
 * @param {HTMLElement} node
 * @param {(i: number, plot: any) => string} text
 */
export function readout(node, text) {
  return {
    hooks: { setCursor: [(/** @type {any} */ u) => {
      node.textContent = u.cursor.idx === null || u.cursor.idx === undefined ? "" : text(u.cursor.idx, u);
    }] },
  };
}

const pointless = { points: { show: false } };

/**
 * The line along an axis: the mean, and the band from the least to the greatest element of each cell.
 * @param {string} label
 * @param {HTMLElement} out
 */
export function band(label, out) {
  return new Chart(label, () => ({
    ...readout(out, (i, u) => `[${format.number(u.data[0][i])}]  ${format.number(u.data[2][i])}`
      + (u.data[1][i] === u.data[3][i] ? "" : `  (${format.number(u.data[1][i])} … ${format.number(u.data[3][i])})`)),
    scales: { x: { time: false } }, axes: [axis("x"), axis("y")],
    series: [{}, { ...pointless, stroke: "transparent" }, { ...pointless, stroke: colour("--ink1"), width: 1.5 }, { ...pointless, stroke: "transparent" }],
    bands: [{ series: [3, 1], fill: colour("--ink1-soft") }],
  }));
}

/**
 * A histogram of bins of equal width, or of bins between powers of two.
 * @param {string} label
 * @param {HTMLElement} out
 * @param {() => any} now the histogram that is shown
 */
export function histogram(label, out, now) {
  return new Chart(label, (/** @type {any} */ key) => {
    const log = key === "log";
    const x = axis("x");
    if (log) {
      x.values = (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((i) => {
        const edges = now()?.edges;
        return edges && Number.isInteger(i) && i >= 0 && i < edges.length ? format.number(edges[i]) : "";
      });
    }
    return {
      ...readout(out, (nearest, u) => {
        const h = now(), i = u.data[0][nearest] > u.posToVal(u.cursor.left, "x") ? nearest - 1 : nearest; // where a bin begins may be near the bin before
        return h && i >= 0 && i < h.counts.length ? `${format.number(h.edges[i])} … ${format.number(h.edges[i + 1])}:  ${format.count(h.counts[i])}` : "";
      }),
      scales: { x: { time: false, range: (/** @type {any} */ u) => {
        const h = now();
        return !h ? [0, 1] : log ? [0, h.counts.length] : [h.edges[0], h.edges[h.edges.length - 1]];
      } }, y: { range: (/** @type {any} */ _, /** @type {number} */ _min, /** @type {number} */ max) => [0, Math.max(max, 1) * 1.05] } },
      axes: [x, axis("y")],
      series: [{}, { ...pointless, fill: colour("--ink1"), stroke: colour("--ink1"), width: 0, paths: /** @type {any} */ (uPlot.paths).bars({ size: [0.94, Infinity, 1], align: 1 }) }],
    };
  }, 170);
}

/**
 * Values over time.
 * @param {string} label
 * @param {HTMLElement} out
 * @param {string[]} names of the lines
 * @param {number} [height]
 */
export function history(label, out, names, height = 130) {
  return new Chart(label, () => ({
    ...readout(out, (i, u) => `${new Date(1000 * u.data[0][i]).toLocaleTimeString()}  `
      + names.map((name, k) => `${names.length > 1 ? name + " " : ""}${format.number(u.data[k + 1][i])}`).join("  ")),
    axes: [{ ...axis("x"), values: undefined, space: 70 }, axis("y")],
    series: [{}, ...names.map((_, k) => ({ ...pointless, stroke: colour(`--ink${k + 1}`), width: 1.5, spanGaps: true }))],
  }), height);
}

/** How many points of a series the page keeps. */
const maxPoints = 1200;

/**
 * Appends new points to those of a series.
 * @param {any[][]} points
 * @param {any[][]} more
 */
export function grow(points, more) {
  for (const [i, line] of points.entries()) {
    line.push(...more[i]);
    line.splice(0, line.length - maxPoints);
  }
}
