// What is shown while nothing is chosen: what is one number, over time.

import { el, put } from "./dom.js";
import * as format from "./format.js";
import * as plots from "./plots.js";

/** @typedef {import("./tree.js").Entry} Entry */

/** A number over time, as far as the page knows it. */
export class Line {
  constructor() {
    /** @type {any[][]} */
    this.points = [[], []];
    this.now = ""; // the last value
    this.rate = ""; // how fast it changes
    this.moves = false; // it has had another value
  }

  /** @param {any} s new points */
  grow(s) {
    if (s.reset) for (const line of this.points) line.length = 0;
    plots.grow(this.points, [s.times, s.mean]);
    const values = this.points[1];
    this.now = format.number(s.now ? Number(s.now.replace("Inf", "Infinity")) : values[values.length - 1]);
    this.rate = s.rate === null ? "" : `${s.rate > 0 ? "+" : ""}${format.number(s.rate)} a second`;
    this.moves ||= values.some((x) => x !== values[0]);
  }
}

/** How many lines the overview has at most. */
const maxCards = 100;

/**
 * Whether a name is that of a variable, and not of what lies below one.
 * @param {string} name
 */
const isVariable = (name) => !/[.[]/.test(name.replace(/^.*\(\)\./, ""));

export class Overview {
  /** @param {(name: string) => void} open */
  constructor(open) {
    this.open = open;
    this.grid = el("div", { class: "scalars" });
    this.note = el("p", { class: "empty" });
    this.node = el("section", { class: "overview", "aria-label": "Scalars" }, this.note, this.grid);
    /** @type {Map<string, {chart: plots.Chart, value: HTMLElement, node: HTMLElement}>} */
    this.cards = new Map();
    /** @type {Map<string, number>} */
    this.places = new Map(); // in the tree, or where a name was there last
    /** @type {Map<string, Line>} */
    this.lines = new Map();
    /** @type {Set<string>} */
    this.numbers = new Set(); // the names of Python's own numbers
    this.entries = 0;
  }

  /** @param {Entry[]} entries */
  list(entries) {
    this.entries = entries.length;
    this.numbers = new Set(entries.filter((e) => e.number).map((e) => e.name));
    entries.forEach((e, i) => this.places.set(e.name, i));
    this.arrange();
    this.say();
  }

  say() {
    put(this.note, this.cards.size ? "" : this.entries
      ? "Choose an array or a number on the left. Arrays of one element, and numbers that change, such as a loss, are drawn here over time."
      : "No arrays yet: they are listed here as the program makes them.");
  }

  /**
   * The line of that name.
   * @param {string} name
   */
  line(name) {
    let line = this.lines.get(name);
    if (!line) this.lines.set(name, line = new Line());
    return line;
  }

  /** @param {any} m new points of the scalars */
  update(m) {
    for (const s of m.series) {
      const line = this.line(s.name);
      line.grow(s);
      if (!line.moves && this.numbers.has(s.name)) continue; // most of them are constants
      const card = this.cards.get(s.name) ?? this.card(s.name);
      if (!card) continue;
      card.value.textContent = line.now;
      card.chart.set(line.points);
    }
    this.arrange();
    this.say();
  }

  /** Has the cards in the order of the tree: the program's own variables come before those of the packages that it calls. */
  arrange() {
    const place = (/** @type {string} */ name) => this.places.get(name) ?? Infinity;
    const nodes = [...this.cards].sort(([a], [b]) => place(a) - place(b) || 0).map(([, card]) => card.node);
    if (nodes.some((node, i) => node !== this.grid.children[i])) this.grid.append(...nodes);
  }

  /** @param {string} name */
  card(name) {
    if (this.cards.size >= maxCards && !this.makeRoom(name)) return null;
    const value = el("span", { class: "value" }), out = el("span", { class: "readout" });
    const chart = plots.history(`${name} over time`, out, [name], 110);
    const node = el("section", { class: "card", "data-scalar": name },
      el("div", { class: "head" }, el("h2", {}, el("button", { class: "link", title: format.visible(name), onclick: () => this.open(name) }, format.visible(name))), out, value), chart.node);
    const card = { chart, value, node };
    this.cards.set(name, card);
    return card;
  }

  /**
   * Takes away a card of what lies below a variable, such as an optimizer's count of steps of one weight, if a variable needs the place.
   * @param {string} name
   */
  makeRoom(name) {
    const other = isVariable(name) && [...this.cards.keys()].reverse().find((n) => !isVariable(n));
    if (!other) return false;
    this.cards.get(other)?.node.remove();
    return this.cards.delete(other);
  }
}
