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
