// Alarms: what happened, and what is watched.

import { byId, el, put } from "./dom.js";
import * as format from "./format.js";

export class Alarms {
  /** @param {(name: string) => void} show shows an array */
  constructor(show) {
    this.show = show;
    this.dialog = byId("alarms");
    this.count = byId("alarm-count");
    /** @type {any} */
    this.last = null;
    this.read = 0; // of those that were raised
  }

  open() {
    this.read = this.last?.raised ?? 0;
    this.mark();
    this.draw();
    this.dialog.showModal();
  }

  /** @param {any} m */
  update(m) {
    const fresh = this.last ? m.raised - this.last.raised : 0;
    this.last = m;
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

  draw() {
    const m = this.last ?? { events: [], watched: [], of: "" };
    const rows = m.events.toReversed().map((/** @type {any} */ e) => el("li", {},
      el("time", { class: "muted" }, new Date(e.time).toLocaleTimeString()), " ",
      el("button", { class: "link", onclick: () => {
        this.dialog.close();
        this.show(e.name);
      } }, format.visible(e.name)), ` ${format.visible(e.alarm)}: ${format.number(e.value)}`));
    put(this.dialog, el("h2", { id: "alarms-title" }, "Alarms"),
      el("p", { class: "muted" }, `Watched: ${format.visible(m.watched.join(", "))}, of ${m.of}. Others: ndbridge inspect --alarm 'norm>100'`),
      rows.length ? el("ol", { class: "events" }, ...rows) : el("p", {}, "Nothing has happened."),
      el("form", { method: "dialog" },
        "Notification" in window && Notification.permission === "default"
          ? el("button", { type: "button", onclick: () => Notification.requestPermission().then(() => this.draw()) }, "Notify me on the desktop") : null,
        " ", el("button", {}, "Close")));
  }
}

/** @param {string} text */
function notify(text) {
  if ("Notification" in window && Notification.permission === "granted") new Notification("ndbridge", { body: format.visible(text), icon: "icon.svg" });
}
