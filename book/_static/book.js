/* Names for buttons that only show a sign, and words for readers who hear the quiz. */
addEventListener("load", () => {
  for (const button of document.querySelectorAll("button.copybtn")) button.setAttribute("aria-label", "Copy this code");
  for (const fold of document.querySelectorAll('summary[aria-label="Toggle hidden content"]')) {
    fold.removeAttribute("aria-label"); // it has words of its own
  }
});
document.addEventListener("change", ({ target }) => {
  const answer = target.closest?.(".quiz-answer");
  if (!answer) return;
  const group = answer.closest("[role=radiogroup]");
  group.querySelector(".quiz-said").textContent = answer.nextElementSibling.textContent;
});
/* Wide tables and formulas scroll in a frame of their own; a fade says on which side they go on. */
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const frames = ".report-scroll, .pst-scrollable-table-container, .cell_output > .text_html, mjx-container[display]";
  const mark = (frame) => {
    const room = frame.scrollWidth - frame.clientWidth;
    frame.classList.toggle("more-left", room > 2 && frame.scrollLeft > 2);
    frame.classList.toggle("more-right", room > 2 && frame.scrollLeft < room - 2);
    if (room > 2 && !frame.hasAttribute("tabindex")) frame.tabIndex = 0; // arrow keys scroll it too
  };
  const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
  for (const frame of document.querySelectorAll(`.bd-content :is(${frames})`)) {
    resized.observe(frame);
    frame.addEventListener("scroll", () => mark(frame), { passive: true });
  }
});
