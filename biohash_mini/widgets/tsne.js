// The tSNE explorer: a slider of the activity, points that move from map to map, each with its image and neighbours.
import { button, calm, clock, h, ownKeys, put, say, stamps, unpack } from "./common.js";

// ---------------------------------------------------------------- the mathematics; a map is a list of points [x, y]

/** The points of a packed map, in [-1, 1]², y upwards. */
export function places(text) {
  const steps = new Int16Array(unpack(text).buffer);
  return Array.from({ length: steps.length / 2 }, (_, i) => [steps[2 * i] / 32767, steps[2 * i + 1] / 32767]);
}

/** The nearest other points of the i-th, nearest first. */
export function nearest(points, i, count) {
  const far = points.map(([x, y]) => Math.hypot(x - points[i][0], y - points[i][1]));
  const others = points.map((_, j) => j).filter((j) => j !== i);
  return others.sort((a, b) => far[a] - far[b]).slice(0, count);
}

/** How many of the nearest points have the label of the i-th. */
export function alike(points, labels, i, count) {
  return nearest(points, i, count).filter((j) => labels[j] === labels[i]).length;
}

/** The share of neighbours of one label if labels were given out at random. */
export function chance(labels) {
  const n = labels.length;
  const counts = [...new Set(labels)].map((c) => labels.filter((other) => other === c).length);
  return counts.reduce((sum, c) => sum + c * (c - 1), 0) / (n * (n - 1));
}

/** The points on their way from A to B, t from 0 to 1, gently at both ends. */
export function between(A, B, t) {
  const s = t * t * (3 - 2 * t);
  return A.map(([x, y], i) => [x + s * (B[i][0] - x), y + s * (B[i][1] - y)]);
}

/** The nearest point in a direction, within 45° of it, or the i-th itself if there is none. */
export function toward(points, i, [dx, dy]) {
  let [best, length] = [i, Infinity];
  points.forEach(([x, y], j) => {
    const [u, v] = [x - points[i][0], y - points[i][1]];
    const [along, aside] = [u * dx + v * dy, Math.abs(u * dy - v * dx)];
    if (along > 0 && aside <= along && along + aside < length) [best, length] = [j, along + aside];
  });
  return best;
}

// ---------------------------------------------------------------- the picture

const NEIGHBOURS = 10;
const SECONDS = 1.2; // of a move
const REST = 900; // milliseconds on a map while it plays
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const percent = (x, digits = 0) => `${Number((100 * x).toFixed(digits))}%`;

function render({ model, el }) {
  const live = typeof model.send === "function"; // with a kernel, any k can be asked for
  const get = (name) => model.get(name);
  const [labels, names, m] = [get("labels"), get("names"), get("n_units")];
  const carried = Object.keys(get("maps")).map(Number).sort((a, b) => a - b);
  const stops = live ? get("stops") : carried;
  const shows = stamps(get("sheet"), labels.length, get("columns"));
  const cache = {};
  const layout = (k) => (cache[k] ??= places(get("maps")[k]));
  const known = (k) => String(k) in get("maps");
  let [from, to, now, moment] = [[], [], [], 1]; // maps, and how far the move has come
  const chosen = new Set(); // classes that are shown; none means all
  let [playing, timer] = [false, 0];

  // ---- elements
  const lines = h("svg:g", { class: "bh-near" });
  const classes = names.map((_, c) => h("svg:g", { style: color(c) }));
  const marks = labels.map((c) => h("svg:text", { dy: "0.36em" }, names[c].slice(0, 1)));
  marks.forEach((mark, i) => classes[labels[i]].append(mark));
  const ring = h("svg:circle", { class: "bh-ring", r: 5 });
  const picture = h("svg:svg", { viewBox: "-106 -106 212 212", "aria-hidden": "true" });
  picture.append(lines, ...classes, ring);
  const label = "Map of the codes. Arrow keys go from point to point.";
  const keys = { tabindex: 0, role: "application", "aria-label": label, onkeydown: key };
  const map = h("div", { class: "bh-map", ...keys, onpointermove: point, onpointerdown: point }, picture);
  const entry = (name, c) => ({ style: color(c), "aria-label": `show class ${name}`, "aria-pressed": false });
  const legend = names.map((name, c) => button(name, () => pick(c), entry(name, c)));

  const range = { type: "range", name: "hash_length", min: 0, max: stops.length - 1, "aria-label": "units on, k" };
  const input = h("input", range);
  const value = h("b");
  const play = button("Play", () => toggle(!playing), { class: "bh-play" });
  const number = h("b", { class: "bh-number" });
  const [guess, curve] = [h("svg:line", { class: "bh-goal" }), h("svg:polyline", { class: "bh-line" })];
  const [here, ticks] = [h("svg:circle", { r: 5 }), h("svg:g")];
  const plot = h("svg:svg", { viewBox: "0 0 300 118", "aria-hidden": "true", class: "bh-curve" });
  plot.append(ticks, guess, curve, here);
  const [status, words] = ["bh-muted", ""].map((name) => h("p", { class: name, "aria-live": "polite" }));
  const [image, others] = [h("div", { class: "bh-large" }), h("div", { class: "bh-ten" })];
  const hint = "Hover over a point or tap it, or select the map and use the arrow keys. Each map starts from that of " +
    `the next larger k: points move only where new neighbours pull.${live ? " Python makes those in between." : ""}`;
  el.classList.add("bh", "bh-tsne");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-left" },
      map,
      h("div", { class: "bh-classes", role: "group", "aria-label": "classes" }, ...legend),
      h("p", { class: "bh-hint" }, hint)),
    h("div", { class: "bh-right" },
      h("div", { class: "bh-knob" },
        h("label", { class: "bh-slider" }, h("span", {}, "units on, k"), value, input), play),
      h("div", {}, h("div", { class: "bh-head" }, h("span", {}, "neighbour purity"), number), plot, status),
      h("div", { class: "bh-card" }, image, h("div", {}, words, others))),
  );

  // ---- drawing
  function color(c) {
    const [light, dark] = get("colors")[c % get("colors").length];
    return `--c:light-dark(${light},${dark})`;
  }
  const place = ([x, y]) => [100 * x, -100 * y];
  function draw() {
    now = moment < 1 ? between(from, to, moment) : to;
    now.forEach((at, i) => {
      const [x, y] = place(at);
      put(marks[i], { x: x.toFixed(2), y: y.toFixed(2) });
    });
    const [x, y] = place(now[get("item")]);
    put(ring, { cx: x, cy: y });
    nearest(to, get("item"), NEIGHBOURS).forEach((j, n) => {
      const [x2, y2] = place(now[j]);
      put(lines.children[n], { x1: x, y1: y, x2, y2, class: look(j) });
    });
  }
  const look = (j) => (labels[j] === labels[get("item")] ? "bh-same" : "bh-other");
  function drawItem() {
    const i = get("item");
    const near = nearest(to, i, NEIGHBOURS);
    const same = near.filter((j) => labels[j] === labels[i]).length;
    lines.replaceChildren(...near.map(() => h("svg:line")));
    image.replaceChildren(shows(i, { "aria-label": `the image of the point, a ${names[labels[i]]}` }));
    say(words, `This is a ${names[labels[i]]}. Of its ${near.length} nearest points ${same} are:`);
    const named = (j) => ({ title: names[labels[j]], "aria-label": `${names[labels[j]]}, image of a near point` });
    others.replaceChildren(...near.map((j) => shows(j, { class: look(j), ...named(j) })));
    draw();
  }
  function drawNumbers() {
    const k = get("hash_length");
    const ready = known(k);
    input.value = nearestStop(k);
    say(value, `${k} of ${m}, a = ${percent(k / m, 2)}`);
    put(input, { "aria-valuetext": `${k} of ${m} units, activity ${percent(k / m, 2)}` });
    const all = Object.entries(get("purity")).map(([j, p]) => [Number(j), p]).sort(([i], [j]) => i - j);
    const [low, high] = [Math.log(all[0][0]), Math.log(all.at(-1)[0])];
    const x = (j) => 48 + (236 * (Math.log(j) - low)) / (high - low || 1);
    const y = (p) => 94 - 84 * p;
    const level = chance(labels);
    curve.setAttribute("points", all.map(([j, p]) => `${x(j)},${y(p)}`).join(" "));
    put(guess, { x1: 36, x2: 296, y1: y(level), y2: y(level) });
    const text = (at, s, style) => h("svg:text", { ...at, class: style ?? "" }, s);
    const axis = carried.map((j) => text({ x: x(j), y: 110 }, j));
    for (const p of [0, 0.5, 1]) {
      axis.push(h("svg:line", { x1: 36, x2: 296, y1: y(p), y2: y(p) }));
      axis.push(text({ x: 31, y: y(p) + 4 }, percent(p), "bh-end"));
    }
    ticks.replaceChildren(...axis, text({ x: 296, y: y(level) - 4 }, `by chance ${percent(level)}`, "bh-end"));
    here.style.visibility = ready ? "" : "hidden";
    if (ready) put(here, { cx: x(k), cy: y(get("purity")[k]) });
    say(number, ready ? percent(get("purity")[k], 1) : "…");
    const meaning = `of a point's ${NEIGHBOURS} nearest in the plane, on average, have its class`;
    say(status, ready ? meaning : `torch reads the codes of k = ${k}, and their map is being made …`);
    say(play, playing ? "Pause" : "Play");
  }
  const nearestStop = (k) => stops.reduce((best, s, i) => (Math.abs(s - k) < Math.abs(stops[best] - k) ? i : best), 0);

  // ---- time
  let begin = 0;
  const time = clock(el, () => {
    moment = Math.min(1, (performance.now() - begin) / (1000 * SECONDS));
    draw();
    if (moment === 1 && playing) wait();
    return moment < 1;
  });
  function go() {
    drawNumbers();
    if (!known(get("hash_length"))) return; // until Python has made it
    [from, to] = [now, layout(get("hash_length"))];
    moment = calm() || !from.length ? 1 : 0;
    begin = performance.now();
    drawItem();
    if (moment < 1) time.start();
    else if (playing) wait();
  }
  function wait() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const next = carried.find((k) => k > get("hash_length"));
      if (!playing) return;
      if (next === undefined) toggle(false);
      else select(next);
    }, REST);
  }
  function toggle(on) {
    playing = on;
    clearTimeout(timer);
    if (on && get("hash_length") >= carried.at(-1)) select(carried[0]);
    else if (on) wait();
    drawNumbers();
  }

  // ---- what the reader does
  function select(k) {
    model.set("hash_length", k);
    model.save_changes();
  }
  input.addEventListener("input", () => {
    playing = false;
    select(stops[Number(input.value)]);
  });
  function show(i) {
    if (i === get("item")) return;
    model.set("item", i);
    model.save_changes();
  }
  function point(event) {
    const box = map.getBoundingClientRect();
    const [u, v] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    const visible = (i) => shown(labels[i]);
    const away = ([x, y]) => Math.hypot(x + 106 - 212 * u, y + 106 - 212 * v);
    const far = now.map((at, i) => (visible(i) ? away(place(at)) : Infinity));
    const best = far.indexOf(Math.min(...far));
    if (far[best] < (event.pointerType === "touch" ? 14 : 7)) show(best);
  }
  function key(event) {
    if (!(event.key in ARROWS)) return;
    event.preventDefault();
    show(toward(to, get("item"), ARROWS[event.key]));
  }
  const shown = (c) => !chosen.size || chosen.has(c);
  function pick(c) {
    if (!chosen.delete(c)) chosen.add(c);
    legend.forEach((entry, i) => put(entry, { "aria-pressed": chosen.has(i) }));
    classes.forEach((group, i) => group.classList.toggle("bh-faint", !shown(i)));
  }

  // ---- changes, from the reader or from Python
  model.on("change:hash_length", go);
  model.on("change:maps", () => known(get("hash_length")) && to !== layout(get("hash_length")) && go());
  model.on("change:item", drawItem);
  go();
  return () => (clearTimeout(timer), time.dispose());
}

export default { render };
