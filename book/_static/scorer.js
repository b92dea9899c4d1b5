/* Search: chapters first, then the pages around them, the reference of the package and the log of the build last;
   among chapters those first whose title has the words. */
const RANK = [[/^notebooks\//, 200], [/^book\/(api|status|references)$/, 0], [/^book\//, 100]];
const ASKED = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
const named = (title) => ASKED.filter((word) => title.toLowerCase().includes(word)).length / (ASKED.length || 1);
var Scorer = {
  score: ([page, title, , , score]) =>
    score + 50 * named(title) + (RANK.find(([pattern]) => pattern.test(page))?.[1] ?? 0),
  objNameMatch: 11, // these are Sphinx's own
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
