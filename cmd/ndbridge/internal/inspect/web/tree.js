// The tree of names.

import { byId, el, put, toggle } from "./dom.js";
import * as format from "./format.js";

/**
 * @typedef {object} Entry an array of the program, as the server describes it
 * @property {string} name
 * @property {string[]} parts
 * @property {string} dtype
 * @property {number[]} shape
 * @property {number} nbytes
 * @property {string} device
 * @property {string} framework
 * @property {boolean} [number] a number of Python's own
 * @property {boolean} [published]
 * @property {boolean} [read_only]
 * @property {string} [route] how its memory would be reached
 * @property {string} [reason] why it would be copied
 * @property {string} [error]
 */

/**
 * @typedef {object} Look what the server says of an array that is looked at
 * @property {string} name
 * @property {string} [error] why the last look failed
 * @property {string} route
 * @property {string} [reason]
 * @property {number | null} rate
 * @property {number | null} versions
 */

/** @typedef {{entry: Entry, now: HTMLElement | null, mark: HTMLElement, details: HTMLElement, row: HTMLElement}} Cells */

/**
 * @typedef {object} Branch
 * @property {string} label
 * @property {string} path
 * @property {Entry | null} entry
 * @property {Map<string, Branch>} below
 */

const maxRows = 2000;

export class Tree {
  /**
   * @param {(name: string) => void} open what to do with an array that was chosen
   * @param {(pattern: string) => void} ask has the program searched; "" ends that
   */
  constructor(open, ask) {
    this.open = open;
    this.ask = ask;
    this.asked = ""; // the pattern that the program is searched for
    /** @type {any} */
    this.result = null; // what was found of it
    this.list = byId("tree");
    this.search = byId("search");
    this.note = byId("tree-note");
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Set<string>} */
    this.closed = new Set();
    /** @type {{branch: Branch, level: number}[]} */
    this.rows = [];
    this.active = ""; // the path of the row that keys move
    this.chosen = ""; // the array that is shown
    /** @type {{error?: string, more?: number, partial?: boolean}} */
    this.about = {};
    /** @type {Map<string, string>} */
    this.values = new Map(); // of what is one number, as they are now
    /** @type {Map<string, Look>} */
    this.looks = new Map(); // of what is looked at
    /** @type {Map<string, Cells>} */
    this.cells = new Map(); // where all this stands
    const unfold = (/** @type {boolean} */ on) => {
      this.list.classList.toggle("unfolded", on);
      localStorage.setItem("details", String(on));
    };
    unfold(localStorage.getItem("details") === "true");
    this.search.after(toggle("details", this.list.classList.contains("unfolded"), unfold,
      "Below each name: how it reaches the page, whether it is live, and how fast it changes. The name that is chosen has that always"));
    this.search.addEventListener("input", () => {
      if (this.asked && this.search.value.trim() !== this.asked) this.searchFor("");
      this.draw();
    });
    this.search.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => this.searchKey(e));
    this.list.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => this.key(e));
    this.list.addEventListener("focus", () => this.mark());
    // A list that changes while a button is down has another row in the place of the one that was pressed, which no click comes to then.
    /** @type {HTMLElement | null} */
    let pressed = null;
    const rowOf = (/** @type {Event} */ e) => (e.target instanceof Element ? /** @type {HTMLElement | null} */ (e.target.closest("[data-path]")) : null);
    this.list.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => { pressed = e.button === 0 ? rowOf(e) : null; });
    this.list.addEventListener("pointerup", (/** @type {PointerEvent} */ e) => {
      const row = rowOf(e);
      if (row && pressed && !pressed.isConnected && pressed.dataset.path === row.dataset.path) this.take(row, e);
    });
    this.list.addEventListener("click", (/** @type {MouseEvent} */ e) => {
      const row = rowOf(e);
      if (row) this.take(row, e);
    });
  }

  /**
   * @param {Entry[]} entries
   * @param {{error?: string, more?: number, partial?: boolean}} [about]
   */
  update(entries, about = {}) {
    this.entries = entries;
    this.about = about;
    this.draw();
  }

  /** @param {string} name */
  choose(name) {
    this.chosen = name;
    this.draw();
  }

  /**
   * Shows the value that something has now.
   * @param {string} name
   * @param {string} value
   */
  value(name, value) {
    this.values.set(name, value);
    const cell = this.cells.get(name)?.now;
    if (cell) cell.textContent = value;
  }

  /** @param {Look[]} arrays all that are looked at */
  looked(arrays) {
    const before = this.looks;
    this.looks = new Map(arrays.map((l) => [l.name, l]));
    for (const name of new Set([...before.keys(), ...this.looks.keys()])) {
      const cells = this.cells.get(name);
      if (cells) this.say(cells);
    }
  }

  /**
   * Says of an array what is known of it, and more if it is looked at.
   * @param {Cells} cells
   */
  say({ entry: e, now, mark, details, row }) {
    const l = this.looks.get(e.name);
    const { route, reason } = l ?? e;
    const state = !l ? "" : l.error ? "stale" : l.reason ? "copy" : "live";
    const words = [e.published ? "published" : "", state].filter(Boolean).join(", ");
    mark.className = `mark ${e.published ? "published" : ""} ${state}`;
    mark.hidden = words === "";
    mark.title = words;
    mark.setAttribute("aria-label", words);
    row.title = details.textContent = e.error ? format.visible(e.error) : e.number ? "a number of Python’s own" : [
      words + (l?.error ? `: ${format.visible(l.error)}` : ""), l && !l.error && l.rate !== null ? `mean ${format.rate(l.rate)}` : "",
      l?.versions && !l.error ? `${format.number(Number(l.versions.toPrecision(3)))} versions/s` : "", reason ? `${route || "copied"} (${reason})` : route, e.framework,
      now ? format.bytes(e.nbytes) : "", e.read_only ? "read-only" : "",
    ].filter(Boolean).join(" · ");
  }

  /** @param {string} name */
  find(name) {
    return this.entries.find((e) => e.name === name) ?? this.result?.entries.find((/** @type {Entry} */ e) => e.name === name);
  }

  /**
   * Has the program searched for names, and shows those instead of the list.
   * @param {string} pattern or a name, which means what it leads to; "": shows the list
   */
  searchFor(pattern) {
    this.asked = pattern;
    this.result = null;
    this.ask(pattern);
    this.draw();
  }

  /** @param {any} m */
  found(m) {
    if (m.pattern !== this.asked) return;
    if (m.pattern.includes("*") || m.entries.length) {
      this.result = m;
      this.draw();
    } else this.searchFor(""); // who asks for an array is told what is wrong
  }

  /** What the search and the list have to say. */
  says() {
    if (this.asked && !this.result) return "Searching the program …";
    const about = this.result ?? this.about;
    if (about.error) return format.visible(about.error);
    if (about.more) return `${format.count(about.more)} more: search for their names`;
    if (about.partial) return "Not all of the program was looked through: there may be more.";
    if (this.rows.length) return "";
    if (this.result) return "No array has such a name now.";
    return this.entries.length === 0 ? "No arrays yet. Variables of functions are listed while they run on the main thread."
      : "No name in the list has these words. Enter asks the program: for a name, such as model.weight, or model for all below it, or a pattern, such as model.*.weight.";
  }

  /** @returns {Branch} */
  grow() {
    const words = this.asked ? [] : this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const root = { label: "", path: "", entry: null, below: new Map() };
    for (const entry of this.result?.entries ?? this.entries) {
      const text = `${entry.name} ${entry.dtype}`.toLowerCase();
      if (!words.every((/** @type {string} */ w) => text.includes(w))) continue;
      /** @type {Branch} */
      let at = root;
      for (const part of entry.parts) {
        const path = at.path + part + "\n";
        let next = at.below.get(part);
        if (!next) {
          next = { label: part, path, entry: null, below: new Map() };
          at.below.set(part, next);
        }
        at = next;
      }
      at.entry = entry;
    }
    return root;
  }

  draw() {
    const searching = this.search.value.trim() !== "";
    this.rows = [];
    const walk = (/** @type {Branch} */ branch, /** @type {number} */ level) => {
      for (let child of branch.below.values()) {
        let label = child.label;
        while (!child.entry && child.below.size === 1) { // a chain without a fork is one row
          child = /** @type {Branch} */ (child.below.values().next().value);
          label += child.label.startsWith("[") || child.label.startsWith(".") || label === "" ? child.label : "." + child.label;
        }
        this.rows.push({ branch: { ...child, label }, level });
        if (child.below.size && (searching || !this.closed.has(child.path))) walk(child, level + 1);
      }
    };
    walk(this.grow(), 1);
    const more = this.rows.length - maxRows;
    this.rows.length = Math.min(this.rows.length, maxRows);
    this.cells.clear();
    const top = this.list.scrollTop;
    put(this.list, ...this.rows.map((row, i) => this.row(row.branch, row.level, i)));
    this.list.scrollTop = top;
    put(this.note,
      more > 0 ? `${format.count(more)} more: search for a name` : this.says());
    this.mark();
  }

  /**
   * @param {Branch} b
   * @param {number} level
   * @param {number} i
   */
  row(b, level, i) {
    const open = !this.closed.has(b.path);
    const e = b.entry;
    const now = e && !e.error && (e.number || e.shape.every((n) => n === 1)) ? el("span", { class: "now" }, this.values.get(e.name) ?? "") : null; // the value of what is one number
    const facts = e?.error ? el("span", { class: "facts bad", title: format.visible(e.error) }, "cannot be viewed")
      : e ? el("span", { class: "facts" }, now, el("span", { class: "dtype" }, e.dtype), e.shape.length ? el("span", { class: "shape" }, e.shape.join("×")) : null,
        now ? null : el("span", { class: "size" }, format.bytes(e.nbytes)), e.device === "cpu" || e.number ? null : el("span", { class: "device" }, e.device)) : null;
    const mark = el("span", { class: "mark", role: "img" }), details = el("span", { class: "details" });
    const row = el("li", {
      role: "treeitem", id: `row-${i}`, class: `row level-${Math.min(level, 8)}`, "aria-level": level, "aria-selected": e !== null && e.name === this.chosen,
      "aria-expanded": b.below.size ? open : null, "data-name": e?.name ?? null, "data-path": b.path,
    },
    el("span", { class: b.below.size ? "twist" : "leaf", "aria-hidden": true }),
    el("span", { class: "label" }, format.visible(b.label)),
    e ? mark : null, facts, e ? details : null);
    if (e) {
      const cells = { entry: e, now, mark, details, row };
      this.cells.set(e.name, cells);
      this.say(cells);
    }
    return row;
  }

  /**
   * Does what a click on a row means.
   * @param {HTMLElement} row
   * @param {Event} e
   */
  take(row, e) {
    const { name, path } = row.dataset;
    this.active = path ?? "";
    if (name !== undefined && !(e.target instanceof Element && e.target.classList.contains("twist"))) this.open(name);
    else this.fold(this.active);
  }

  /** @param {string} path */
  fold(path) {
    if (!this.closed.delete(path)) this.closed.add(path);
    this.draw();
  }

  /** Shows which row keys move. */
  mark() {
    const at = this.at();
    for (const [i, node] of [...this.list.children].entries()) node.classList.toggle("active", i === at);
    if (at >= 0) this.list.setAttribute("aria-activedescendant", `row-${at}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  at() {
    const at = this.rows.findIndex((r) => r.branch.path === this.active);
    return at >= 0 || this.rows.length === 0 ? at : Math.max(this.rows.findIndex((r) => r.branch.entry?.name === this.chosen), 0);
  }

  /** @param {number} i */
  move(i) {
    const row = this.rows[Math.min(Math.max(i, 0), this.rows.length - 1)];
    if (!row) return;
    this.active = row.branch.path;
    this.mark();
    this.list.children[this.at()]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} e */
  searchKey(e) {
    const text = this.search.value.trim();
    if (e.key === "Enter" && text.includes("*") && text !== this.asked) {
      this.searchFor(text);
    } else if (e.key === "Enter") {
      const names = this.rows.map((r) => r.branch.entry?.name ?? "").filter(Boolean);
      const first = names.find((n) => n === text) ?? names.find((n) => last(n) === text) ?? names[0];
      if (!first) this.searchFor(text);
      this.open(first ?? text);
    } else if (e.key === "ArrowDown") {
      this.list.focus();
      this.move(0);
    } else if (e.key === "Escape") {
      this.search.value = "";
      this.searchFor("");
      this.list.focus();
    } else return;
    e.preventDefault();
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const at = this.at();
    const row = this.rows[at];
    const folded = row && this.closed.has(row.branch.path);
    switch (e.key) {
      case "ArrowDown": this.move(at + 1); break;
      case "ArrowUp": this.move(at - 1); break;
      case "Home": this.move(0); break;
      case "End": this.move(this.rows.length - 1); break;
      case "PageDown": this.move(at + 15); break;
      case "PageUp": this.move(at - 15); break;
      case "ArrowRight":
        if (row?.branch.below.size && folded) this.fold(row.branch.path);
        else if (row?.branch.below.size) this.move(at + 1);
        break;
      case "ArrowLeft":
        if (row?.branch.below.size && !folded) this.fold(row.branch.path);
        else for (let i = at - 1; i >= 0; i--) {
          if (this.rows[i].level < (row?.level ?? 0)) {
            this.move(i);
            break;
          }
        }
        break;
      case "Enter": case " ":
        if (row?.branch.entry) this.open(row.branch.entry.name);
        else if (row) this.fold(row.branch.path);
        break;
      default: return;
    }
    e.preventDefault();
    e.stopPropagation();
  }
}

/**
 * The last part of a name: an attribute, or what stands in brackets.
 * @param {string} name
 */
const last = (name) => name.replace(/["'\]]+$/, "").replace(/^.*[.["']/, "");
