// The page of one of Python's own numbers.

import { el, put, renew } from "./dom.js";
import * as format from "./format.js";
import * as plots from "./plots.js";

/** @typedef {import("./tree.js").Entry} Entry */

export class NumberPage {
  /**
   * @param {Entry} entry
   * @param {import("./overview.js").Line} line
   */
  constructor(entry, line) {
    this.entry = entry;
    this.line = line;
    this.over = ""; // why nothing comes any more: "gone", "left" or "lost", as the page's state
    const out = el("span", { class: "readout" });
    this.badges = el("span", { class: "badges" }, el("span", { class: "badge", title: "A number of Python's own" }, entry.dtype));
    this.figures = el("dl", { class: "figures" });
    this.rate = el("div", { class: "muted", "data-rate": "" });
    this.chart = plots.history(`${entry.name} over time`, out, [entry.name], 320);
    this.node = el("article", { class: "array" },
      el("header", { class: "title" }, el("h1", {}, format.visible(entry.name)), this.badges),
      el("section", { class: "card wide" }, this.figures),
      el("section", { class: "card wide", "aria-label": "History" }, el("div", { class: "head" }, el("h2", {}, "Over time"), out), this.chart.node, this.rate));
    this.draw();
  }

  destroy() {
    this.chart.destroy();
  }

  /** Draws the line as it is now. A value that stays is not sent again: the line goes on to this moment. */
  draw() {
    const [times, values] = this.line.points;
    const known = values.filter((/** @type {number | null} */ x) => x !== null);
    const figures = { value: this.line.now || "–", min: format.number(known.length ? Math.min(...known) : null), max: format.number(known.length ? Math.max(...known) : null) };
    renew(this.figures, ...Object.entries(figures).map(([k, v]) => el("div", { "data-figure": k }, el("dt", {}, k), el("dd", {}, v))));
    put(this.rate, this.line.rate);
    const n = times.length, now = Date.now() / 1000;
    const goesOn = n > 0 && !this.over && now > times[n - 1];
    this.chart.set(goesOn ? [[...times, now], [...values, values[n - 1]]] : [times, values]);
  }

  /**
   * Says whether anything still comes.
   * @param {string} over why not, as this.over; "": it does
   */
  connection(over) {
    this.over = over;
    renew(this.badges, el("span", { class: "badge", title: "A number of Python's own" }, this.entry.dtype),
      over ? el("span", { class: `badge ${over === "gone" ? "bad" : "warn"}`, title: "The number as it was last" }, over === "gone" ? "program gone" : "not live") : null);
  }
}
