// The page of ndbridge inspect.

import { ArrayPage } from "./array.js";
import { Alarms } from "./alarms.js";
import { byId, el, put } from "./dom.js";
import * as format from "./format.js";
import { redrawAll } from "./plots.js";
import { NumberPage } from "./number.js";
import { Overview } from "./overview.js";
import { Socket } from "./socket.js";
import { Tree } from "./tree.js";

// The token has done its work: the cookie stands for it.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);

const main = byId("main");
/** @type {ArrayPage | NumberPage | null} */
let page = null;
/** @type {any} */
let program = { state: "running", name: "" };
let connected = false;
let listed = false;
let asked = false; // for what the address names

const tree = new Tree((name) => { location.hash = encodeURIComponent(name); }, (pattern) => socket.send({ find: pattern }));
const overview = new Overview((name) => { location.hash = encodeURIComponent(name); });
const socket = new Socket({
  text: (m) => {
    switch (m.topic) {
      case "program":
        program = m;
        socket.over = m.state === "gone" || m.state === "left";
        state();
        break;
      case "tree":
        tree.update(m.entries, m);
        overview.list(m.entries);
        listed = true;
        if (page) become(tree.find(page.entry.name));
        else if (!asked || tree.find(wanted())) route();
        asked = true;
        break;
      case "found": tree.found(m); break;
      case "array":
        if (page instanceof ArrayPage && m.name === page.entry.name) page.update(m);
        else if (!page && m.name === wanted()) unlisted(m);
        break;
      case "history": for (const s of m.series) if (page instanceof ArrayPage && s.name === page.entry.name) page.past(s); break;
      case "scalars":
        overview.update(m);
        for (const s of m.series) tree.value(s.name, overview.line(s.name).now);
        if (page instanceof NumberPage) page.draw();
        break;
      case "looks": if (!socket.over) tree.looked(m.arrays); break;
      case "alarms": alarms.update(m); break;
      case "budget": if (!socket.over) budget(m); break;
    }
  },
  picture: (header, payload) => {
    if (!(page instanceof ArrayPage) || header.name !== page.entry.name) return;
    page.picture.show(header, payload);
  },
  state: (open) => {
    connected = open;
    state();
  },
  refused: () => {
    program = { ...program, state: "left", detail: "ndbridge inspect was started again: open the address that it has printed" };
    socket.over = true;
    state();
  },
});
const alarms = new Alarms((name) => { location.hash = encodeURIComponent(name); }, (watched) => socket.send({ alarms: watched }));

/** The array that the address names. */
function wanted() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch { // no address of ours
    return "";
  }
}

/**
 * Shows an array that no list has: a part of an object, for example.
 * @param {any} m what the server says of it
 */
function unlisted(m) {
  if (m.number) show({ ...m, parts: [m.name], dtype: m.number, number: true });
  else if (m.error) put(main, el("p", { class: "empty" }, format.visible(m.error)));
  else if (m.dtype) show({ ...m, parts: [m.name] });
}

/** Shows the array that the address names, or all that is small. */
function route() {
  const name = wanted();
  if (page?.entry.name === name) return;
  page?.destroy();
  page = null;
  side(false);
  tree.choose(name);
  if (!name) {
    document.title = program.name ? `${program.name} – ndbridge inspect` : "ndbridge inspect";
    put(main, overview.node);
    socket.see(null);
    return;
  }
  const entry = tree.find(name);
  if (!entry) {
    put(main, el("p", { class: "empty" }, "Asking the program …"));
    socket.see(listed ? { name, auto: true, width: 64, height: 64, line: -1 } : null);
    return;
  }
  show(entry);
}

/**
 * Shows what has the name of the page now, if that has become a number in place of an array, or an array in place of a number.
 * @param {import("./tree.js").Entry | undefined} entry
 */
function become(entry) {
  if (!entry || entry.error || !entry.number === page instanceof ArrayPage) return;
  page?.destroy();
  show(entry);
}

/** @param {import("./tree.js").Entry} entry */
function show(entry) {
  const name = entry.name;
  document.title = `${format.visible(name)} – ndbridge inspect`;
  if (entry.number) {
    page = new NumberPage(entry, overview.line(name));
    socket.see(null);
  } else page = new ArrayPage(entry, { look: (look) => socket.see(look), pin: (pin) => socket.send({ pin }) });
  page.connection(socket.over ? program.state : connected ? "" : "lost");
  put(main, page.node);
  main.scrollTop = 0;
}
addEventListener("hashchange", route);

/** Says how the program and the connection are. */
function state() {
  const words = /** @type {Record<string, [string, string]>} */ ({
    running: ["running", "good"], ended: ["script ended", ""], gone: ["program gone", "bad"], left: ["inspect ended", "warn"],
  });
  const [text, kind] = !connected && !socket.over ? ["no connection", "warn"] : words[program.state] ?? [program.state, ""];
  const pill = byId("state");
  pill.textContent = text;
  pill.className = `pill ${kind}`;
  put(byId("program"), program.name ? format.visible(program.name) : "");
  byId("program").title = program.python ? `${program.python}, process ${program.pid}` : "";
  const notice = byId("notice");
  notice.hidden = !socket.over;
  put(notice, program.state === "gone" ? `The program has ended${program.detail ? `: ${format.visible(program.detail)}` : ""}. What is shown is how it was last.`
    : `${format.visible(program.detail || "ndbridge inspect has ended")}. What is shown is how it was last.`);
  if (!connected || socket.over) tree.looked([]); // nothing is looked at any more
  document.body.dataset.state = connected || socket.over ? program.state : "lost";
  page?.connection(socket.over ? program.state : connected ? "" : "lost");
  if (!connected || socket.over) put(byId("budget"));
  if (!page && program.name) document.title = `${program.name} – ndbridge inspect`;
}

/** @param {any} b */
function budget(b) {
  const meter = el("span", { class: "meter", role: "img", "aria-label": `${format.percent(b.share)} of ${format.percent(b.limit)}` }, el("span", {}));
  /** @type {HTMLElement} */ (meter.firstChild).style.width = `${Math.min(100 * b.share / b.limit, 100)}%`;
  put(byId("budget"), meter, `reading takes ${format.percent(b.share)} of a core, ${b.share > b.limit ? "more than" : "of"} ${format.percent(b.limit)}${b.share > b.limit ? ", for what was asked for" : ""}`,
    el("span", { class: "muted" }, ` · ${b.reads.toFixed(0)} reads/s · ${b.pages} page${b.pages === 1 ? "" : "s"}${b.waiting ? " · slowed down" : ""}`));
}

const themes = ["system", "dark", "light"];

/** @param {string} theme */
function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  byId("theme").setAttribute("aria-label", `Theme: ${theme}`);
  redrawAll();
  if (page instanceof ArrayPage) page.picture.draw();
}
byId("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(localStorage.getItem("theme") ?? "system") + 1) % themes.length]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(localStorage.getItem("theme") ?? "system"));
setTheme(localStorage.getItem("theme") ?? "system");

/** @param {boolean} open */
function side(open) {
  document.body.classList.toggle("side-open", open);
  byId("menu").setAttribute("aria-expanded", String(open));
}
byId("menu").addEventListener("click", () => side(!document.body.classList.contains("side-open")));

const keys = [
  ["/", "search for a name, or for those of a pattern such as model.*.weight"], ["↑ ↓ ← →, Enter", "move in the tree, and choose"], ["Esc", "all numbers over time"], ["z", "to the picture: arrows move, + − zoom, 0 all"],
  ["[ ]", "the index of the first axis that is not shown"], ["i", "heat map or image"], ["p, d", "pin, difference"], ["a", "alarms"], ["t", "dark, light, or as the system"], ["?", "these keys"],
];
const help = byId("help");
put(help, el("h2", { id: "help-title" }, "Keys"), el("dl", { class: "keys" }, ...keys.flatMap(([k, what]) => [el("dt", {}, el("kbd", {}, k)), el("dd", {}, what)])),
  el("form", { method: "dialog" }, el("button", {}, "Close")));
byId("help-open").addEventListener("click", () => help.showModal());
byId("alarms-open").addEventListener("click", () => alarms.open());

addEventListener("keydown", (e) => {
  const at = e.target;
  const typed = at instanceof HTMLInputElement && at.type !== "range" || at instanceof HTMLSelectElement; // what keys have a meaning for
  if (e.defaultPrevented || e.ctrlKey || e.altKey || e.metaKey || typed && e.key !== "Escape" || document.querySelector("dialog[open]")) return;
  switch (e.key) {
    case "/":
      side(true);
      byId("search").focus();
      byId("search").select();
      break;
    case "?": help.showModal(); break;
    case "a": alarms.open(); break;
    case "t": byId("theme").click(); break;
    case "Escape": location.hash = ""; break;
    default: if (!(page instanceof ArrayPage) || !page.key(e.key)) return;
  }
  e.preventDefault();
});
route();
