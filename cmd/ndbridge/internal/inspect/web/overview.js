// What is shown while no array is chosen: the scalars of the program over time.

import { el, put } from "./dom.js";
import * as format from "./format.js";
import * as plots from "./plots.js";

/** @typedef {import("./tree.js").Entry} Entry */

export class Overview {
  /** @param {(name: string) => void} open */
  constructor(open) {
    this.open = open;
    this.grid = el("div", { class: "scalars" });
    this.note = el("p", { class: "empty" });
    this.node = el("section", { class: "overview", "aria-label": "Scalars" }, this.note, this.grid);
    /** @type {Map<string, {chart: plots.Chart, value: HTMLElement, card: HTMLElement, points: any[][]}>} */
    this.cards = new Map();
    this.arrays = 0;
  }

  /** @param {Entry[]} entries */
  list(entries) {
    this.arrays = entries.length;
    this.say();
  }

  say() {
    put(this.note, this.cards.size ? "" : this.arrays
      ? "Choose an array on the left. Arrays of one element, and numbers that the program publishes, such as a loss, are drawn here over time."
      : "No arrays yet: they are listed here as the program makes them.");
  }

  /** @param {any} m new points of the scalars */
  update(m) {
    for (const s of m.series) {
      let card = this.cards.get(s.name);
      if (!card) {
        const value = el("span", { class: "value" }), out = el("span", { class: "readout" });
        const chart = plots.history(`${s.name} over time`, out, [s.name], 110);
        card = { chart, value, points: [[], []], card: el("section", { class: "card", "data-scalar": s.name },
          el("div", { class: "head" }, el("h2", {}, el("button", { class: "link", onclick: () => this.open(s.name) }, format.visible(s.name))), out, value), chart.node) };
        this.cards.set(s.name, card);
        this.grid.append(card.card);
      }
      if (s.reset) card.points = [[], []];
      plots.grow(card.points, [s.times, s.mean]);
      card.value.textContent = format.number(s.mean[s.mean.length - 1]);
      card.chart.set(card.points);
    }
    this.say();
  }
}
