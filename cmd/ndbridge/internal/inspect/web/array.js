// The page of one array.

import { byId, choice, el, put, renew, toggle } from "./dom.js";
import * as format from "./format.js";
import { Picture } from "./picture.js";
import * as plots from "./plots.js";
import { grow } from "./plots.js";

/** @typedef {import("./tree.js").Entry} Entry */

/** What images look like, by their number of axes. */
const orders = [[], [], ["HW"], ["HWC", "CHW", "NHW"], ["NHWC", "NCHW"]];

/** Of how many elements on the server may look at a sample. */
const sampled = 1 << 16;

/** @param {{dtype: string, shape: number[]}} e */
function likelyImage(e) {
  return e.dtype === "uint8" ? likelyOrder(e.shape) : "";
}

/**
 * As what image an array is likely to be meant, if it is one.
 * @param {number[]} shape
 */
function likelyOrder(shape) {
  const n = shape.length, last = shape[n - 1];
  if (n > 2 && (last === 3 || last === 4)) return n === 3 ? "HWC" : "NHWC";
  if (n > 2 && (shape[n - 3] === 3 || shape[n - 3] === 4)) return n === 3 ? "CHW" : "NCHW";
  return n === 2 ? "HW" : n === 3 ? "NHW" : "";
}

/**
 * What is shown of an array before somebody chooses.
 * @param {{dtype: string, shape: number[]}} e
 */
function atFirst(e) {
  const all = /** @type {[number, number]} */ ([0, 0]);
  return { auto: true, y: -1, x: -1, at: /** @type {number[]} */ ([]), rows: all, columns: all, image: likelyImage(e), line: -1 };
}

export class ArrayPage {
  /**
   * @param {Entry} entry
   * @param {object} on
   * @param {(look: object) => void} on.look
   * @param {(pin: boolean) => void} on.pin
   */
  constructor(entry, on) {
    this.entry = entry;
    this.on = on;
    this.shape = entry.shape;
    this.look = {
      name: entry.name, exact: false, log: false, diff: false, of: "mean", width: 512, height: 320, spectrum: false, ...atFirst(entry),
    };
    /** @type {any} */
    this.state = null;
    this.asked = 0;
    this.over = ""; // why nothing comes any more: "gone", "left" or "lost", as the page's state
    /** @type {any[][]} */
    this.points = [[], [], [], []];
    this.picture = new Picture({
      zoom: (rows, columns) => this.change({ rows: rows ?? [0, 0], columns: columns ?? [0, 0] }),
      size: (width, height) => {
        if (width !== this.look.width || height !== this.look.height) this.change({ width, height });
      },
      shape: () => this.extent(),
      part: () => {
        const [rows, columns] = this.extent();
        return { rows: within(this.look.rows, rows), columns: within(this.look.columns, columns) };
      },
    });
    this.badges = el("span", { class: "badges" });
    this.facts = el("dl", { class: "facts-row" });
    this.figures = el("dl", { class: "figures" });
    this.health = el("div", { class: "health", role: "img" });
    this.healthText = el("div", { class: "health-text" });
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    this.controls = el("div", { class: "controls" });
    this.lineOut = el("span", { class: "readout" });
    this.histogramOut = el("span", { class: "readout" });
    this.historyOut = el("span", { class: "readout" });
    this.historyTitle = el("h2", {}, "History");
    this.apart = el("div", { class: "apart" });
    this.lineAxis = el("span", {});
    this.lineTitle = el("h2", {}, "Line");
    this.line = plots.band(`Line along an axis of ${this.entry.name}`, this.lineOut);
    this.histogram = plots.histogram(`Histogram of ${this.entry.name}`, this.histogramOut, () => this.state?.figures?.histogram);
    this.rate = el("div", { class: "muted", "data-rate": "" });
    this.history = plots.history(`History of ${this.entry.name}`, this.historyOut, ["min", "mean", "max"]);
    const q = encodeURIComponent(this.entry.name);
    /** @type {HTMLElement[]} */
    this.ofNumbers = []; // what only arrays of numbers have
    const ofNumbers = (/** @type {HTMLElement} */ node) => this.ofNumbers[this.ofNumbers.push(node) - 1];
    this.pinButton = el("button", {});
    this.diffButton = el("button", {});
    this.exactButton = el("button", {});
    this.pictureTitle = el("h2", {}, "Picture");
    this.node = el("article", { class: "array" },
      el("header", { class: "title" }, el("h1", {}, format.visible(this.entry.name)), this.badges),
      this.error, this.facts,
      ofNumbers(el("section", { class: "card wide" }, this.figures, this.health, this.healthText)),
      ofNumbers(el("section", { class: "card", "aria-label": "Picture" }, el("div", { class: "head" }, this.pictureTitle, this.picture.sample, this.picture.out),
        this.controls, this.picture.node, el("div", { class: "under" }, this.picture.scale))),
      ofNumbers(el("div", { class: "column" },
        el("section", { class: "card", "aria-label": "Histogram" },
          el("div", { class: "head" }, el("h2", {}, "Histogram"), this.histogramOut,
            toggle("log", this.look.log, (log) => this.change({ log }), "Bins between powers of two")),
          this.histogram.node, this.apart),
        this.lineCard = el("section", { class: "card", "aria-label": "Line" }, el("div", { class: "head" }, this.lineTitle, this.lineOut, this.lineAxis), this.line.node),
        this.historyCard = el("section", { class: "card", "aria-label": "History", hidden: true },
          el("div", { class: "head" }, this.historyTitle, this.historyOut), this.history.node, this.rate))),
      el("footer", { class: "exports" }, "Save as ",
        el("a", { href: `export/npy?name=${q}`, download: "" }, ".npy"), ofNumbers(el("a", { href: `export/csv?name=${q}`, download: "" }, ".csv")),
        ofNumbers(el("a", { href: `export/png?name=${q}`, download: "" }, ".png")),
        ofNumbers(el("button", { class: "link", onclick: () => this.picture.save() }, "this picture"))));
    this.control();
    this.controlLine();
    this.ask();
  }

  destroy() {
    this.picture.destroy();
    for (const chart of [this.line, this.histogram, this.history]) chart.destroy();
    cancelAnimationFrame(this.asked);
  }

  /** Asks for what is to be shown, once for all changes of one moment. */
  ask() {
    cancelAnimationFrame(this.asked);
    this.asked = requestAnimationFrame(() => this.on.look(this.look));
  }

  /** @param {Partial<ArrayPage["look"]>} change */
  change(change) {
    Object.assign(this.look, change);
    this.ask();
  }

  /**
   * How many rows and columns all of the plane has.
   * @returns {[number, number]}
   */
  extent() {
    const h = this.picture.header;
    return [h && h.y >= 0 ? this.shape[h.y] : 1, h && h.x >= 0 ? this.shape[h.x] : 1];
  }

  /** The controls of the picture, for the axes that the array has. */
  control() {
    const look = this.look, rank = this.shape.length;
    const possible = [...(orders[rank] ?? []), ...(rank > 4 ? ["NHWC", "NCHW"] : [])];
    const modes = /** @type {[string, string][]} */ ([["", "heat map"], ...possible.map((o) => [o, `image ${o}`])]);
    /** @type {(HTMLElement | null)[]} */
    const parts = [possible.length ? choice("as", modes, look.image, (image) => {
      this.change({ image, rows: [0, 0], columns: [0, 0], diff: look.diff && !image }); // an image has no colours for less than nothing
      this.control();
    }) : null];
    if (!look.image) {
      const [y, x] = this.plane();
      const axes = this.shape.map((n, i) => /** @type {[string, string]} */ ([String(i), `${i} (${n})`]));
      if (rank > 1) {
        parts.push(choice("rows", axes, String(y), (v) => this.axes(Number(v), x)), choice("columns", axes, String(x), (v) => this.axes(y, Number(v))));
      }
      for (let axis = 0; axis < rank; axis++) if (axis !== y && axis !== x && this.shape[axis] > 1) parts.push(this.slider(axis));
      parts.push(choice("cell", [["mean", "mean"], ["min", "min"], ["max", "max"]], look.of, (of) => this.change({ of })));
      parts.push(choice("colours", [["viridis", "viridis"], ["diverging", "around 0"], ["grey", "grey"]], this.picture.view.map, (map) => {
        this.picture.view.map = map;
        this.picture.view.even = map === "diverging";
        this.picture.draw();
      }));
      parts.push(this.range());
      parts.push(el("button", { title: "All of the plane (0)", onclick: () => this.change({ rows: [0, 0], columns: [0, 0] }) }, "all"));
    } else {
      for (let axis = 0; axis < rank - look.image.length; axis++) if (this.shape[axis] > 1) parts.push(this.slider(axis));
    }
    this.pinButton = toggle("pin", this.state?.pinned ?? false, (on) => {
      this.on.pin(on);
      this.pinButton.setAttribute("aria-pressed", String(this.state?.pinned ?? false)); // until it is
      if (!on) this.change({ diff: false });
    }, "Keep the array as it is now, to compare later versions with (p)");
    this.diffButton = toggle("difference", look.diff, (diff) => {
      this.change({ diff, image: diff ? "" : look.image });
      if (diff) {
        this.picture.view.map = "diverging";
        this.picture.view.even = true;
        this.control();
      }
    }, "Show the difference to what was pinned (d)");
    this.diffButton.disabled = !this.state?.pinned;
    parts.push(this.pinButton, this.diffButton);
    this.exactButton = toggle("exact", look.exact, (exact) => this.change({ exact }), "Look at every element, however many there are");
    parts.push(this.exactButton);
    put(this.controls, ...parts);
    this.picture.scale.hidden = look.image !== "";
    this.offerExact();
  }

  /** There is nothing to ask for where all elements are looked at anyway. */
  offerExact() {
    const samples = this.size() > sampled || this.state?.figures?.exact === false || this.state?.line?.exact === false || this.picture.header?.exact === false;
    this.exactButton.hidden = !this.look.exact && !samples;
  }

  /** How many elements the array has. */
  size() {
    return this.shape.reduce((n, dim) => n * dim, 1);
  }

  /** The axes of rows and columns. */
  plane() {
    if (!this.look.auto) return [this.look.y, this.look.x];
    const long = this.shape.map((n, i) => (n > 1 ? i : -1)).filter((i) => i >= 0);
    return [long[long.length - 2] ?? -1, long[long.length - 1] ?? -1];
  }

  /**
   * @param {number} y
   * @param {number} x
   */
  axes(y, x) {
    const [oldY, oldX] = this.plane();
    if (y === x) [y, x] = y === oldY ? [oldX, x] : [y, oldY]; // they change places
    this.change({ auto: false, y, x, rows: [0, 0], columns: [0, 0] });
    this.control();
  }

  /** @param {number} axis */
  slider(axis) {
    const now = this.look.at[axis] ?? 0;
    const value = el("output", {}, now);
    const input = el("input", { type: "range", min: "0", max: String(this.shape[axis] - 1), value: String(now), "aria-label": `index of axis ${axis}`, oninput: () => {
      value.textContent = input.value;
      const at = this.shape.map((_, i) => this.look.at[i] ?? 0);
      at[axis] = Number(input.value);
      this.change({ at });
    } });
    return el("label", { class: "field slider" }, el("span", {}, `axis ${axis}`), input, value);
  }

  /** Fixed colours, or those of what is shown. */
  range() {
    const view = this.picture.view;
    const inputs = [0, 1].map((i) => el("input", { type: "number", step: "any", class: "bound", "aria-label": i ? "highest colour" : "lowest colour",
      value: view.fixed ? String(view.fixed[i]) : "", placeholder: i ? "max" : "min", onchange: () => {
        const [low, high] = inputs.map((n) => n.valueAsNumber);
        view.fixed = low < high ? [low, high] : null;
        fix.setAttribute("aria-pressed", String(view.fixed !== null));
        this.picture.draw();
      } }));
    const fix = toggle("fix", view.fixed !== null, (on) => {
      view.fixed = on && this.picture.header ? /** @type {[number, number]} */ (this.picture.range()) : null;
      inputs.forEach((n, i) => { n.value = view.fixed ? String(Number(view.fixed[i].toPrecision(6))) : ""; });
      this.picture.draw();
    }, "Keep the colours as they are for these numbers");
    return el("span", { class: "field" }, inputs[0], inputs[1], fix);
  }

  controlLine() {
    const axes = this.shape.map((n, i) => /** @type {[string, string]} */ ([String(i), `axis ${i} (${n})`]));
    put(this.lineAxis, axes.length > 1 ? choice("along", axes, String(this.look.line < 0 ? axes.length - 1 : this.look.line), (v) => this.change({ line: Number(v) })) : null,
      toggle("spectrum", this.look.spectrum, (spectrum) => this.change({ spectrum }), "Of what waves the line is the sum, by their periods per element"));
  }

  /** @param {any} s what the server says of the array */
  update(s) {
    const before = this.state;
    this.state = s;
    this.error.hidden = !s.error;
    renew(this.error, s.error ? format.visible(s.error) : "");
    for (const node of this.ofNumbers) node.hidden = !s.figures; // or those of an array before would be taken for its own
    if (s.error && !s.dtype) return;
    if (String(s.shape) !== String(this.shape)) {
      const axes = this.shape.length;
      this.shape = s.shape;
      if (s.shape.length !== axes) { // what was chosen was of other ones
        const fresh = atFirst(s);
        this.change(this.look.diff ? { ...fresh, image: "" } : fresh);
      } else this.look.at = this.look.at.map((at, i) => Math.max(Math.min(at, s.shape[i] - 1), 0));
      this.control();
      this.controlLine();
    } else if (!before || before.pinned !== s.pinned) this.control();
    this.badge(s);
    this.fact(s);
    this.offerExact();
    if (!s.figures) return;
    this.figure(s.figures);
    this.pictureTitle.textContent = s.diff ? `Difference to ${s.pinned_of ? `version ${s.pinned_of}` : "what was pinned"}`
      : this.look.diff && s.pinned ? "Picture: what was pinned has another shape" : "Picture";
    const h = s.figures.histogram;
    if (!h) this.histogram.set([[], []], this.look.log ? "log" : "");
    else {
      const byIndex = this.look.log || !Number.isFinite(h.edges[h.edges.length - 1] - h.edges[0]); // which is as wide as numbers are
      const x = byIndex ? h.counts.map((/** @type {number} */ _, /** @type {number} */ i) => i) : h.edges.slice(0, -1);
      this.histogram.set([x, h.counts], byIndex ? "log" : "");
    }
    if (s.line) this.line.set([s.line.mean.map((/** @type {number} */ _, /** @type {number} */ i) => Math.floor((i * s.line.columns) / s.line.mean.length)), s.line.min, s.line.mean, s.line.max]);
    put(this.lineTitle, s.spectrum ? `Spectrum of ${format.count(s.spectrum.of)} elements` : !s.line || s.line.exact ? "Line" : "Line of a sample");
    if (s.spectrum) this.line.set([s.spectrum.periods, s.spectrum.amplitude, s.spectrum.amplitude, s.spectrum.amplitude]);
    this.lineCard.hidden = !s.line && !s.spectrum;
  }

  /**
   * Says whether anything still comes.
   * @param {string} over why not, as this.over; "": it does
   */
  connection(over) {
    if (over === this.over) return;
    this.over = over; // whatever a last look, which began before, still says
    if (this.state) this.badge(this.state);
  }

  /** @param {any} s */
  badge(s) {
    const badge = (/** @type {string} */ kind, /** @type {string} */ text, /** @type {string} */ title) => el("span", { class: `badge ${kind}`, title }, text);
    renew(this.badges,
      s.gone || this.over === "gone" ? badge("bad", "program gone", "The array as it was last")
        : this.over ? badge("warn", "not live", `${this.over === "left" ? "ndbridge inspect has ended" : "There is no connection with ndbridge inspect"}: this is the array as it was last`)
        : s.live ? badge("good", "live", "The program's own memory: what it writes shows here")
          : s.copied && !s.stale ? badge("", "copy", `A copy that is made at each look: ${s.reason}`)
            : badge("warn", "stale", "What the name means now cannot be read: this is the array as it was last"),
      s.version ? badge("", `version ${format.count(s.version)}`, s.published ? `published ${new Date(s.published).toLocaleString()}` : "") : null,
      s.torn ? badge("warn", "possibly torn", s.version ? "The program publishes one array again and again, and may be writing into it while it is read"
        : "The program may write while this is read: parts may be of different moments. What it publishes as new arrays is whole")
        : s.copied ? null : badge("good", "whole", "Published: every picture is of one version"),
      s.read_only ? badge("", "read-only", "The program cannot write into it") : null,
      s.device !== "cpu" ? badge("", s.device, "Where the elements lie") : null);
  }

  /** @param {any} s */
  fact(s) {
    const route = s.reason ? `${s.route} (${s.reason})` : s.route;
    const facts = { dtype: s.dtype, shape: format.shape(s.shape), size: format.bytes(s.nbytes), strides: s.strides?.length ? `${s.strides.join(", ")} B` : "–", device: s.device, route, framework: s.framework };
    renew(this.facts, ...Object.entries(facts).map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, format.visible(v)))));
  }

  /** @param {any} f */
  figure(f) {
    const rows = { min: f.min, max: f.max, mean: f.mean, deviation: f.std, norm: f.norm };
    renew(this.figures, ...Object.entries(rows).map(([k, v]) => el("div", { "data-figure": k }, el("dt", {}, k), el("dd", {}, format.number(v)))),
      el("div", { "data-figure": "nan", class: f.nan ? "bad" : "" }, el("dt", {}, "NaN"), el("dd", {}, format.count(f.nan))),
      el("div", { "data-figure": "inf", class: f.pos_inf + f.neg_inf ? "bad" : "" }, el("dt", {}, "infinite"), el("dd", {}, format.count(f.pos_inf + f.neg_inf))),
      el("div", { "data-figure": "zero" }, el("dt", {}, "zero"), el("dd", {}, format.percent(f.seen ? f.zero / f.seen : 0))));
    const shares = [["negative", f.negative], ["zero", f.zero], ["positive", f.positive], ["infinite", f.pos_inf + f.neg_inf], ["nan", f.nan]];
    const total = Math.max(f.seen, 1);
    renew(this.health, ...shares.filter(([, n]) => n > 0).map(([kind, n]) => {
      const part = el("span", { class: `part ${kind}`, title: `${kind}: ${format.count(n)}` });
      part.style.flexGrow = String(Math.max(n / total, 0.004)); // what is there is seen
      return part;
    }));
    const text = shares.filter(([, n]) => n > 0).map(([kind, n]) => `${kind === "nan" ? "NaN" : kind} ${format.percent(n / total)}`).join(" · ");
    this.health.setAttribute("aria-label", text);
    renew(this.healthText, el("span", {}, text || "no elements"), el("span", { class: "muted" },
      f.exact ? `${f.len === 1 ? "its one element" : `all ${format.count(f.len)} elements`}, ${(1000 * f.seconds).toFixed(1)} ms` : `a sample of ${format.count(f.seen)} of ${format.count(f.len)} elements, mean ± ${format.number(f.mean_error)}`));
    const h = f.histogram, beyond = (/** @type {string} */ name, /** @type {number} */ n, /** @type {number} */ edge) => n
      ? el("span", { class: "apart-item", "data-apart": name, title: "Elements that no bin has: the bins are where those of a sample lie" }, `${name} ${format.number(edge)}: ${format.count(n)}`) : null;
    renew(this.apart, ...[["NaN", f.nan, "nan"], ["+∞", f.pos_inf, "infinite"], ["−∞", f.neg_inf, "infinite"]].map(([name, n, kind]) =>
      el("span", { class: `apart-item ${n ? kind : "none"}`, "data-apart": name }, `${name} ${format.count(n)}`)),
    h ? beyond("below", h.below, h.edges[0]) : null, h ? beyond("above", h.above, h.edges[h.edges.length - 1]) : null);
  }

  /** @param {any} m new points of the history */
  past(m) {
    if (m.reset) this.points = [[], [], [], []];
    grow(this.points, [m.times, m.min, m.mean, m.max]);
    this.historyCard.hidden = this.points[0].length < 2;
    renew(this.historyTitle, m.some ? "History of samples" : "History");
    put(this.rate, `mean ${m.rate > 0 ? "+" : ""}${format.number(m.rate)} a second`, m.versions ? `, ${format.number(Math.round(10 * m.versions) / 10)} versions` : null);
    if (!this.historyCard.hidden) this.history.set(this.points);
  }

  /** @param {string} key */
  key(key) {
    switch (key) {
      case "p": this.pinButton.click(); break;
      case "d": if (!this.diffButton.disabled) this.diffButton.click(); break;
      case "i": {
        const select = this.controls.querySelector("select[aria-label=as]");
        if (select instanceof HTMLSelectElement) {
          select.value = this.look.image ? "" : likelyOrder(this.shape) || select.options[1].value;
          select.dispatchEvent(new Event("change"));
        }
        break;
      }
      case "z": this.picture.canvas.focus(); break;
      case "[": case "]": {
        const slider = this.controls.querySelector("input[type=range]");
        if (slider instanceof HTMLInputElement) {
          slider.value = String(Number(slider.value) + (key === "]" ? 1 : -1));
          slider.dispatchEvent(new Event("input"));
        }
        break;
      }
      default: return false;
    }
    return true;
  }
}

/**
 * A part that was asked for, or all where it is not one.
 * @param {[number, number]} part
 * @param {number} n
 * @returns {[number, number]}
 */
const within = (part, n) => (part[0] < part[1] && part[1] <= n ? part : [0, n]);
