// The playground: units as particles in the plane, moved by the learning rule on a density that can be painted.
import { button, calm, clamp, clock, fixed, h, ownKeys, put, say, slider, trace } from "./common.js";

// ---------------------------------------------------------------- the mathematics; W is a list of units [x, y]

/** |w|^(p-2) w for every unit: what a plain dot product needs to give the p-inner product. */
export function duals(W, p) {
  return W.map((w) => w.map((v) => Math.sign(v) * Math.abs(v) ** (p - 1)));
}

/** ⟨W_μ, x⟩_μ for every unit, given the duals. */
export const overlaps = ([x, y], D) => D.map(([a, b]) => a * x + b * y);

export const norm = (w, p) => w.reduce((sum, v) => sum + Math.abs(v) ** p, 0) ** (1 / p);

/** The pairs [unit, gain] of equation 2: 1 at rank 1, -Δ at rank r. */
function gains(S, { antiRank, delta }) {
  if (!delta) return [[S.indexOf(Math.max(...S)), 1]];
  const order = S.map((_, i) => i).sort((i, j) => S[j] - S[i]);
  return [[order[0], 1], [order[antiRank - 1], -delta]];
}

/** One minibatch: W + ε ΔW / max|ΔW|, where ΔW sums g (x - ⟨W, x⟩ W), equation 1. */
export function step(W, X, lr, { p, antiRank, delta }) {
  const D = duals(W, p);
  const change = W.map(() => [0, 0]);
  for (const x of X) {
    const S = overlaps(x, D);
    for (const [u, g] of gains(S, { antiRank, delta })) {
      W[u].forEach((v, i) => (change[u][i] += g * (x[i] - S[u] * v)));
    }
  }
  const peak = Math.max(...change.flat().map(Math.abs)) || 1;
  return W.map((w, u) => w.map((v, i) => v + (lr * change[u][i]) / peak));
}

/** The energy of equation 3, averaged over points [x, y, weight]. */
export function energy(points, W, { p, antiRank, delta }) {
  const D = duals(W, p);
  const scale = W.map((w) => norm(w, p) ** (p - 1) || 1);
  let [sum, mass] = [0, 0];
  for (const [x, y, weight = 1] of points) {
    const S = overlaps([x, y], D);
    for (const [u, g] of gains(S, { antiRank, delta })) sum -= (weight * g * S[u]) / scale[u];
    mass += weight;
  }
  return sum / mass;
}

/** The rate of a step: it falls linearly to zero over a round. */
export const annealed = (lr, t, T) => lr * (1 - t / T);

/** The unit that wins each point. */
export function winners(points, W, p) {
  const D = duals(W, p);
  return points.map((x) => gains(overlaps(x, D), {})[0][0]);
}

/** Units in the given directions, all of the same p-norm. */
export function launch(directions, size, p) {
  return directions.map((t) => [Math.cos(t), Math.sin(t)]).map((w) => w.map((v) => (size * v) / norm(w, p)));
}

/** A density, one digit per cell of a square from its upper left corner, as points [x, y, weight]. */
export function cells(digits, extent) {
  const n = Math.sqrt(digits.length);
  const middle = (i) => (extent * (2 * i + 1 - n)) / n;
  const all = [...digits].map((d, i) => [middle(i % n), -middle(Math.floor(i / n)), Number(d)]);
  return all.filter(([, , weight]) => weight);
}

/** Draw n points: a cell by its weight, then a place in it. */
export function sample(points, n, width, random = Math.random) {
  let mass = 0;
  const upTo = points.map(([, , weight]) => (mass += weight));
  return Array.from({ length: n }, () => {
    const u = random() * mass;
    const [x, y] = points[upTo.findIndex((m) => u < m)];
    return [x + width * (random() - 0.5), y + width * (random() - 0.5)];
  });
}

// ---------------------------------------------------------------- the picture

const BATCH = 24;
const TRAIL = 30; // places of a unit that stay visible
const DIRECTIONS = Array.from({ length: 360 }, (_, i) => (i * Math.PI) / 180).map((t) => [Math.cos(t), Math.sin(t)]);
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const LABEL = "Map of the data. Arrow keys move the brush, space paints or erases.";
const HINT = "● unit   ⊗ dead   ┄ norm 1\nDraw on the map to add data.";
const path = (places) => `M${places.map((at) => at.map((v) => v.toFixed(2))).join("L")}`;

function render({ model, el }) {
  const live = typeof model.send === "function"; // with a kernel, torch takes the steps
  const get = (name) => model.get(name);
  const extent = get("extent");
  const side = Math.sqrt(get("density").length);
  const rule = () => ({ p: get("p"), delta: get("delta"), antiRank: Math.min(get("anti_rank"), get("n_units")) });
  const place = ([x, y]) => [x, -y].map((v) => clamp((100 * v) / extent, -97, 97)); // the map is 200 wide
  let [points, trails] = [[], [get("weights")]]; // the density as points, past weights
  let [playing, waiting, erasing, brush] = [false, false, false, [0, 0]];

  // ---- elements
  const ground = h("canvas", { width: side, height: side });
  const layer = (name) => h("svg:g", { class: name });
  const [rays, batch, tails, units] = ["bh-rays", "bh-batch", "bh-trails", "bh-particles"].map(layer);
  const sphere = h("svg:path", { class: "bh-sphere" });
  const cursor = h("svg:circle", { class: "bh-brush", r: 9 });
  const picture = h("svg:svg", { viewBox: "-100 -100 200 200", "aria-hidden": "true" });
  picture.append(rays, sphere, batch, tails, units, cursor);
  const keys = { tabindex: 0, role: "application", "aria-label": LABEL, onkeydown: key, onpointerdown: drag };
  const map = h("div", { class: "bh-map", ...keys }, ground, picture);

  const names = [...Object.keys(get("presets")), "blank", "painted"];
  const options = names.map((name) => h("option", { value: name }, name));
  const choose = { name: "preset", "aria-label": "data", onchange: () => load(choice.value) };
  const choice = h("select", choose, ...options);
  const tools = ["Paint", "Erase"].map((name, i) => button(name, () => take(i === 1)));
  const play = button("Play", () => toggle(!playing), { class: "bh-play" });
  const pausing = (action) => () => (toggle(false), action());
  const buttons = [
    play,
    button("Step", pausing(() => advance(1))),
    button("Reset", pausing(reset)),
    button("New start", pausing(shuffle)),
  ];
  const rank = slider(model, "anti_rank", { label: "anti-rank r", min: 2, max: 6 });
  const sliders = [
    slider(model, "n_units", { label: "units m", min: 2, max: 40 }),
    slider(model, "init_norm", { label: "initial norm", min: 0.1, max: 2, step: 0.05, digits: 2 }),
    slider(model, "p", { label: "norm order p", min: 1, max: 5, step: 0.1, digits: 1 }),
    slider(model, "learning_rate", { label: "rate ε", min: 0.005, max: 0.2, log: true, digits: 3 }),
    slider(model, "delta", { label: "anti-Hebb Δ", min: 0, max: 1, step: 0.05, digits: 2 }),
    rank,
  ];
  const traces = [trace("energy E", 3), trace("mean norm", 2)];
  const status = h("p", { class: "bh-verdict" });
  const elements = (parts) => parts.map((part) => part.el);
  el.classList.add("bh", "bh-playground");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-left" }, map, h("p", { class: "bh-hint" }, HINT)),
    h("div", { class: "bh-right" },
      h("div", { class: "bh-buttons" }, ...buttons),
      h("div", { class: "bh-buttons" }, choice, ...tools),
      h("div", { class: "bh-sliders bh-pairs" }, ...elements(sliders)),
      h("div", { class: "bh-pairs" }, ...elements(traces)),
      status),
  );

  // ---- drawing
  function drawGround() {
    points = cells(get("density"), extent);
    const image = new ImageData(side, side);
    const opacity = (digit) => Math.round(200 * (digit / 9) ** 0.8);
    [...get("density")].forEach((digit, i) => image.data.set([224, 142, 40, opacity(digit)], 4 * i));
    ground.getContext("2d").putImageData(image, 0, 0);
    choice.value = get("preset");
    draw();
  }
  function measures() {
    const [W, p] = [get("weights"), get("p")];
    return [energy(points, W, rule()), W.reduce((sum, w) => sum + norm(w, p) / W.length, 0)];
  }
  function particle(at, alive) {
    const [cx, cy] = place(at);
    const dot = h("svg:circle", { cx, cy, r: 3.6 });
    const cross = `M${cx - 1.6},${cy - 1.6}l3.2,3.2m0,-3.2l-3.2,3.2`;
    return alive ? dot : h("svg:g", { class: "bh-dead" }, dot, h("svg:path", { d: cross }));
  }
  function draw() {
    const [W, p, t, T] = ["weights", "p", "step", "n_steps"].map(get);
    const busy = new Set(winners(points, W, p));
    const owner = winners(DIRECTIONS, W, p); // the plane is shared out by direction
    const edges = DIRECTIONS.filter((_, i) => owner[i] !== owner.at(i - 1));
    rays.replaceChildren(...edges.map(([x, y]) => h("svg:path", { d: path([[0, 0], [142 * x, -142 * y]]) })));
    sphere.setAttribute("d", `${path(DIRECTIONS.map((w) => place(w.map((v) => v / norm(w, p)))))}Z`);
    batch.replaceChildren(...get("batch").map(place).map(([cx, cy]) => h("svg:circle", { cx, cy, r: 1.1 })));
    tails.replaceChildren(...W.map((_, u) => h("svg:path", { d: path(trails.map((old) => place(old[u]))) })));
    const order = W.map((_, u) => u).sort((u, v) => busy.has(u) - busy.has(v)); // the living above the dead
    units.replaceChildren(...order.map((u) => particle(W[u], busy.has(u))));
    const [cx, cy] = place(brush);
    put(cursor, { cx, cy });
    measures().forEach((value, i) => traces[i].draw(value, i ? 1 : undefined));
    const count = `step ${t} of ${T}${live ? " by torch" : ""}, ${W.length - busy.size} of ${W.length} units dead`;
    put(status, { "aria-live": playing ? "off" : "polite" });
    say(status, points.length ? count : "There are no data yet: draw some on the map.");
    say(play, playing ? "Pause" : "Play");
  }

  // ---- time
  function advance(count) {
    if (!points.length || waiting) return;
    rewind();
    if (live) {
      waiting = true;
      model.save_changes();
      model.send({ steps: count });
      return;
    }
    let [W, X, t] = [get("weights"), [], get("step")];
    for (; count > 0 && t < get("n_steps"); count--, t++) {
      X = sample(points, BATCH, (2 * extent) / side);
      W = step(W, X, annealed(get("learning_rate"), t, get("n_steps")), rule());
    }
    model.set("weights", W);
    model.set("batch", X);
    model.set("step", t);
  }
  function rewind() {
    if (get("step") >= get("n_steps")) model.set("step", 0); // another round from here
  }
  function stepped() {
    waiting = false;
    if (get("step") >= get("n_steps")) playing = false;
    trails = [...trails, get("weights")].slice(-TRAIL);
    measures().forEach((value, i) => traces[i].push(value));
    draw();
    if (playing && calm()) advance(20); // no motion: on to the end
  }
  const time = clock(el, () => {
    advance(live ? 2 : 1);
    return playing;
  });
  function toggle(on) {
    if (on) rewind();
    [playing, waiting] = [on && points.length > 0, false];
    if (!playing) time.stop();
    else if (calm()) advance(20);
    else time.start();
    draw();
  }
  function reset() {
    trails = [];
    model.set("weights", launch(get("start").slice(0, get("n_units")), get("init_norm"), get("p")));
    model.set("batch", []);
    model.set("step", 0);
    model.save_changes();
    [trails, waiting] = [[get("weights")], false];
    traces.forEach((plot) => plot.clear());
    measures().forEach((value, i) => traces[i].push(value));
    rank.limit(2, Math.min(6, get("n_units")));
    draw();
  }
  function shuffle() {
    model.set("start", get("start").map(() => Number((2 * Math.PI * Math.random()).toFixed(3))));
    reset();
  }

  // ---- data
  function load(name) {
    model.set("preset", name);
    if (name !== "painted") model.set("density", get("presets")[name] ?? "0".repeat(side * side));
    model.save_changes();
  }
  function take(eraser) {
    erasing = eraser;
    tools.forEach((tool, i) => put(tool, { "aria-pressed": erasing === (i === 1) }));
    map.style.touchAction = "none"; // from now on a finger draws here and does not scroll
  }
  function stroke() {
    const [column, row] = [brush[0], -brush[1]].map((v) => ((v / extent + 1) * side) / 2 - 0.5);
    const digits = [...get("density")].map((digit, i) => {
      const far = Math.hypot((i % side) - column, Math.floor(i / side) - row);
      return clamp(Number(digit) + (erasing ? -9 : 1) * Math.round(3 * Math.exp((-far * far) / 3)), 0, 9);
    });
    model.set("preset", "painted");
    model.set("density", digits.join(""));
  }
  function drag(event) {
    const follow = (e) => {
      const box = map.getBoundingClientRect();
      const [x, y] = [(e.clientX - box.left) / box.width, (e.clientY - box.top) / box.height];
      brush = [extent * (2 * x - 1), extent * (1 - 2 * y)];
      stroke();
    };
    const leave = () => {
      map.removeEventListener("pointermove", follow);
      model.save_changes();
    };
    map.setPointerCapture(event.pointerId);
    map.addEventListener("pointermove", follow);
    map.addEventListener("lostpointercapture", leave, { once: true });
    follow(event);
  }
  function key(event) {
    if (event.key in ARROWS) {
      brush = brush.map((v, i) => clamp(v + (ARROWS[event.key][i] * 2 * extent) / side, -extent, extent));
      draw();
    } else if (event.key === " ") {
      stroke();
      model.save_changes();
    } else return;
    event.preventDefault();
  }

  // ---- changes, from the reader or from Python
  model.on("change:density", drawGround);
  model.on("change:step", stepped);
  for (const trait of ["n_units", "init_norm"]) model.on(`change:${trait}`, reset);
  for (const trait of ["p", "delta", "anti_rank"]) model.on(`change:${trait}`, draw);
  take(false);
  map.style.touchAction = "";
  drawGround();
  reset();
  return time.dispose;
}

export default { render };
