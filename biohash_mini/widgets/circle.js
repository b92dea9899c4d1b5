// The circle: data of density ∝ exp(-|φ| / σ), units that drift to the mean of what they win, codes of two points.
import { button, calm, clock, h, ownKeys, put, say, slider, trace } from "./common.js";

// ---------------------------------------------------------------- the mathematics; angles in radians

const TURN = 2 * Math.PI;
export const wrap = (t) => t - TURN * Math.floor((t + Math.PI) / TURN); // into [-π, π)

/** The density of the data, α exp(-|φ| / σ). */
export function density(phi, sigma) {
  return Math.exp(-Math.abs(wrap(phi)) / sigma) / (2 * sigma * -Math.expm1(-Math.PI / sigma));
}

/** [∫ρ cos, ∫ρ sin] from a to b: elementary on each half of the circle, so it is split at multiples of π. */
export function moment(a, b, sigma) {
  const scale = (density(0, sigma) * sigma) / (1 + sigma * sigma);
  const antiderivative = (t) => {
    const fade = scale * Math.exp(-t / sigma);
    return [fade * (sigma * Math.sin(t) - Math.cos(t)), -fade * (sigma * Math.cos(t) + Math.sin(t))];
  };
  const total = [0, 0];
  for (let from = a; from < b; ) {
    const to = Math.min(b, Math.PI * (Math.floor(from / Math.PI + 1e-12) + 1));
    const middle = (from + to) / 2;
    const shift = wrap(middle) - middle; // whole turns
    const [[c0, s0], [c1, s1]] = [from, to].map((t) => antiderivative(Math.abs(t + shift)));
    total[0] += Math.sign(wrap(middle)) * (c1 - c0);
    total[1] += s1 - s0;
    from = to;
  }
  return total;
}

/** Where the k nearest of the ascending units i, …, i + k - 1 give way to i + 1, …, i + k. */
export function borders(angles, k = 1) {
  const m = angles.length;
  return angles.map((phi, i) => (phi + angles[(i + k) % m] + (i + k < m ? 0 : TURN)) / 2);
}

/** For each of the ascending units the moment of the data nearest to it. */
function cells(angles, sigma) {
  const ends = borders(angles);
  return ends.map((end, i) => moment(i ? ends[i - 1] : ends.at(-1) - TURN, end, sigma));
}

/** E = -∫ρ max_μ cos(φ - φ_μ) dφ, equation 8. */
export function energy(angles, sigma) {
  const phi = angles.map(wrap).sort((a, b) => a - b);
  return cells(phi, sigma).reduce((E, [c, s], i) => E - c * Math.cos(phi[i]) - s * Math.sin(phi[i]), 0);
}

/** Each unit moves a fraction of its way to the mean direction of its data; the energy never rises. */
export function drift(angles, sigma, rate) {
  const phi = angles.map(wrap).sort((a, b) => a - b);
  return cells(phi, sigma).map(([c, s], i) => phi[i] + rate * wrap(Math.atan2(s, c) - phi[i]));
}

/** Equally spaced angles that mirror each other. */
export const even = (m) => Array.from({ length: m }, (_, i) => TURN * ((i + 0.5) / m - 0.5));

/** The angles of lowest energy: the fixed point of the drift from an even start. */
export function optimum(m, sigma) {
  let angles = even(m);
  for (let i = 0, move = 1; move > 1e-12 && i < 4000; i++) {
    const next = drift(angles, sigma, 1);
    move = Math.max(...next.map((phi, j) => Math.abs(phi - angles[j])));
    angles = next;
  }
  return angles;
}

/** The code of a point: 1 for the k units nearest to it. */
export function code(phi, angles, k) {
  const far = angles.map((a) => Math.abs(wrap(a - phi)));
  const on = angles.map((_, i) => i).sort((i, j) => far[i] - far[j] || i - j).slice(0, k);
  return angles.map((_, i) => Number(on.includes(i)));
}

export const hamming = (a, b) => a.reduce((sum, bit, i) => sum + Number(bit !== b[i]), 0);

// ---------------------------------------------------------------- the picture

const R = 84; // the circle; φ = 0 is on the right, angles grow against the clock
const at = (phi, r = R) => [r * Math.cos(phi), -r * Math.sin(phi)];
const line = (points) => points.map((p, i) => `${i ? "L" : "M"}${p.map((v) => v.toFixed(2))}`).join("");
const NAMES = ["A", "B"];

/** The data as a band around the circle, as thick as they are dense. */
function band(sigma) {
  const angles = Array.from({ length: 241 }, (_, i) => (TURN * (i - 120)) / 240);
  const outer = angles.map((phi) => at(phi, R + (28 * density(phi, sigma)) / density(0, sigma)));
  return `${line(outer)}Z${line(angles.map((phi) => at(phi)).reverse())}Z`;
}

/** The sector of all points that share the code of phi. */
function sector(phi, angles, k) {
  const ends = borders(angles, k).map((end) => wrap(end - phi));
  const low = Math.max(-Math.PI, ...ends.filter((end) => end <= 0));
  const high = Math.min(Math.PI, ...ends.filter((end) => end > 0));
  return `${line([[0, 0], ...Array.from({ length: 33 }, (_, i) => at(phi + low + ((high - low) * i) / 32))])}Z`;
}

/** For each unit the row, counted inwards, in which its number has room beside those of its neighbours. */
export function numberRows(angles) {
  const taken = []; // the angles of the numbers in each row
  return angles.map((phi) => {
    const free = (row) => (taken[row] ??= []).every((other) => Math.abs(wrap(phi - other)) * (R - 17 - 11 * row) > 11);
    const row = [0, 1, 2, 3, 4].find(free) ?? 5;
    (taken[row] ??= []).push(phi);
    return row;
  });
}

/** A curve from a point to a unit; the farther, the deeper it bends into the circle. */
function link(phi, unit) {
  const far = Math.abs(wrap(unit - phi));
  const bend = at(phi + wrap(unit - phi) / 2, R * (Math.cos(far / 2) - 0.35 * Math.min(far, 1)));
  return `M${at(phi)}Q${bend} ${at(unit)}`;
}

function render({ model, el }) {
  const live = typeof model.send === "function"; // with a kernel, Python computes the optimum
  const get = (name) => model.get(name);
  const degrees = (phi) => Math.round((phi * 180) / Math.PI);
  let angles = even(get("n_units"));

  // ---- elements
  const layer = (name) => h("svg:g", { class: name });
  const [sectors, rays, goals, links] = ["bh-sectors", "bh-rays", "bh-goals", "bh-links"].map(layer);
  const units = layer("bh-units");
  const data = h("svg:path", { class: "bh-density" });
  const rim = h("svg:circle", { r: R, class: "bh-rim" });
  const pins = NAMES.map((name, i) => {
    const parts = [
      h("svg:line", { x1: R, x2: R + 20 }),
      h("svg:circle", { cx: R + 24, r: 15, class: "bh-touch" }),
      h("svg:circle", { cx: R + 24, r: 9 }),
      h("svg:text", { dy: "0.35em" }, name),
    ];
    const label = `data point ${name}, angle in degrees`;
    const aria = { role: "slider", "aria-label": label, "aria-valuemin": -180, "aria-valuemax": 180 };
    const listeners = { onkeydown: (event) => key(event, i), onpointerdown: (event) => drag(event, i) };
    return h("svg:g", { class: `bh-pin bh-${name}`, tabindex: 0, ...aria, ...listeners }, ...parts);
  });
  const named = { role: "group", "aria-label": "The circle with its units and two data points" };
  const stage = h("svg:svg", { viewBox: "-126 -126 252 252", class: "bh-stage", ...named });
  stage.append(data, sectors, rays, rim, goals, links, units, ...pins);

  const fall = trace("energy E", 4, "lowest possible ");
  const [A, B, differ] = [...NAMES, ""].map((name) => h("div", { class: `bh-bits bh-${name}` }, h("b", {}, name)));
  const verdict = h("p", { class: "bh-verdict", "aria-live": "polite" });
  const width = slider(model, "sigma", { label: "width, σ", min: 0.1, max: 10, log: true, digits: 2 });
  const count = slider(model, "n_units", { label: "units, m", min: 2, max: 16 });
  const on = slider(model, "hash_length", { label: "units on, k", min: 1, max: get("n_units") - 1 });
  const random = () => Array.from({ length: get("n_units") }, () => TURN * Math.random() - Math.PI);
  const starts = [
    button("Scatter units", () => restart(random())),
    button("Spread evenly", () => restart(even(get("n_units")))),
  ];
  const hint = "Amber: the data. Ticks: the optimum. Drag A and B, or select one and use the arrow keys.";
  el.classList.add("bh", "bh-circle");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-left" }, stage, h("p", { class: "bh-hint" }, hint)),
    h("div", { class: "bh-right" },
      h("div", { class: "bh-sliders bh-pairs" }, width.el, count.el, on.el),
      h("div", { class: "bh-buttons" }, ...starts),
      fall.el,
      h("div", { class: "bh-codes" }, A, B, differ),
      verdict),
  );

  // ---- drawing
  function draw() {
    const [sigma, k, points, best] = ["sigma", "hash_length", "points", "optimum"].map(get);
    const codes = points.map((phi) => code(phi, angles, k));
    data.setAttribute("d", band(sigma));
    const areas = points.map((phi, i) => h("svg:path", { d: sector(phi, angles, k), class: `bh-${NAMES[i]}` }));
    sectors.replaceChildren(...areas);
    rays.replaceChildren(...borders(angles, k).map((phi) => h("svg:path", { d: line([[0, 0], at(phi)]) })));
    goals.replaceChildren(...best.map((phi) => h("svg:path", { d: line([at(phi, R - 10), at(phi, R + 10)]) })));
    links.replaceChildren(...points.flatMap((phi, i) => {
      const active = angles.filter((_, u) => codes[i][u]);
      return active.map((unit) => h("svg:path", { d: link(phi, unit), class: `bh-${NAMES[i]}` }));
    }));
    const rows = numberRows(angles);
    units.replaceChildren(...angles.map((phi, u) => {
      const [[cx, cy], [x, y]] = [at(phi), at(phi, R - 17 - 11 * rows[u])];
      const half = (i) => h("svg:path", { d: `M${cx},${cy - 7}a7,7 0 0 ${i} 0,14Z`, class: `bh-${NAMES[i]}` });
      const halves = [0, 1].filter((i) => codes[i][u]).map(half); // left for A, right for B
      return h("svg:g", {}, h("svg:circle", { cx, cy, r: 7 }), ...halves, h("svg:text", { x, y, dy: "0.35em" }, u + 1));
    }));
    pins.forEach((pin, i) => {
      const on = codes[i].flatMap((bit, u) => (bit ? [u + 1] : []));
      const [x, y] = at(points[i], R + 24);
      put(pin, { "aria-valuenow": degrees(points[i]), "aria-valuetext": `${degrees(points[i])}, units ${on} on` });
      const turn = { transform: `rotate(${(-180 * points[i]) / Math.PI})` };
      for (const part of [...pin.children].slice(0, 3)) put(part, turn);
      put(pin.lastChild, { x, y }); // the letter stays upright
    });
    const bits = (row, values, text) =>
      row.replaceChildren(row.firstChild, ...values.map((bit) => h("i", { class: bit ? "bh-on" : "" }, text(bit))));
    bits(A, codes[0], String);
    bits(B, codes[1], String);
    bits(differ, codes[0].map((bit, u) => bit !== codes[1][u]), () => "");
    say(verdict, `Hamming distance ${hamming(...codes)}, angle ${degrees(Math.abs(wrap(points[0] - points[1])))}°`);
    fall.draw(energy(angles, sigma), energy(best, sigma));
  }

  // ---- time
  function tick() {
    fall.push(energy(angles, get("sigma")));
    const before = angles;
    for (let i = 0; i < angles.length / 2; i++) angles = drift(angles, get("sigma"), 0.05); // many units settle slowly
    const moving = angles.some((phi, i) => Math.abs(phi - before[i]) > 2e-5);
    if (!moving) {
      model.set("angles", angles);
      model.save_changes();
    }
    return moving;
  }
  const time = clock(el, () => {
    const moving = tick();
    draw();
    return moving;
  });
  function restart(start = angles) {
    angles = start.map(wrap).sort((a, b) => a - b);
    fall.clear();
    if (calm()) for (let i = 0; i < 2000 && tick(); i++); // no motion: only where it ends
    else time.start();
    draw();
  }

  // ---- the two points
  function move(i, phi) {
    model.set("points", get("points").map((old, j) => (i === j ? wrap(phi) : old)));
    model.save_changes();
  }
  function drag(event, i) {
    const pin = event.currentTarget;
    const follow = (e) => {
      const box = stage.getBoundingClientRect();
      move(i, Math.atan2(box.top + box.height / 2 - e.clientY, e.clientX - box.left - box.width / 2));
    };
    pin.setPointerCapture(event.pointerId);
    pin.addEventListener("pointermove", follow);
    pin.addEventListener("lostpointercapture", () => pin.removeEventListener("pointermove", follow), { once: true });
    pin.focus();
    event.preventDefault();
  }
  const KEYS = { ArrowRight: -2, ArrowDown: -2, ArrowLeft: 2, ArrowUp: 2, PageDown: -15, PageUp: 15 };
  function key(event, i) {
    if (event.key in KEYS) move(i, ((degrees(get("points")[i]) + KEYS[event.key]) * Math.PI) / 180);
    else if (event.key === "Home") move(i, 0);
    else return;
    event.preventDefault();
  }

  // ---- changes, from the reader or from Python
  function changed() {
    const m = get("n_units");
    on.limit(1, m - 1);
    if (get("hash_length") >= m) model.set("hash_length", m - 1);
    if (live) model.save_changes();
    else model.set("optimum", optimum(m, get("sigma")));
    restart(angles.length === m ? angles : even(m));
  }
  for (const trait of ["sigma", "n_units"]) model.on(`change:${trait}`, changed);
  for (const trait of ["hash_length", "points", "optimum"]) model.on(`change:${trait}`, draw);
  restart();
  return time.dispose;
}

export default { render };
