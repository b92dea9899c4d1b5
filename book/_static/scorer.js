/* Search: chapters first, then the pages around them, the reference of the package and the log of the build last. */
const RANK = [[/^notebooks\//, 200], [/^book\/(api|status|references)$/, 0], [/^book\//, 100]];
var Scorer = {
  score: ([page, , , , score]) => score + (RANK.find(([pattern]) => pattern.test(page))?.[1] ?? 0),
  objNameMatch: 11, // these are Sphinx's own
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
