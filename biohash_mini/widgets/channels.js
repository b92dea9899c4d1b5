// The channel explorer: how many filters may speak at each position of a digit, and what its code then retrieves.
import { button, fixed, h, ownKeys, put, say, stamps, unpack } from "./common.js";

// ---------------------------------------------------------------- the mathematics

/** A map of bytes in which only those speak that fewer than so many filters surpass at their position. */
export const inhibit = (strength, rank, winners) => Array.from(strength, (a, s) => (rank[s] < winners ? a : 0));

// ---------------------------------------------------------------- the picture

const percent = (x) => `${fixed(100 * x, 0)}%`;

/** Draw bytes as ink on white, row by row. */
function ink(canvas, bytes) {
  const picture = new ImageData(canvas.width, canvas.height);
  bytes.forEach((byte, i) => picture.data.set([255 - byte, 255 - byte, 255 - byte, 255], 4 * i));
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const [levels, labels, wanted, top] = ["levels", "database_labels", "query_labels", "top"].map(get);
  const [side, total, { count }] = ["side", "n_filters", "maps"].map(get);
  const [strength, rank, filters] = ["strength", "rank", "filters"].map((name) => unpack(get("maps")[name]));
  const queries = stamps(get("queries"), wanted.length, wanted.length);
  const found = stamps(get("database"), labels.length, get("columns"));
  const size = Math.round(Math.sqrt(filters.length / count));
  const change = (traits) => {
    for (const [name, value] of Object.entries(traits)) model.set(name, value);
    model.save_changes();
  };

  // ---- elements
  const digit = h("div", { class: "bh-digit" });
  const choices = wanted.map((c, i) => button("", () => change({ query: i }), { "aria-label": `a ${c}`, title: `a ${c}` }));
  choices.forEach((choice, i) => choice.append(queries(i, { "aria-hidden": "true" })));
  const label = "channels that may speak at a position";
  const ends = { min: 0, max: levels.length - 1, step: 1 };
  const move = { oninput: (event) => change({ winners: levels[Number(event.target.value)] }) };
  const [stops, amount] = [h("input", { type: "range", name: "winners", "aria-label": label, ...ends, ...move }), h("b")];
  const maps = Array.from({ length: count }, (_, f) => {
    const map = h("canvas", { width: side, height: side, role: "img" });
    const filter = h("canvas", { width: size, height: size, "aria-hidden": "true" });
    ink(filter, filters.subarray(f * size * size, (f + 1) * size * size));
    return { map, el: h("div", {}, map, filter) };
  });
  const [verdict, share, strip] = [h("b", { "aria-live": "polite" }), h("span"), h("div", { class: "bh-strip" })];
  const mean = h("p", { class: "bh-mean" });
  el.classList.add("bh", "bh-channels");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-left" },
      digit,
      h("div", { class: "bh-choices", role: "group", "aria-label": "digit" }, ...choices),
      h("label", { class: "bh-slider" }, h("span", {}, label), amount, stops)),
    h("div", { class: "bh-right" },
      h("div", {},
        h("div", { class: "bh-head" }, h("b", {}, `Maps of ${count} filters`), share),
        h("div", { class: "bh-maps" }, ...maps.map((part) => part.el))),
      h("div", {}, h("div", { class: "bh-head" }, h("b", {}, "Nearest digits by code"), verdict), strip),
      mean,
      h("p", { class: "bh-hint" }, "In the corner of a map is its filter. A solid border marks the right digit. " +
        "Each stop of the slider has its own hash layer.")),
  );

  // ---- drawing
  function draw() {
    const [query, winners] = ["query", "winners"].map(get);
    const level = levels.indexOf(winners);
    digit.replaceChildren(queries(query, { "aria-label": `the query, a ${wanted[query]}` }));
    choices.forEach((choice, i) => put(choice, { "aria-pressed": i === query }));
    stops.value = level;
    say(amount, `${winners} of ${total}`);
    put(stops, { "aria-valuetext": amount.textContent });
    maps.forEach(({ map }, f) => {
      const from = (query * count + f) * side * side;
      const part = [strength, rank].map((bytes) => bytes.subarray(from, from + side * side));
      const bytes = inhibit(...part, winners);
      ink(map, bytes);
      put(map, { "aria-label": `filter ${f + 1} speaks at ${bytes.filter(Boolean).length} of ${side * side} positions` });
    });
    const items = get("answers")[level][query];
    strip.replaceChildren(...items.map((i) => {
      const right = labels[i] === wanted[query];
      return found(i, { class: right ? "bh-same" : "bh-other", title: `a ${labels[i]}`, "aria-label": `a ${labels[i]}` });
    }));
    say(share, `${percent(get("features_on")[level][query])} of the pooled features are on`);
    say(verdict, `${items.filter((i) => labels[i] === wanted[query]).length} of ${top} right`);
    const { right, on } = get("means")[level];
    say(mean, `All ${get("n_queries")} queries with ${winners} of ${total} channels: ` +
      `${fixed(right, 1)} of ${top} right on average, ${percent(on)} of the features on.`);
  }
  for (const trait of ["query", "winners"]) model.on(`change:${trait}`, draw);
  draw();
}

export default { render };
