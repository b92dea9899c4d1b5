"""A self-test that needs no kernel: questions with answers to choose from, each with the reason why it is right or not.

A quiz is a directive whose content is YAML: a list of questions, each with ``question`` and ``answers``. An answer has
its words under ``right`` (one of them) or ``wrong``, and the reason under ``why``. All texts may hold mathematics.
"""

from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective


class Quiz(SphinxDirective):
    """The directive. Choosing an answer shows what is to be said about it (``book.css``, ``book.js``)."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return a group of radio buttons for each question."""
        box = nodes.container(classes=["quiz"])
        for entry in yaml.safe_load("\n".join(self.content)):
            box += self._question(entry)
        return [box]

    def _question(self, entry: dict[str, Any]) -> nodes.Node:
        name = f"quiz-{self.env.new_serialno('quiz') + 1}"
        if sum("right" in answer for answer in entry["answers"]) != 1:
            raise self.error(f"a question has one right answer: {entry['question']}")
        group = nodes.container(classes=["quiz-question"])
        group += _html(f'<div role="radiogroup" aria-labelledby="{name}">')
        group += nodes.paragraph("", "", *self._words(entry["question"]), ids=[name], classes=["quiz-ask"])
        for i, answer in enumerate(entry["answers"], start=1):
            kind = "right" if "right" in answer else "wrong"
            at = f"{name}-{i}"
            line = nodes.paragraph(classes=["quiz-answer"])
            line += _html(f'<input type="radio" name="{name}" id="{at}"><label for="{at}">')
            line += [*self._words(answer[kind]), _html("</label>")]
            verdict = nodes.strong("", "Yes. " if kind == "right" else "No. ")
            group += [line, nodes.paragraph("", "", verdict, *self._words(answer["why"]), classes=["quiz-why", kind])]
        group += _html('<p class="quiz-said" role="status"></p></div>')
        return group

    def _words(self, text: object) -> list[nodes.Node]:
        """Return a text with its mathematics and emphasis."""
        found, messages = self.parse_inline(str(text))
        return [*found, *messages]


class PrintedQuiz(SphinxPostTransform):
    """Without scripts the questions come with lettered answers, and which are right, and why, stands below them all."""

    default_priority = 5  # before what only a browser understands goes
    builders = ("latex", "epub")

    def run(self, **options: Any) -> None:
        """Replace every quiz by a list of its questions and a paragraph of answers."""
        for box in [n for n in self.document.findall(nodes.container) if "quiz" in n["classes"]]:
            asked, solved = _list("arabic"), nodes.paragraph("", "", nodes.strong("", "Answers."))
            for number, group in enumerate(box, start=1):
                question, *rest = (n for n in group if isinstance(n, nodes.paragraph))
                answers, reasons = rest[0::2], rest[1::2]
                right = next(i for i, reason in enumerate(reasons) if "right" in reason["classes"])
                words = ([n for n in answer if not isinstance(n, nodes.raw)] for answer in answers)
                choice = _list("loweralpha", *(nodes.list_item("", nodes.paragraph("", "", *w)) for w in words))
                asked += nodes.list_item("", nodes.paragraph("", "", *question.children), choice)
                solved += [nodes.Text(f" {number} ({'abcdefgh'[right]}): "), *reasons[right][1:]]  # without its "Yes."
            box.replace_self([asked, solved])


def _list(kind: str, *items: nodes.list_item) -> nodes.enumerated_list:
    return nodes.enumerated_list("", *items, enumtype=kind, prefix="", suffix=".")


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and its form on paper."""
    app.add_directive("quiz", Quiz)
    app.add_post_transform(PrintedQuiz)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
