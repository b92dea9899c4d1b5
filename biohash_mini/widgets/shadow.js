// The shadow playground: a shadow on a photograph, what it does to two codes, and what they retrieve.
import { button, clamp, fixed, h, ownKeys, put, say, slider, stamps, unpack } from "./common.js";

// ---------------------------------------------------------------- the mathematics; a code is a list of units

/** The first row in the shade. */
export const firstDark = (area, height) => Math.round((1 - area) * height);

/** The overlaps of every unit with an image in the shade from a row on, given those with its rows and with the mean. */
export function overlaps(rows, mean, strength, first) {
  const m = mean.length;
  return Array.from(mean, (b, u) => {
    let sum = -b;
    for (let y = 0; y < rows.length / m; y++) sum += (y < first ? 1 : strength) * rows[y * m + u];
    return sum;
  });
}

/** The k largest, ascending; of equal ones those with the lower number. */
export function winners(S, k) {
  const order = S.map((_, u) => u).sort((u, v) => S[v] - S[u] || u - v);
  return order.slice(0, k).sort((u, v) => u - v);
}

/** The first answers, [item, units shared], most shared first and ties by item; codes holds k units for each item. */
export function nearest(code, codes, top) {
  const [on, k] = [new Set(code), code.length];
  const shared = Array.from({ length: codes.length / k }, (_, i) => [i, 0]);
  codes.forEach((unit, at) => (shared[Math.floor(at / k)][1] += Number(on.has(unit))));
  return shared.sort(([i, a], [j, b]) => b - a || i - j).slice(0, top);
}

/** What became of the units of a code. */
export function compare(before, after) {
  return {
    kept: before.filter((u) => after.includes(u)),
    lost: before.filter((u) => !after.includes(u)),
    fresh: after.filter((u) => !before.includes(u)),
  };
}

/** The tables of a page as numbers: reader(query, strength, first) gives a code. */
export function reader({ rows, mean, grid }, { strengths, height, m, k }) {
  if (grid) {
    const codes = unpack(grid);
    return (query, strength, first) => {
      const far = strengths.map((s) => Math.abs(s - strength));
      const at = ((query * strengths.length + far.indexOf(Math.min(...far))) * (height + 1) + first) * k;
      return [...codes.subarray(at, at + k)];
    };
  }
  const [S, b] = [rows, mean].map((text) => new Int16Array(unpack(text).buffer));
  const size = height * m;
  const rowsOf = (query) => S.subarray(query * size, (query + 1) * size);
  return (query, strength, first) => winners(overlaps(rowsOf(query), b, strength, first), k);
}

// ---------------------------------------------------------------- the picture

const WORDS = { kept: "kept", lost: "lost", fresh: "new" };

function render({ model, el }) {
  const live = typeof model.send === "function"; // with a kernel, torch hashes the image
  const get = (name) => model.get(name);
  const [names, wanted, labels, top] = ["names", "query_labels", "database_labels", "top"].map(get);
  const [k, m, height] = ["hash_length", "n_units", "height"].map(get);
  const about = { strengths: get("strengths"), height, m, k };
  const queries = stamps(get("queries"), wanted.length, wanted.length);
  const found = stamps(get("database"), labels.length, get("columns"));

  // ---- elements: the image
  const shade = h("div", { class: "bh-shade" });
  const edge = { title: "Drag the edge of the shadow", onpointerdown: drag };
  const photo = h("div", { class: "bh-photo", ...edge });
  const titles = wanted.map((c) => ({ "aria-label": names[c], title: names[c] }));
  const choices = wanted.map((_, i) => button("", () => change({ query: i }), titles[i]));
  choices.forEach((choice, i) => choice.append(queries(i, { "aria-hidden": "true" })));
  const fine = live ? { step: 0.01, digits: 2 } : { step: 0.1, digits: 1 };
  const sliders = [
    slider(model, "strength", { label: "light in the shade", min: 0.1, max: 1, ...fine }),
    slider(model, "area", { label: "area in the shade", min: 0, max: 1, step: 0.01, digits: 2 }),
  ];
  const buttons = [
    button("The paper's shadow", () => change({ strength: 0.3, area: 0.8 })),
    button("No shadow", () => change({ area: 0 })),
  ];

  // ---- elements: for each hash its code and its answers
  const panels = Object.entries(get("tables")).map(([name, table]) => {
    const cells = Array.from({ length: m }, () => h("i"));
    const code = h("div", { class: "bh-units-on", role: "img" }, ...cells);
    const verdict = h("b", { "aria-live": "polite" });
    const rows = ["light", "shade"].map((where) => {
      const [count, images] = [h("span"), h("div", { class: "bh-strip" })];
      const title = h("div", { class: "bh-head bh-muted" }, h("span", {}, `found in the ${where}`), count);
      return { count, images, el: h("div", {}, title, images) };
    });
    const head = h("div", { class: "bh-head" }, h("b", {}, name), verdict);
    const { kept, light, shade: dark } = get("means")[name];
    const mean = h("p", { class: "bh-mean" },
      `All ${get("n_queries")} queries, paper's shadow: ${fixed(kept, 1)} of ${k} units kept, ` +
        `${fixed(light, 1)} right in the light, ${fixed(dark, 1)} in the shade.`);
    const section = h("section", { "aria-label": name }, head, code, ...rows.map((row) => row.el), mean);
    return { name, cells, code, verdict, rows, el: section, read: reader(table, about), codes: unpack(table.database) };
  });
  const entry = ([kind, word]) => h("span", {}, h("i", { class: `bh-${kind}` }), ` unit ${word}`);
  const legend = Object.entries(WORDS).map(entry);
  const here = "BioHash is computed on this page, from its overlap with each row of pixels; BioConvHash was computed " +
    `before, for ${about.strengths.length} strengths.`;
  const hint = `${live ? "torch hashes the image at every move." : here} Solid border: the class of the query. ` +
    `Searched are ${labels.length.toLocaleString("en")} images, equal distances in their order.`;
  el.classList.add("bh", "bh-shadow");
  ownKeys(el);
  el.replaceChildren(
    h("div", { class: "bh-left" },
      photo,
      h("div", { class: "bh-choices", role: "group", "aria-label": "photograph" }, ...choices),
      h("div", { class: "bh-sliders" }, ...sliders.map((part) => part.el))),
    h("div", { class: "bh-right" },
      ...panels.map((panel) => panel.el),
      h("div", { class: "bh-buttons" }, ...buttons, h("span", { class: "bh-key bh-muted" }, ...legend))),
    h("p", { class: "bh-hint" }, hint),
  );

  // ---- drawing
  function drawPhoto() {
    const i = get("query");
    photo.replaceChildren(queries(i, { "aria-label": `the photograph of a ${names[wanted[i]]}` }), shade);
    choices.forEach((choice, j) => put(choice, { "aria-pressed": i === j }));
    draw();
  }
  function answers(row, code, codes) {
    const truth = wanted[get("query")];
    const items = nearest(code, codes, top);
    row.images.replaceChildren(...items.map(([i, shared]) => {
      const right = labels[i] === truth;
      const title = `${names[labels[i]]}, ${shared} of ${k} units shared`;
      return found(i, { class: right ? "bh-same" : "bh-other", title, "aria-label": title });
    }));
    say(row.count, `${items.filter(([i]) => labels[i] === truth).length} of ${top} right`);
  }
  function draw() {
    const [query, strength, area] = ["query", "strength", "area"].map(get);
    const first = firstDark(area, height);
    shade.style.top = `${(100 * first) / height}%`;
    shade.style.opacity = 1 - strength; // black over a pixel leaves this factor of it
    if (live && get("answer").query !== query) return; // until Python has looked at it
    for (const panel of panels) {
      const before = panel.read(query, 1, height);
      const after = live ? get("answer").codes[panel.name] : panel.read(query, strength, first);
      const parts = compare(before, after);
      panel.cells.forEach((cell) => (cell.className = ""));
      for (const kind in parts) parts[kind].forEach((u) => (panel.cells[u].className = `bh-${kind}`));
      const list = (kind) => `${WORDS[kind]} ${parts[kind].map((u) => u + 1).join(", ") || "none"}`;
      put(panel.code, { "aria-label": `units ${Object.keys(parts).map(list).join("; ")}` });
      say(panel.verdict, `${parts.kept.length} of ${k} units kept`);
      answers(panel.rows[0], before, panel.codes);
      answers(panel.rows[1], after, panel.codes);
    }
  }

  // ---- what the reader does
  function change(traits) {
    for (const [name, value] of Object.entries(traits)) model.set(name, value);
    model.save_changes();
  }
  function drag(event) {
    const follow = (e) => {
      const box = photo.getBoundingClientRect();
      change({ area: Number(clamp(1 - (e.clientY - box.top) / box.height, 0, 1).toFixed(2)) });
    };
    photo.setPointerCapture(event.pointerId);
    photo.addEventListener("pointermove", follow);
    const leave = () => photo.removeEventListener("pointermove", follow);
    photo.addEventListener("lostpointercapture", leave, { once: true });
    follow(event);
    event.preventDefault();
  }

  // ---- changes, from the reader or from Python
  model.on("change:query", drawPhoto);
  // Where there is no shadow to darken or to widen, what the reader moves brings the paper's back.
  model.on("change:strength", () => get("area") === 0 && get("strength") < 1 && change({ area: 0.8 }));
  model.on("change:area", () => get("strength") === 1 && get("area") > 0 && change({ strength: 0.3 }));
  for (const trait of ["strength", "area", "answer"]) model.on(`change:${trait}`, draw);
  drawPhoto();
}

export default { render };
