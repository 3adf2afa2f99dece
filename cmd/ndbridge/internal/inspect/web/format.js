// Numbers as people read them.

/** @param {number | null | undefined} x */
export function number(x) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "NaN";
  const size = Math.abs(x);
  const whole = size < 1e6 ? x : Math.round(x); // no digit before the point is left out, or a number of many digits would pass for another one
  if (Number.isSafeInteger(whole)) return minus(whole.toLocaleString("en"));
  if (size < 1e-4 || size >= 1e6) return minus(x.toExponential(4).replace(/\.?0+e/, "e"));
  return minus(String(Number(x.toPrecision(6))));
}

/** @param {string} text */
function minus(text) {
  return text.replaceAll("-", "−");
}

/** @param {number} n */
export function count(n) {
  return n.toLocaleString("en");
}

/** @param {number} n */
export function bytes(n) {
  if (n < 1024) return `${n} B`;
  let unit = 0;
  while (n >= 1024 && unit < 5) {
    n /= 1024;
    unit++;
  }
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${"KMGTP"[unit - 1]}iB`;
}

/**
 * A share, such that little is not nothing and nearly all is not all.
 * @param {number} x
 */
export function percent(x) {
  if (x > 0 && x < 0.001) return "< 0.1 %";
  if (x < 1 && x > 0.999) return "> 99.9 %";
  return `${x < 0.1 || (x > 0.99 && x < 1) ? (100 * x).toFixed(1) : Math.round(100 * x)} %`;
}

/**
 * How fast something changes, in short.
 * @param {number} perSecond
 */
export function rate(perSecond) {
  return `${perSecond > 0 ? "+" : ""}${number(Number(perSecond.toPrecision(3)))}/s`;
}

/** @param {number[]} shape */
export function shape(shape) {
  return shape.length ? shape.join(" × ") : "scalar";
}

/**
 * A name with what no reader can see made visible, as the command line does it.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (c) => `\\u{${/** @type {number} */ (c.codePointAt(0)).toString(16)}}`);
}
