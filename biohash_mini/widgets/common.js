// What the widgets share: elements, controls bound to the model, line plots, and a clock that rests when unseen.

/** A new element; "svg:circle" makes an SVG one, a key that starts with "on" adds a listener. */
export function h(name, attributes = {}, ...children) {
  const node = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value != null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

/** Change attributes of an element. */
export function put(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}

/** Change a text only where it differs, so that screen readers speak once. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** A number as text, with a minus sign that is one, and without a negative zero. */
export function fixed(x, digits) {
  return Number.isFinite(x) ? x.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−") : "–";
}

/** A slider bound to a trait; log sliders move in equal ratios. limit(low, high) narrows it. */
export function slider(model, trait, { label, min, max, step = 1, log = false, digits = 0 }) {
  const [to, from] = log ? [Math.log10, (x) => Number((10 ** x).toPrecision(3))] : [Number, Number];
  const input = h("input", { type: "range", name: trait, step: log ? 0.01 : step, "aria-label": label });
  const value = h("b");
  const show = () => {
    input.value = to(model.get(trait));
    say(value, model.get(trait).toFixed(digits));
    input.setAttribute("aria-valuetext", value.textContent);
  };
  const limit = (low, high) => {
    put(input, { min: to(low), max: to(high) });
    show();
  };
  input.addEventListener("input", () => {
    model.set(trait, from(Number(input.value)));
    model.save_changes();
  });
  model.on(`change:${trait}`, show);
  limit(min, max);
  return { el: h("label", { class: "bh-slider" }, h("span", {}, label), value, input), limit };
}

export function button(text, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

/** A line plot of a growing series, with a dashed line at the value it should reach; floor names the lowest. */
export function trace(label, digits, floor = "") {
  const [now, top, bottom] = [h("b"), h("span", { class: "bh-top" }), h("span", { class: "bh-bottom" })];
  const line = h("svg:polyline", { class: "bh-line" });
  const goal = h("svg:line", { class: "bh-goal", x1: 0, x2: 300 });
  const plot = h("svg:svg", { viewBox: "0 0 300 80", preserveAspectRatio: "none", "aria-hidden": "true" }, goal, line);
  const head = h("div", { class: "bh-head" }, h("span", {}, label), now);
  const el = h("div", { class: "bh-trace" }, head, plot, top, bottom);
  let [values, every, seen] = [[], 1, 0];
  return {
    el,
    clear: () => ([values, every, seen] = [[], 1, 0]),
    push(value) {
      if (seen++ % every === 0) values.push(value);
      if (values.length > 600) [values, every] = [values.filter((_, i) => i % 2 === 0), 2 * every]; // stays small
    },
    draw(current, target) {
      const all = [...values, current, target].filter(Number.isFinite);
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const x = (i) => (300 * i) / Math.max(values.length, 20);
      const y = (v) => (Number.isFinite(v) ? 60 - (42 * (v - low)) / (high - low || 1) : -9);
      const places = [...values, current].map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(2)}`);
      line.setAttribute("points", places.join(" "));
      put(goal, { y1: y(target), y2: y(target) });
      say(now, fixed(current, digits));
      say(top, fixed(high, digits));
      say(bottom, floor + fixed(low, digits));
    },
  };
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Call tick about sixty times a second until it returns false, but only while el can be seen. */
export function clock(el, tick) {
  let [wanted, visible, frame, last] = [false, false, 0, 0];
  const schedule = () => {
    if (wanted && visible && !frame) frame = requestAnimationFrame(run);
  };
  const run = (time) => {
    frame = 0;
    if (time - last > 14) {
      last = time;
      wanted = tick() !== false && wanted;
    }
    schedule();
  };
  const observer = new IntersectionObserver((entries) => {
    visible = entries.at(-1).isIntersecting;
    schedule();
  });
  observer.observe(el);
  const stop = () => {
    wanted = false;
    cancelAnimationFrame(frame); // a frame that is already asked for would tick once more
    frame = 0;
  };
  return {
    start: () => ((wanted = true), schedule()),
    stop,
    dispose: () => (observer.disconnect(), stop()),
  };
}

/** The bytes of a base64 text. */
export const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Images in rows on one sheet, a data URI: stamp(i, attributes) is an element that shows the i-th. */
export function stamps(uri, count, columns) {
  const [head, body] = uri.split(",");
  const url = URL.createObjectURL(new Blob([unpack(body)], { type: head.slice(5, head.indexOf(";")) }));
  const rows = Math.ceil(count / columns);
  const at = (i, n) => (n > 1 ? (100 * i) / (n - 1) : 0);
  return (i, { class: name = "", ...attributes } = {}) => {
    const place = `${at(i % columns, columns)}% ${at(Math.floor(i / columns), rows)}%`;
    const style = `background:url(${url}) ${place}/${100 * columns}% ${100 * rows}%`;
    return h("span", { role: "img", class: `bh-stamp ${name}`, style, ...attributes });
  };
}

/** Let keys that are pressed in el act there: JupyterLab would take the arrow keys, even from sliders. */
export function ownKeys(el) {
  el.dataset.lmSuppressShortcuts = "true";
  el.addEventListener("keydown", (event) => event.stopPropagation());
}
