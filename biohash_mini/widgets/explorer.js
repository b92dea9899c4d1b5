// Results: paper and ours for each method and hash length, with the bounds over tie orders, and the numbers on demand.
import { button, clamp, fixed, h, ownKeys, put, say } from "./common.js";

// ---------------------------------------------------------------- the numbers

/** The cells of an experiment as objects. */
export function cellsOf(experiment, fields) {
  return experiment.cells.map((values) => {
    const cell = Object.fromEntries(values.map((value, i) => [fields[i], value]));
    return { ...cell, method: experiment.methods[cell.method].name, reason: experiment.reasons[cell.reason] ?? null };
  });
}

/** Round numbers from low to high, about `count` of them. */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** The range to draw: from zero to the highest bound, or with some air around the values alone. */
export function range(cells, bounds) {
  const known = cells.flatMap((c) => [c.paper, c.ours, ...(bounds ? [c.worst, c.best] : [])]).filter((v) => v != null);
  const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  const air = 0.06 * (high - low || Math.abs(high) || 1);
  return bounds ? [Math.min(0, low), high + air] : [low < 0 ? low - air : Math.max(0, low - air), high + air];
}

/** Where along the axis, from 0 to 1, a cell stands: a column for each hash length, the methods side by side in it. */
export function place(column, columns, row, rows) {
  return (column + 0.5 + 0.84 * ((row + 0.5) / rows - 0.5)) / columns;
}

const SIGNS = { reproduced: "✓", above: "↑", close: "~", deviates: "✗", "not like for like": "≠" };

/** A cell in words, as pairs of name and text. */
export function spell(cell) {
  const number = (x) => fixed(x ?? NaN, 2);
  const seeds = `${cell.seeds} ${cell.seeds === 1 ? "seed" : "seeds"}`;
  const ours = cell.sd == null ? number(cell.ours) : `${number(cell.ours)} ± ${number(cell.sd)}`;
  const gap = cell.ours - cell.paper;
  const rows = [["paper", cell.paper == null ? "not printed" : number(cell.paper)]];
  rows.push(["ours", cell.ours == null ? cell.verdict : `${ours} (${seeds})`]);
  if (cell.ours != null && cell.paper != null) rows.push(["ours − paper", `${gap > 0 ? "+" : ""}${number(gap)}`]);
  if (cell.best != null) rows.push(["tie orders", `${number(cell.worst)} to ${number(cell.best)}`]);
  return [...rows, ["verdict", `${SIGNS[cell.verdict] ?? ""} ${cell.verdict}`.trim()]];
}

// ---------------------------------------------------------------- the picture

const [HEIGHT, TOP, FOOT, LEFT] = [320, 8, 52, 40]; // of the chart, in pixels; the foot holds the missing and the axis
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const MOVES = { ...ARROWS, Home: [-99, 0], End: [99, 0] }; // across hash lengths, along methods
const diamond = (x, y, r) => `M${x},${y - r}l${r},${r}l${-r},${r}l${-r},${-r}z`;
const cross = (x, y, r) => `M${x - r},${y - r}l${2 * r},${2 * r}m0,${-2 * r}l${-2 * r},${2 * r}`;

function render({ model, el }) {
  const live = typeof model.send === "function"; // a kernel can read the results anew
  const get = (name) => model.get(name);
  const of = (name) => get("experiments").find((e) => e.name === name) ?? get("experiments")[0];
  let [experiment, cells, shown, spots, width] = [of(get("experiment")), [], [], [], 0];

  // ---- elements
  const option = (e) => h("option", { value: e.name }, e.title);
  const group = (label) => h("optgroup", { label }, ...get("experiments").filter((e) => e.group === label).map(option));
  const labels = [...new Set(get("experiments").map((e) => e.group))];
  const choose = { name: "experiment", "aria-label": "experiment", onchange: () => set({ experiment: choice.value }) };
  const choice = h("select", choose, ...labels.map(group));
  const whiskers = button("Tie bounds", () => set({ bounds: !get("bounds") }));
  const all = button("All methods", () => set({ hidden: get("hidden").length ? [] : names() }));
  const reload = button("Read results anew", () => model.send({ reload: true }));
  const metric = h("p", { class: "bh-muted" });
  const svg = h("svg:svg", { class: "bh-plot", "aria-hidden": "true" });
  const aria = { role: "application", tabindex: 0, "aria-label": "chart: arrow keys move from cell to cell" };
  const listen = { onkeydown: key, onfocus: () => get("cell").length || step(0, 0) };
  const chart = h("div", { class: "bh-chart", ...aria, ...listen });
  chart.append(svg);
  const toggles = h("div", { class: "bh-toggles", role: "group", "aria-label": "methods" });
  const reading = h("div", { class: "bh-wide bh-reading", role: "status" });
  const sign = (shape, text) =>
    h("span", {}, h("svg:svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, ...shape), text);
  const legend = h("p", { class: "bh-muted bh-legend" },
    sign([h("svg:path", { d: "M7,0V14", class: "bh-whisker" }), h("svg:circle", { cx: 7, cy: 7, r: 3.5 })],
      "ours, worst to best tie order"),
    sign([h("svg:path", { d: diamond(7, 7, 5), class: "bh-paper" })], "paper"),
    sign([h("svg:path", { d: cross(7, 7, 3), class: "bh-absent" })], "not measured"));
  el.classList.add("bh", "bh-results");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-wide bh-buttons" }, choice, whiskers, all, ...(live ? [reload] : [])),
    h("div", { class: "bh-wide" }, toggles),
    h("div", { class: "bh-wide" }, metric, chart, legend),
    reading,
  );

  // ---- drawing
  const names = () => experiment.methods.map((m) => m.name);
  function load() {
    experiment = of(get("experiment"));
    cells = cellsOf(experiment, get("fields"));
    choice.value = experiment.name;
    const toggle = ({ name, color }) => {
      const look = { style: `--c: ${color}`, onpointerenter: () => fade(name), onpointerleave: () => fade(null) };
      return button(name, () => flip(name), { class: "bh-toggle", ...look });
    };
    toggles.replaceChildren(...experiment.methods.map(toggle));
    say(metric, `${experiment.title}, ${experiment.metric}`);
    draw();
  }
  function draw() {
    const hidden = new Set(get("hidden"));
    [...toggles.children].forEach((node, i) => put(node, { "aria-pressed": !hidden.has(names()[i]) }));
    put(whiskers, { "aria-pressed": get("bounds") });
    say(all, hidden.size ? "All methods" : "No methods");
    const rows = experiment.methods.filter((m) => !hidden.has(m.name));
    shown = cells.filter((c) => !hidden.has(c.method));
    paint(rows);
    tell();
  }
  function paint(rows) {
    width = chart.clientWidth || 600;
    const [low, high] = range(shown, get("bounds"));
    const floor = HEIGHT - FOOT;
    const y = (v) => TOP + ((floor - TOP) * (high - v)) / (high - low);
    const x = (c) => {
      const column = experiment.lengths.indexOf(c.hash_length);
      const row = rows.findIndex((m) => m.name === c.method);
      return LEFT + (width - LEFT) * place(column, experiment.lengths.length, row, rows.length);
    };
    const r = clamp((0.3 * (width - LEFT)) / (experiment.lengths.length * (rows.length || 1)), 2.4, 5);
    const colors = Object.fromEntries(rows.map((m) => [m.name, m.color]));
    const column = (j) => LEFT + ((width - LEFT) * j) / experiment.lengths.length;
    const levels = ticks(low, high);
    const digits = clamp(Math.ceil(-Math.log10(levels[1] - levels[0] || 1)), 0, 3);
    const frame = [
      ...levels.flatMap((v) => [
        h("svg:path", { d: `M${LEFT},${y(v)}H${width}`, class: "bh-grid" }),
        h("svg:text", { x: LEFT - 6, y: y(v), dy: "0.35em", "text-anchor": "end" }, fixed(v, digits)),
      ]),
      ...experiment.lengths.flatMap((k, j) => [
        h("svg:path", { d: `M${column(j)},${TOP}V${HEIGHT - 22}`, class: "bh-grid" }),
        h("svg:text", { x: (column(j) + column(j + 1)) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, `k = ${k}`),
      ]),
    ];
    spots = shown.map((cell) => ({ cell, x: x(cell), marks: marks(cell, x(cell), y, r, floor) }));
    const layers = spots.map(({ cell, marks }) =>
      h("svg:g", { class: "bh-mark", style: `--c: ${colors[cell.method]}`, "data-method": cell.method }, ...marks));
    put(svg, { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
    svg.replaceChildren(...frame, h("svg:path", { class: "bh-guide" }), ...layers);
    const middle = { x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" };
    if (!rows.length) svg.append(h("svg:text", middle, "Choose a method above."));
  }
  function marks(cell, x, y, r, floor) {
    const found = [];
    if (get("bounds") && cell.best != null) {
      found.push(h("svg:path", { class: "bh-whisker", d: `M${x},${y(cell.worst)}V${y(cell.best)}` }));
    }
    if (cell.ours != null) found.push(h("svg:circle", { class: "bh-ours", cx: x, cy: y(cell.ours), r }));
    if (cell.paper != null) found.push(h("svg:path", { class: "bh-paper", d: diamond(x, y(cell.paper), r + 1.8) }));
    const small = Math.min(r, 3.5);
    const absent = cell.verdict === "missing";
    if (absent) found.push(h("svg:path", { class: "bh-absent", d: cross(x, floor + 15, small) }));
    return found;
  }
  function tell() {
    const [method, k] = get("cell");
    const spot = spots.find(({ cell }) => cell.method === method && cell.hash_length === k);
    const guide = svg.querySelector(".bh-guide");
    put(guide, { d: spot ? `M${spot.x},${TOP}V${HEIGHT - 22}` : "" });
    const hint = "Point at the chart, or select it and use the arrow keys, to read the numbers of a cell.";
    if (!spot) return reading.replaceChildren(h("p", { class: "bh-muted" }, hint));
    const rows = spell(spot.cell).map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)));
    rows.at(-1).lastChild.className = `bh-${spot.cell.verdict.replaceAll(" ", "-")}`;
    const { color } = experiment.methods.find((m) => m.name === method);
    const title = h("p", { class: "bh-verdict", style: `--c: ${color}` }, `${method}, k = ${k}`);
    const words = (spot.cell.reason ?? "").split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
    const reason = spot.cell.reason ? [h("p", { class: "bh-muted" }, ...words)] : [];
    reading.replaceChildren(title, h("dl", {}, ...rows), ...reason);
  }
  function fade(name) {
    for (const node of svg.querySelectorAll(".bh-mark")) {
      node.classList.toggle("bh-far", name !== null && node.dataset.method !== name);
    }
  }

  // ---- the reader
  function set(changes) {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  }
  function flip(name) {
    const hidden = get("hidden");
    set({ hidden: hidden.includes(name) ? hidden.filter((n) => n !== name) : [...hidden, name] });
  }
  function choosing(cell) {
    const [method, k] = get("cell");
    if (cell && (cell.method !== method || cell.hash_length !== k)) set({ cell: [cell.method, cell.hash_length] });
  }
  /** From the chosen cell to the next one, across hash lengths or methods. */
  function step(across, along) {
    const [method, k] = get("cell");
    const at = shown.find((c) => c.method === method && c.hash_length === k);
    if (!at) return choosing(shown[0]);
    const same = shown.filter((c) => (across ? c.method === method : c.hash_length === k));
    choosing(same[clamp(same.indexOf(at) + (across || along), 0, same.length - 1)]);
  }
  function key(event) {
    if (!(event.key in MOVES)) return;
    event.preventDefault();
    step(...MOVES[event.key]);
  }
  function point(event) {
    const at = event.clientX - chart.getBoundingClientRect().left;
    const near = (best, spot) => (!best || Math.abs(spot.x - at) < Math.abs(best.x - at) ? spot : best);
    choosing(spots.reduce(near, null)?.cell);
  }
  for (const event of ["pointermove", "pointerdown"]) chart.addEventListener(event, point);

  // ---- changes, from the reader or from Python
  model.on("change:experiment", () => {
    set({ hidden: [], cell: [] });
    load();
  });
  model.on("change:experiments", load);
  for (const trait of ["hidden", "bounds"]) model.on(`change:${trait}`, draw);
  model.on("change:cell", tell);
  const resized = new ResizeObserver(() => chart.clientWidth && chart.clientWidth !== width && draw());
  resized.observe(chart);
  load();
  return () => resized.disconnect();
}

export default { render };
