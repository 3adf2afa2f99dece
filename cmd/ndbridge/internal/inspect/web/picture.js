// The picture of an array: a heat map or an image, with zoom down to numbers.

import { colour, el } from "./dom.js";
import * as format from "./format.js";
import { nanColour, packed, table } from "./colours.js";

/**
 * @typedef {object} Header what the server says of a picture
 * @property {string} name
 * @property {"heat" | "image"} kind
 * @property {number} version
 * @property {boolean} torn
 * @property {boolean} exact all elements of the cells were looked at
 * @property {number} y
 * @property {number} x
 * @property {number[]} at
 * @property {[number, number]} rows
 * @property {[number, number]} columns
 * @property {number} width
 * @property {number} height
 * @property {number | null} low
 * @property {number | null} high
 * @property {string[]} [texts]
 * @property {[number, number]} sheet rows and columns of a contact sheet
 * @property {number} tiles
 * @property {number} step every which point of an image is drawn
 * @property {string} [error]
 */

/**
 * @typedef {object} View what decides how numbers become colours
 * @property {string} map
 * @property {[number, number] | null} fixed
 * @property {boolean} even around zero
 */

export class Picture {
  /**
   * @param {object} on
   * @param {(rows: [number, number] | null, columns: [number, number] | null) => void} on.zoom asks for another part; null: all
   * @param {(width: number, height: number) => void} on.size says how many cells there is room for
   * @param {() => [number, number]} on.shape rows and columns of all of the plane
   * @param {() => {rows: [number, number], columns: [number, number]}} on.part what was asked for last, which may not be shown yet
   */
  constructor(on) {
    this.on = on;
    this.canvas = el("canvas", { class: "canvas", tabIndex: 0, role: "img" });
    this.canvas.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight ArrowUp ArrowDown + - 0");
    this.out = el("div", { class: "readout", "aria-live": "off" });
    this.sample = el("span", { hidden: true, title: "Only some elements of each cell were looked at" }, "a sample");
    this.low = el("span", {});
    this.high = el("span", {});
    this.ramp = el("canvas", { width: 256, height: 1, class: "ramp" });
    this.scale = el("div", { class: "scale" }, this.low, this.ramp, this.high);
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    this.node = el("div", { class: "picture" }, this.canvas, this.error);
    /** @type {Header | null} */
    this.header = null;
    /** @type {DataView | null} */
    this.payload = null;
    this.frames = 0;
    /** @type {View} */
    this.view = { map: "viridis", fixed: null, even: false };
    this.raw = document.createElement("canvas");
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.node);
    this.waiting = false;
    this.listen();
  }

  destroy() {
    this.resize.disconnect();
  }

  /**
   * @param {Header} header
   * @param {DataView} payload
   */
  show(header, payload) {
    this.header = header;
    this.payload = payload;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** How large the picture is on the page: the proportions of what it shows, within the frame. */
  box() {
    const h = this.header;
    const width = this.node.clientWidth, height = Math.min(Math.max(window.innerHeight * 0.55, 260), 620);
    if (!h || !h.width || !h.height) return { width, height };
    const columns = h.kind === "image" ? h.width : h.columns[1] - h.columns[0], rows = h.kind === "image" ? h.height : h.rows[1] - h.rows[0];
    let ratio = columns / rows;
    if (h.kind !== "image") ratio = Math.min(Math.max(ratio, 0.5), 6); // a row of a thousand cells would be a hair
    const w = Math.min(width, height * ratio);
    return { width: Math.round(w), height: Math.round(Math.max(w / ratio, 40)) };
  }

  fit() {
    const width = this.node.clientWidth;
    if (width === 0) return;
    const points = (/** @type {number} */ n) => Math.min(Math.max(Math.ceil(n / 128) * 64, 192), 640); // half of the points of the screen: more cost the program more than they show
    this.on.size(points(width), points(Math.min(Math.max(window.innerHeight * 0.55, 260), 620)));
    this.draw();
  }

  draw() {
    const h = this.header, p = this.payload;
    if (!h || !p) return;
    this.error.hidden = !h.error;
    this.sample.hidden = h.exact || h.kind !== "heat" || !h.width;
    this.error.textContent = format.visible(h.error ?? "");
    if (!h.width || !h.height) { // there are no elements any more, or no such picture of them
      this.canvas.width = 0;
      this.canvas.removeAttribute("aria-label");
      this.canvas.dataset.version = String(h.version);
      this.low.textContent = this.high.textContent = "";
      return;
    }
    this.raw.width = h.width;
    this.raw.height = h.height;
    const context = /** @type {CanvasRenderingContext2D} */ (this.raw.getContext("2d"));
    const points = new ImageData(h.width, h.height);
    if (h.kind === "image") points.data.set(new Uint8Array(p.buffer, p.byteOffset, 4 * h.width * h.height));
    else this.colour(points);
    context.putImageData(points, 0, 0);

    const { width, height } = this.box(), dpr = window.devicePixelRatio || 1;
    const canvas = this.canvas;
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(height * dpr);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    to.imageSmoothingEnabled = canvas.width < h.width;
    to.drawImage(this.raw, 0, 0, canvas.width, canvas.height);
    if (h.texts) this.write(to, h, dpr, points.data);
    if (h.kind === "image" && h.sheet[0] * h.sheet[1] > 1) this.divide(to, h.sheet);
    canvas.setAttribute("aria-label", `${h.kind === "image" ? "Image" : "Heat map"} of ${format.visible(h.name)}: rows ${h.rows.join(" to ")}, columns ${h.columns.join(" to ")}, `
      + `from ${format.number(h.low)} to ${format.number(h.high)}`);
    this.frames++;
    canvas.dataset.frames = String(this.frames);
    canvas.dataset.version = String(h.version);
  }

  /** The least and the greatest number that have colours of their own. */
  range() {
    const h = /** @type {Header} */ (this.header);
    if (this.view.fixed) return this.view.fixed;
    let low = h.low ?? 0, high = h.high ?? 0;
    if (this.view.even) {
      high = Math.max(Math.abs(low), Math.abs(high));
      low = -high;
    }
    return [low, high];
  }

  /** @param {ImageData} points */
  colour(points) {
    const h = /** @type {Header} */ (this.header), p = /** @type {DataView} */ (this.payload);
    const n = h.width * h.height;
    const out = new Uint32Array(points.data.buffer);
    const colours = table(this.view.map), nan = packed(nanColour);
    const [low, high] = this.range();
    const unit = 2 ** Math.min(Math.floor(Math.log2(Math.max(Math.abs(low), Math.abs(high)))), 1023); // the span of very large numbers is none, and that of very small ones has no inverse
    const from = low / unit, span = high / unit - from;
    const infinite = packed([255, 140, 0]);
    for (let i = 0; i < n; i++) {
      const x = p.getFloat64(8 * i, true), flags = p.getUint8(8 * n + i);
      if (flags & 1) out[i] = nan;
      else if (flags & 2) out[i] = infinite;
      else if (x === x) out[i] = colours[span > 0 ? Math.max(0, Math.min(255, Math.round((x / unit - from) / span * 255))) : 128];
    }
    const none = h.low === null && !this.view.fixed; // no cell has a number
    this.low.textContent = format.number(none ? null : low);
    this.high.textContent = format.number(none ? null : high);
    const ramp = /** @type {CanvasRenderingContext2D} */ (this.ramp.getContext("2d"));
    const line = new ImageData(256, 1);
    new Uint32Array(line.data.buffer).set(colours);
    ramp.putImageData(line, 0, 0);
  }

  /**
   * Writes the elements into their cells, if they fit.
   * @param {CanvasRenderingContext2D} to
   * @param {Header} h
   * @param {number} dpr
   * @param {Uint8ClampedArray} pixel the colours of the cells
   */
  write(to, h, dpr, pixel) {
    const w = to.canvas.width / h.width, height = to.canvas.height / h.height;
    const texts = /** @type {string[]} */ (h.texts);
    const longest = texts.reduce((n, t) => Math.max(n, t.length), 1);
    const size = Math.min(13 * dpr, height * 0.6, (w * 0.84) / (longest * 0.62));
    if (size < 7 * dpr) return;
    to.font = `${size}px ${colour("--mono")}`;
    to.textAlign = "center";
    to.textBaseline = "middle";
    for (let i = 0; i < texts.length; i++) {
      const bright = 0.2126 * pixel[4 * i] + 0.7152 * pixel[4 * i + 1] + 0.0722 * pixel[4 * i + 2];
      to.fillStyle = pixel[4 * i + 3] === 0 ? colour("--text") : bright > 120 ? "#111" : "#fff";
      to.fillText(texts[i], ((i % h.width) + 0.5) * w, (Math.floor(i / h.width) + 0.5) * height);
    }
  }

  /**
   * Draws lines between the pictures of a contact sheet.
   * @param {CanvasRenderingContext2D} to
   * @param {[number, number]} sheet rows and columns
   */
  divide(to, [rows, columns]) {
    to.fillStyle = colour("--card");
    for (let i = 1; i < columns; i++) to.fillRect(Math.round((i * to.canvas.width) / columns) - 1, 0, 2, to.canvas.height);
    for (let i = 1; i < rows; i++) to.fillRect(0, Math.round((i * to.canvas.height) / rows) - 1, to.canvas.width, 2);
  }

  /**
   * The cell at a place of the canvas.
   * @param {MouseEvent} e
   */
  cell(e) {
    const h = this.header, box = this.canvas.getBoundingClientRect();
    if (!h || !h.width || !h.height || !box.width) return null;
    const fx = (e.clientX - box.left) / box.width, fy = (e.clientY - box.top) / box.height;
    const x = Math.min(Math.max(Math.floor(fx * h.width), 0), h.width - 1), y = Math.min(Math.max(Math.floor(fy * h.height), 0), h.height - 1);
    return { x, y, fx, fy };
  }

  /** @param {MouseEvent} e */
  read(e) {
    const h = this.header, p = this.payload, at = this.cell(e);
    if (!h || !p || !at) return;
    const i = at.y * h.width + at.x;
    if (h.kind === "image") {
      const c = [0, 1, 2].map((k) => p.getUint8(4 * i + k)), [rows, columns] = h.sheet, height = h.height / rows, width = h.width / columns;
      const tile = Math.floor(at.y / height) * columns + Math.floor(at.x / width);
      this.out.textContent = tile >= h.tiles ? ""
        : `${h.tiles > 1 ? `picture ${tile}: ` : ""}${(at.y % height) * h.step}, ${(at.x % width) * h.step}   rgb ${c.join(" ")}`;
      return;
    }
    const span = (/** @type {[number, number]} */ part, /** @type {number} */ k, /** @type {number} */ n) => {
      const size = part[1] - part[0];
      const from = part[0] + Math.floor((k * size) / n), to = part[0] + Math.floor(((k + 1) * size) / n);
      return to - from > 1 ? `${from}:${to}` : `${from}`;
    };
    const flags = p.getUint8(8 * h.width * h.height + i);
    const index = h.at.map((n, axis) => (axis === h.y ? span(h.rows, at.y, h.height) : axis === h.x ? span(h.columns, at.x, h.width) : String(n)));
    this.out.textContent = `[${index.join(", ")}]   ${h.texts ? h.texts[i] : format.number(p.getFloat64(8 * i, true))}${flags & 1 ? "   has NaN" : ""}${flags & 2 ? "   has infinities" : ""}`;
  }

  /**
   * Shows a smaller or larger part, around a place between 0 and 1 of what is shown.
   * @param {number} factor
   * @param {number} fx
   * @param {number} fy
   */
  zoom(factor, fx = 0.5, fy = 0.5) {
    const h = this.header;
    if (!h || h.kind === "image") return;
    const [rows, columns] = this.on.shape(), part = this.on.part();
    this.on.zoom(scaled(part.rows, factor, fy, rows), scaled(part.columns, factor, fx, columns));
  }

  /**
   * @param {number} dy in parts of what is shown
   * @param {number} dx
   */
  pan(dy, dx) {
    const h = this.header;
    if (!h || h.kind === "image") return;
    const [rows, columns] = this.on.shape(), part = this.on.part();
    this.on.zoom(moved(part.rows, dy, rows), moved(part.columns, dx, columns));
  }

  listen() {
    const c = this.canvas;
    /** @type {{x: number, y: number, rows: [number, number], columns: [number, number]} | null} */
    let drag = null;
    c.addEventListener("pointermove", (e) => {
      const h = this.header;
      if (drag && h && h.kind !== "image") {
        const box = c.getBoundingClientRect(), [rows, columns] = this.on.shape();
        this.on.zoom(moved(drag.rows, (drag.y - e.clientY) / box.height, rows), moved(drag.columns, (drag.x - e.clientX) / box.width, columns));
      } else this.read(e);
    });
    c.addEventListener("pointerdown", (e) => {
      const h = this.header;
      if (!h || h.kind === "image" || e.button !== 0) return;
      drag = { x: e.clientX, y: e.clientY, ...this.on.part() };
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener("pointerup", () => { drag = null; });
    c.addEventListener("pointercancel", () => { drag = null; });
    c.addEventListener("pointerleave", () => { this.out.textContent = ""; });
    c.addEventListener("dblclick", () => this.on.zoom(null, null));
    c.addEventListener("wheel", (e) => {
      const at = this.cell(e);
      if (!at || this.header?.kind === "image" || !(e.ctrlKey || document.activeElement === c)) return; // the page scrolls until the picture is chosen
      e.preventDefault();
      this.zoom(Math.exp(Math.sign(e.deltaY) * 0.25), at.fx, at.fy);
    }, { passive: false });
    c.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.altKey || e.metaKey) return;
      switch (e.key) {
        case "+": case "=": this.zoom(0.5); break;
        case "-": this.zoom(2); break;
        case "0": this.on.zoom(null, null); break;
        case "ArrowLeft": this.pan(0, -0.25); break;
        case "ArrowRight": this.pan(0, 0.25); break;
        case "ArrowUp": this.pan(-0.25, 0); break;
        case "ArrowDown": this.pan(0.25, 0); break;
        default: return;
      }
      e.preventDefault();
      e.stopPropagation();
    });
  }

  /** The picture as a file, as it is shown. */
  save() {
    this.canvas.toBlob((blob) => {
      if (!blob) return;
      const url = URL.createObjectURL(blob);
      el("a", { href: url, download: `${(this.header?.name ?? "array").replace(/[^\p{L}\p{N}._-]/gu, "_")}.png` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    });
  }
}

/**
 * A part of n elements, made larger or smaller.
 * @param {[number, number]} part
 * @param {number} factor
 * @param {number} at
 * @param {number} n
 * @returns {[number, number]}
 */
function scaled([from, to], factor, at, n) {
  const size = Math.min(Math.max(Math.round((to - from) * factor), Math.min(4, n)), n);
  const begin = Math.min(Math.max(Math.round(from + (to - from - size) * at), 0), n - size);
  return [begin, begin + size];
}

/**
 * @param {[number, number]} part
 * @param {number} by
 * @param {number} n
 * @returns {[number, number]}
 */
function moved([from, to], by, n) {
  const size = to - from, begin = Math.min(Math.max(from + Math.round(by * size), 0), n - size);
  return [begin, begin + size];
}
