// Ties: items at a few distances; reorder a tie and watch average precision move between its bounds.
import { button, fixed, h, ownKeys, put, say, slider } from "./common.js";

// ---------------------------------------------------------------- the mathematics

/** AP@R of a ranked list of 0 and 1, divided by the relevant items retrieved. */
export function ap(relevant, R = relevant.length) {
  let [hits, sum] = [0, 0];
  relevant.slice(0, R).forEach((hit, i) => hit && (sum += ++hits / (i + 1)));
  return hits ? sum / hits : 0;
}

/** All ways to put h ones into n places. */
export function patterns(n, h) {
  if (h < 0 || h > n) return [];
  if (n === 0) return [[]];
  return [...patterns(n - 1, h - 1).map((rest) => [1, ...rest]), ...patterns(n - 1, h).map((rest) => [0, ...rest])];
}

/** Expected, best and worst AP@R over all orders inside ties; every pattern of a tie is equally likely. */
export function bounds(distances, relevant, R) {
  let lists = [[]];
  for (const b of [...new Set(distances)].sort((x, y) => x - y)) {
    const tie = relevant.filter((_, i) => distances[i] === b);
    const inside = patterns(tie.length, tie.reduce((sum, hit) => sum + hit, 0));
    lists = lists.flatMap((list) => inside.map((more) => [...list, ...more]));
  }
  const scores = lists.map((list) => ap(list, R));
  const expected = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  return { expected, best: Math.max(...scores), worst: Math.min(...scores) };
}

/** The order with relevant items first (sign 1) or last (-1) in each tie. */
export function sorted(distances, relevant, sign) {
  const items = distances.map((_, i) => i);
  return items.sort((i, j) => distances[i] - distances[j] || sign * (relevant[j] - relevant[i]) || i - j);
}

// ---------------------------------------------------------------- the page

const letter = (item) => String.fromCharCode(97 + item);

function render({ model, el }) {
  const get = (name) => model.get(name);
  const set = (order) => {
    model.set("order", order);
    model.save_changes();
  };
  const row = h("div", { class: "bh-ranking", role: "group", "aria-label": "The ranking, nearest first" });
  const marks = ["worst", "expected", "best", "now"].map((name) => [name, h("i", { class: `bh-mark bh-${name}` })]);
  const ends = ["worst", "best"].map((name) => [name, h("span", { class: `bh-end bh-${name}` })]);
  const scale = h("div", { class: "bh-scale", "aria-hidden": "true" }, h("i", { class: "bh-range" }),
    ...marks.map(([, mark]) => mark), ...ends.map(([, end]) => end));
  const verdict = h("p", { class: "bh-verdict", "aria-live": "polite" });
  const cut = slider(model, "at", { label: "items that count, R", min: 1, max: get("distances").length });
  const shuffled = () => {
    const far = get("distances");
    const lot = far.map(() => Math.random());
    return far.map((_, i) => i).sort((i, j) => far[i] - far[j] || lot[i] - lot[j]);
  };
  const buttons = [
    button("Relevant first", () => set(sorted(get("distances"), get("relevant"), 1))),
    button("Relevant last", () => set(sorted(get("distances"), get("relevant"), -1))),
    button("Shuffle ties", () => set(shuffled())),
  ];
  const hint = "Click an item, or select it and use the arrow keys: it moves inside its tie.";
  el.classList.add("bh", "bh-ties");
  ownKeys(el);
  el.replaceChildren(row, h("p", { class: "bh-hint" }, hint), scale, verdict,
    h("div", { class: "bh-right" }, h("div", { class: "bh-buttons" }, ...buttons), cut.el));

  /** Move the item at a place by one; from the end of its tie it goes round to the other. */
  function move(place, by) {
    const [far, order] = [get("distances"), [...get("order")]];
    const tie = order.map((_, i) => i).filter((i) => far[order[i]] === far[order[place]]);
    const to = tie[(tie.indexOf(place) + by + tie.length) % tie.length];
    const [item] = order.splice(place, 1);
    order.splice(to, 0, item);
    set(order);
    row.querySelectorAll("button")[to].focus();
  }

  function draw() {
    const [far, relevant, order, R] = ["distances", "relevant", "order", "at"].map(get);
    const held = row.contains(document.activeElement);
    let hits = 0;
    const groups = new Map();
    order.forEach((item, place) => {
      hits += relevant[item];
      const counts = relevant[item] && place < R;
      const name = `item ${letter(item)}, rank ${place + 1}, ${relevant[item] ? "relevant" : "not relevant"}`;
      const kind = `${relevant[item] ? "bh-same" : "bh-other"}${place < R ? "" : " bh-cut"}`;
      const onkeydown = (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (by) (event.preventDefault(), move(place, by));
      };
      const listeners = { onclick: () => move(place, -1), onkeydown };
      const face = h("button", { type: "button", class: kind, "aria-label": name, ...listeners }, letter(item));
      const under = h("small", {}, counts ? fixed(hits / (place + 1), 2) : "\u00a0");
      if (!groups.has(far[item])) groups.set(far[item], []);
      groups.get(far[item]).push(h("span", { class: "bh-item" }, face, under));
    });
    row.replaceChildren(...[...groups].map(([b, items]) =>
      h("div", { class: "bh-tie" }, h("span", { class: "bh-muted" }, `distance ${b}`), h("div", {}, ...items))));
    if (held && !row.contains(document.activeElement)) row.querySelector("button").focus();
    const found = { ...bounds(far, relevant, R), now: ap(order.map((item) => relevant[item]), R) };
    const [low, high] = [found.worst, found.best];
    const x = (v) => 4 + (92 * (v - low)) / (high - low || 1);
    for (const [name, mark] of marks) put(mark, { style: `left:${x(found[name])}%` });
    for (const [name, end] of ends) say(end, `${name} ${fixed(found[name], 3)}`);
    say(verdict, `AP ${fixed(found.now, 3)} in this order; ${fixed(found.expected, 3)} is the mean over all orders.`);
  }
  for (const name of ["distances", "relevant", "order", "at"]) model.on(`change:${name}`, draw);
  draw();
}

export default { render };
