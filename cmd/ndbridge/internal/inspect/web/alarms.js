// Alarms: what happened, and what is watched.

import { byId, choice, el, put, toggle } from "./dom.js";
import * as format from "./format.js";

// What an alarm compares, and the bound that is proposed.
const figures = /** @type {[string, string, string][]} */ ([
  ["nan", "NaN", ""], ["inf", "infinities", ""], ["norm", "norm", "100"], ["absmax", "greatest magnitude", "1e4"], ["max", "maximum", "1e4"], ["min", "minimum", "-1e4"],
  ["mean", "mean", "1"], ["std", "deviation", "1e-8"], ["zero", "share of zeros", "0.9"], ["stale", "no change for", "30s"],
]);

export class Alarms {
  /**
   * @param {(name: string) => void} show shows an array
   * @param {(watched: object) => void} watch has other alarms watched
   */
  constructor(show, watch) {
    this.show = show;
    this.watch = watch;
    this.dialog = byId("alarms");
    this.count = byId("alarm-count");
    /** @type {any} */
    this.last = null;
    this.read = 0; // of those that were raised
    this.refused = "";
    this.events = el("div");
    this.watched = el("div");
    this.step = el("input", { type: "search", placeholder: "step", size: 10, "aria-label": "Name of the count of steps", onchange: () => this.change({ step: this.step.value.trim() }) });
    this.form = this.newForm();
  }

  open() {
    this.read = this.last?.raised ?? 0;
    this.mark();
    put(this.dialog, el("h2", { id: "alarms-title" }, "Alarms"), this.watched, this.form, this.events,
      el("form", { method: "dialog" },
        "Notification" in window && Notification.permission === "default"
          ? el("button", { type: "button", onclick: () => Notification.requestPermission().then(() => this.open()) }, "Notify me on the desktop") : null,
        " ", el("button", {}, "Close")));
    this.draw();
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** @param {any} m */
  update(m) {
    const fresh = this.last ? m.raised - this.last.raised : 0;
    this.last = m;
    this.refused = m.refused ?? "";
    if (fresh > 0) {
      for (const event of m.events.slice(-fresh).slice(-3)) notify(event.text);
    }
    if (this.dialog.open) {
      this.read = m.raised;
      this.draw();
    }
    this.mark();
  }

  mark() {
    const unread = (this.last?.raised ?? 0) - this.read;
    this.count.hidden = unread === 0;
    this.count.textContent = String(unread);
  }

  /**
   * Has others watched than now.
   * @param {object} changes
   */
  change(changes) {
    const m = this.last ?? { watched: [], all: false, step: "" };
    this.watch({ alarms: m.watched, all: m.all, step: m.step, ...changes });
  }

  /** What adds an alarm. It stays as it is when events come. */
  newForm() {
    const names = el("input", { type: "search", placeholder: "any name", size: 14, "aria-label": "Names, with * for any characters" });
    const bound = el("input", { type: "search", size: 6, "aria-label": "Bound" });
    const compare = choice("is", [[">", ">"], [">=", "≥"], ["<", "<"], ["<=", "≤"]], ">", () => {});
    const figure = choice("figure", figures.map(([value, text]) => [value, text]), "nan", (value) => {
      bound.value = figures.find((f) => f[0] === value)?.[2] ?? "";
      bound.hidden = compare.hidden = bound.value === "";
    });
    bound.hidden = compare.hidden = true;
    const value = (/** @type {Element} */ field) => /** @type {HTMLSelectElement} */ (field.querySelector("select")).value;
    return el("form", { class: "new-alarm", onsubmit: (/** @type {Event} */ e) => {
      e.preventDefault();
      const condition = value(figure) + (bound.hidden ? "" : value(compare) + bound.value.trim());
      const text = names.value.trim() ? `${names.value.trim()}: ${condition}` : condition;
      this.change({ alarms: [...new Set([...this.last?.watched ?? [], text])] });
    } }, names, figure, compare, bound, el("button", {}, "Watch"), el("label", { class: "field" }, "steps are counted in", this.step));
  }

  draw() {
    const m = this.last ?? { events: [], watched: [], all: false, step: "" };
    if (document.activeElement !== this.step) this.step.value = m.step;
    put(this.watched,
      el("ul", { class: "watched" }, ...m.watched.map((/** @type {string} */ text) => el("li", {}, el("code", {}, format.visible(text)), " ",
        el("button", { class: "link", "aria-label": `Do not watch ${format.visible(text)}`, onclick: () => this.change({ alarms: m.watched.filter((/** @type {string} */ t) => t !== text) }) }, "remove")))),
      m.watched.length ? null : el("p", { class: "muted" }, "Nothing is watched."),
      el("p", { class: "muted" }, toggle("all arrays", m.all, (all) => this.change({ all }), "Look at all arrays that the list has, and not only at numbers and what is shown"),
        m.all ? " of the program are watched." : " Numbers and the arrays that a page shows are watched."),
      m.uncounted ? el("p", { class: "bad" }, `Steps are not counted: ${format.visible(m.uncounted)}`) : null,
      this.refused ? el("p", { class: "bad", role: "alert" }, format.visible(this.refused)) : null);
    const rows = m.events.toReversed().map((/** @type {any} */ e) => el("li", {},
      el("time", { class: "muted" }, new Date(e.time).toLocaleTimeString()), " ",
      el("button", { class: "link", onclick: () => {
        this.dialog.close();
        this.show(e.name);
      } }, format.visible(e.name)), ` ${format.visible(e.alarm)}: ${e.figure === "stale" ? `${format.number(e.value)} s` : format.number(e.value)}`,
      el("span", { class: "muted" }, (e.step === null ? "" : ` at step ${format.number(e.step)}`) + (e.before === null || e.before === e.step ? "" : `, not at step ${format.number(e.before)}`))));
    put(this.events, rows.length ? el("ol", { class: "events" }, ...rows) : el("p", {}, "Nothing has happened."));
  }
}

/** @param {string} text */
function notify(text) {
  if ("Notification" in window && Notification.permission === "granted") new Notification("ndbridge", { body: format.visible(text), icon: "icon.svg" });
}
