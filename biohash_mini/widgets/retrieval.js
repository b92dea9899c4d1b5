// Retrieval: a query among real images, its nearest images under a hash, and the bits of the codes that agree.
import { button, clamp, fixed, h, ownKeys, put, say, unpack } from "./common.js";

// ---------------------------------------------------------------- the mathematics

/** A packed table as codes: for each item its k unit numbers (sparse, ascending) or its k bits (dense). */
export function read({ sparse, k, m, bits }) {
  const bytes = unpack(bits);
  const width = sparse ? Math.ceil(Math.log2(m)) : 1; // bits of a unit number
  const stride = Math.ceil((k * width) / 8);
  const number = (row, j) => {
    let value = 0;
    for (let b = j * width; b < (j + 1) * width; b++) {
      value = 2 * value + ((bytes[row * stride + (b >> 3)] >> (7 - (b & 7))) & 1);
    }
    return value;
  };
  const code = (row) => Array.from({ length: k }, (_, j) => number(row, j));
  return { sparse, k, m, rows: Array.from({ length: bytes.length / stride }, (_, row) => code(row)) };
}

/** Which entries of a's code b has too: units that are on in both, or bits that are equal. */
export function matches({ sparse, rows }, a, b) {
  const other = sparse ? new Set(rows[b]) : rows[b];
  return rows[a].map((value, j) => (sparse ? other.has(value) : other[j] === value));
}

/** The Hamming distance of two items; an unshared unit of a sparse code costs two bits, its own and the other's. */
export function hamming(codes, a, b) {
  const apart = matches(codes, a, b).filter((same) => !same).length;
  return codes.sparse ? 2 * apart : apart;
}

/** A number that depends on item and order in a random-looking way; order 0 keeps the items as they stand. */
export function shuffle(item, order) {
  if (!order) return item;
  let x = Math.imul(item + 1, 0x9e3779b1) ^ Math.imul(order, 0x85ebca6b);
  for (const turn of [16, 13, 16]) x = Math.imul(x ^ (x >>> turn), 0xc2b2ae35);
  return x >>> 0;
}

/** The items from `from` on, without the query, as {item, far}: nearest first, inside ties by `order`. */
export function ranking(codes, query, from, order = 0) {
  const found = [];
  for (let item = from; item < codes.rows.length; item++) {
    if (item !== query) found.push({ item, far: hamming(codes, query, item), key: shuffle(item, order) });
  }
  return found.sort((a, b) => a.far - b.far || a.key - b.key);
}

/** What the first `top` of a ranking are worth, as shown and on average over all orders inside the tie at their end. */
export function judge(ranked, labels, label, top) {
  const isRight = ({ item }) => labels[item] === label;
  const last = ranked[top - 1].far;
  const nearer = ranked.filter(({ far }) => far < last);
  const tied = ranked.filter(({ far }) => far === last);
  const places = top - nearer.length; // what the tie has left to fill
  const sure = nearer.filter(isRight).length;
  return {
    right: ranked.slice(0, top).filter(isRight).length,
    expected: (sure + (places * tied.filter(isRight).length) / tied.length) / top,
    last,
    tied: tied.length,
    places,
  };
}

// ---------------------------------------------------------------- the picture

const percent = (x) => `${fixed(100 * x, 0)}%`;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** One tab stop for a grid of buttons, arrow keys inside it; act(i) on every move. */
function roving(grid, buttons, act) {
  const stop = (i) => buttons.forEach((node, j) => put(node, { tabindex: i === j ? 0 : -1 }));
  grid.addEventListener("keydown", (event) => {
    const i = buttons.indexOf(event.target.closest("button"));
    if (i < 0 || !(event.key in STEPS || event.key === "Home" || event.key === "End")) return;
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const [x, y] = STEPS[event.key] ?? [0, 0];
    const next = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : i + x + columns * y;
    event.preventDefault();
    if (!(next in buttons)) return;
    stop(next);
    buttons[next].focus();
    act(next);
  });
  stop(0);
  return stop;
}

/** A bar with a cell for each entry of a code, 16 in a row; those that matched are filled. */
function bar(same) {
  const across = Math.min(same.length, 16);
  const cell = (i) => `M${(i % across) + 0.08},${Math.floor(i / across) + 0.12}h.84v.76h-.84z`;
  const draw = (wanted) => same.map((match, i) => (match === wanted ? cell(i) : "")).join("");
  const rows = Math.ceil(same.length / across);
  return h("svg:svg", { viewBox: `0 0 ${across} ${rows}`, preserveAspectRatio: "none", style: `height:${6 * rows}px` },
    h("svg:path", { d: draw(false) }),
    h("svg:path", { d: draw(true), class: "bh-same" }));
}

function render({ model, el }) {
  const live = typeof model.send === "function" && model.get("can_fit"); // a kernel can fit other hash lengths
  const get = (name) => model.get(name);
  const [labels, names, side, columns, top] = ["labels", "names", "side", "columns", "top"].map(get);
  const [first, tables] = [get("n_queries"), get("tables")]; // the item after the last query
  const nameOf = (item) => names[labels[item]];
  const known = new Map(); // codes that have been unpacked, by method and hash length
  let [codes, ranked, looked] = [null, [], 0];

  // ---- images: cut from the sheet as soon as it is decoded
  const sheet = new Image();
  const cut = (canvas, item) => {
    canvas.dataset.item = item;
    const [x, y] = [item % columns, Math.floor(item / columns)];
    if (sheet.complete) canvas.getContext("2d").drawImage(sheet, x * side, y * side, side, side, 0, 0, side, side);
  };
  const tile = (item) => {
    const canvas = h("canvas", { width: side, height: side, "aria-hidden": "true" });
    if (item != null) cut(canvas, item);
    return canvas;
  };

  // ---- elements
  const choose = { role: "radio", class: "bh-pick" };
  const picks = Array.from({ length: first }, (_, i) =>
    h("button", { type: "button", ...choose, onclick: () => pick(i) }, tile(i)));
  picks.forEach((node, i) => put(node, { "aria-label": `query ${i + 1}, ${nameOf(i)}` }));
  const queries = h("div", { class: "bh-queries", role: "radiogroup", "aria-label": "query" }, ...picks);
  const stopAt = roving(queries, picks, (i) => pick(i));

  const methods = Object.keys(tables).map((name) => h("option", {}, name));
  const named = { name: "method", "aria-label": "method", onchange: () => choice(method.value) };
  const method = h("select", named, ...methods);
  const length = h("input", { type: "range", name: "hash_length", min: 0, step: 1, "aria-label": "hash length k" });
  const lengthValue = h("b");
  const ties = button("Shuffle ties", () => set({ order: get("order") + 1 }));

  const answers = Array.from({ length: top }, (_, i) => {
    const parts = { sign: h("b"), image: tile(), bar: h("span", { class: "bh-bar" }), name: h("small") };
    const events = { onclick: () => look(i), onfocus: () => look(i), onpointerenter: () => look(i) };
    const node = h("button", { type: "button", ...events }, ...Object.values(parts));
    return { node, ...parts };
  });
  const nearest = h("div", { class: "bh-answers", role: "group", "aria-label": "nearest images" },
    ...answers.map(({ node }) => node));
  roving(nearest, answers.map(({ node }) => node), look);

  const [verdict, tied, mean] = [h("p", { class: "bh-verdict" }), h("p"), h("p", { class: "bh-muted" })];
  const [mine, theirs] = [tile(), tile()];
  const [mineName, theirsName] = [h("small"), h("small")];
  const agree = h("p", { class: "bh-agree" });
  const cells = h("div", { class: "bh-cells" });
  const instead = h("p", { class: "bh-muted" });
  const adopt = button("Use as query", () => pick(ranked[looked].item));
  el.classList.add("bh", "bh-retrieval");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-asked" },
      h("p", { class: "bh-muted" }, "Choose a query:"), queries,
      h("label", { class: "bh-field" }, h("span", {}, "method"), method),
      h("label", { class: "bh-slider" }, h("span", {}, "hash length k"), lengthValue, length),
      ties,
      mean),
    h("div", { class: "bh-found" },
      nearest,
      h("div", { role: "status" }, verdict, tied),
      h("div", { class: "bh-compare" },
        h("div", { class: "bh-two" }, h("div", {}, mine, mineName), h("div", {}, theirs, theirsName), adopt),
        h("div", { class: "bh-why" }, agree, cells, instead))),
  );

  // ---- drawing
  function search() {
    codes = current();
    el.classList.toggle("bh-waiting", !codes);
    const [query, k] = [get("query"), get("hash_length")];
    method.value = get("method");
    const at = options().indexOf(k);
    put(length, { max: options().length - 1, "aria-valuetext": k });
    if (at >= 0) length.value = at;
    say(lengthValue, String(k));
    picks.forEach((node, i) => put(node, { "aria-checked": i === query }));
    if (query < first) stopAt(query);
    if (!codes) return wait();
    ranked = ranking(codes, query, first, get("order"));
    const score = judge(ranked, labels, labels[query], top);
    say(verdict, `${score.right} of the first ${top} are right (${percent(score.right / top)})`);
    say(tied, score.tied === score.places
      ? `The list ends where its last distance does, ${score.last}: no tie is cut.`
      : `${score.tied} images are tied at the last distance, ${score.last}, for ${score.places} ` +
        `${score.places === 1 ? "place" : "places"}; over all their orders ${percent(score.expected)} are right.`);
    ties.disabled = !ranked.slice(0, top).some(({ far }, i) => far === ranked[i + 1].far);
    say(mean, `All ${first} queries above: ${percent(average())} right on average over tie orders, ` +
      `among ${labels.length - first} images.`);
    ranked.slice(0, top).forEach(show);
    look(Math.min(looked, top - 1));
  }
  function wait() {
    const { method: name, hash_length: k, trouble } = get("fresh");
    const failed = trouble && name === get("method") && k === get("hash_length");
    say(verdict, failed ? trouble : `torch is fitting ${get("method")} with k = ${get("hash_length")} …`);
    [tied, mean, agree, instead].forEach((node) => say(node, ""));
    cells.replaceChildren();
  }
  function show({ item, far }, i) {
    const { node, sign, image, bar: strip, name } = answers[i];
    const same = matches(codes, get("query"), item);
    const right = labels[item] === labels[get("query")];
    const words = `${count(same)} of ${codes.k} ${codes.sparse ? "units shared" : "bits equal"}`;
    cut(image, item);
    strip.replaceChildren(bar(same));
    say(sign, right ? "✓" : "✗");
    say(name, nameOf(item));
    put(node, {
      class: right ? "bh-right-answer" : "bh-wrong-answer",
      "aria-label": `answer ${i + 1}: ${nameOf(item)}, ${right ? "right" : "wrong"}, distance ${far}, ${words}`,
    });
  }
  function look(i) {
    looked = i;
    if (!codes) return;
    const [query, { item, far }] = [get("query"), ranked[i]];
    const same = matches(codes, query, item);
    answers.forEach(({ node }, j) => put(node, { "aria-pressed": i === j }));
    cut(mine, query);
    cut(theirs, item);
    say(mineName, `query: ${nameOf(query)}`);
    say(theirsName, `answer ${i + 1}: ${nameOf(item)}`);
    say(agree, codes.sparse
      ? `${count(same)} of ${codes.k} active units shared (of m = ${codes.m}): distance ${far}`
      : `${count(same)} of ${codes.k} bits equal: distance ${far}`);
    put(cells, { class: `bh-cells${codes.sparse ? " bh-units" : ""}` });
    cells.replaceChildren(...codes.rows[query].map((value, j) => h("i", { class: same[j] ? "bh-same" : "" }, value)));
    const own = new Set(codes.rows[query]);
    const others = codes.sparse ? codes.rows[item].filter((unit) => !own.has(unit)) : [];
    const rest = others.length ? `The answer has these on instead: ${others.join(", ")}.` : "";
    say(instead, codes.sparse ? rest : "The query's bits; filled where the answer's are equal.");
  }
  const count = (same) => same.filter(Boolean).length;
  function average() {
    const score = (query) => judge(ranking(codes, query, first), labels, labels[query], top).expected;
    codes.mean ??= picks.reduce((sum, _, query) => sum + score(query), 0) / first;
    return codes.mean;
  }

  // ---- codes: carried by the page, or fitted by torch
  function current() {
    const [name, k] = [get("method"), get("hash_length")];
    const key = `${name} ${k}`;
    if (!known.has(key)) {
      const fresh = get("fresh");
      const sent = fresh.method === name && fresh.hash_length === k && fresh.bits ? fresh : null;
      const table = tables[name]?.[k] ?? sent;
      if (table) known.set(key, read(table));
    }
    return known.get(key) ?? null;
  }
  /** The hash lengths to choose from. */
  function options(name = get("method")) {
    return live ? Array.from({ length: 64 }, (_, i) => i + 1) : Object.keys(tables[name]).map(Number);
  }
  function set(changes) {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  }
  function choice(name) {
    const [k, all] = [get("hash_length"), options(name)];
    const near = all.reduce((best, l) => (Math.abs(Math.log(l / k)) < Math.abs(Math.log(best / k)) ? l : best));
    set({ method: name, hash_length: near });
  }
  const pick = (item) => set({ query: item });
  const slid = () => options()[clamp(Number(length.value), 0, options().length - 1)];
  length.addEventListener("input", () => (live ? say(lengthValue, String(slid())) : set({ hash_length: slid() })));
  length.addEventListener("change", () => set({ hash_length: slid() })); // torch waits until the slider is let go

  // ---- changes, from the reader or from Python
  let due = false;
  const changed = () => {
    if (due) return;
    due = true;
    queueMicrotask(() => ((due = false), search())); // method and length change together
  };
  for (const trait of ["method", "hash_length", "query", "order", "fresh"]) model.on(`change:${trait}`, changed);
  sheet.addEventListener("load", () => {
    for (const canvas of el.querySelectorAll("canvas[data-item]")) cut(canvas, Number(canvas.dataset.item));
  });
  sheet.src = get("sheet");
  search();
}

export default { render };
