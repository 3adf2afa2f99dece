// Elements of the page. All text goes into text nodes: nothing that a program says is ever read as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element. Properties that begin with "on" are listeners; "class", "data-…", "aria-…" and "role" are attributes;
 * the others are set as they are.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "role" || key === "for" || /^(data|aria)-/.test(key)) node.setAttribute(key, String(value));
    else /** @type {any} */ (node)[key] = value;
  }
  put(node, ...children);
  return node;
}

/**
 * Gives an element other children.
 * @param {Element} node
 * @param {...Child} children
 */
export function put(node, ...children) {
  node.replaceChildren(...children.filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
}

/**
 * Gives an element other children, none of which has a listener: those that are as before stay, with what somebody has selected in them.
 * @param {Element} node
 * @param {...Child} children
 */
export function renew(node, ...children) {
  const next = [...el("div", {}, ...children).childNodes], before = [...node.childNodes];
  for (const [i, child] of next.entries()) {
    if (i >= before.length) node.append(child);
    else if (!before[i].isEqualNode(child)) before[i].replaceWith(child);
  }
  for (const child of before.slice(next.length)) child.remove();
}

/**
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * A select with its label.
 * @param {string} label
 * @param {[string, string][]} options values and what they are called
 * @param {string} value
 * @param {(value: string) => void} change
 */
export function choice(label, options, value, change) {
  const select = el("select", { "aria-label": label, onchange: () => change(select.value) },
    ...options.map(([v, text]) => el("option", { value: v, selected: v === value }, text)));
  return el("label", { class: "field" }, el("span", {}, label), select);
}

/**
 * A button that is on or off.
 * @param {string} label
 * @param {boolean} on
 * @param {(on: boolean) => void} change
 * @param {string} [title]
 */
export function toggle(label, on, change, title) {
  const button = el("button", { class: "toggle", "aria-pressed": on, title, onclick: () => {
    const next = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(next));
    change(next);
  } }, label);
  return button;
}

/**
 * The name of a variable of the style sheet as a colour.
 * @param {string} name
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
