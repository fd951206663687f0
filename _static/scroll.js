// What scrolls sideways can be reached and scrolled from the keyboard, and says what it is; so does what unfolds the contents.
"use strict";
(() => {
  const BOXES = ".pst-scrollable-table-container, div.math, span.math.wide, .cell_output, .output, .cell_output pre, div.highlight pre, mjx-container, figure";
  const name = box => box.querySelector("figcaption, caption")?.textContent.trim().slice(0, 80)
    || (box.querySelector("table") ? "Table" : box.matches(".math, mjx-container") ? "Formula" : box.matches("div.highlight pre") ? "Code" : "Output");

  function widen() {                                    // by what is drawn: hidden text for screen readers is wider still
    document.querySelectorAll(".bd-article span.math").forEach(line => {
      const drawn = line.querySelector("mjx-container");
      line.classList.toggle("wide", Boolean(drawn) && drawn.getBoundingClientRect().width > line.clientWidth + 1);
    });
  }

  function reach() {
    widen();
    document.querySelectorAll(".bd-article").forEach(article => article.querySelectorAll(BOXES).forEach(box => {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
      if (scrolls && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.dataset.scrolls = "yes";
        if (!box.hasAttribute("role") && box.tagName !== "FIGURE") box.setAttribute("role", "group");
        if (!box.hasAttribute("aria-label")) box.setAttribute("aria-label", name(box));
      } else if (!scrolls && box.dataset.scrolls) {
        ["tabindex", "data-scrolls"].forEach(attribute => box.removeAttribute(attribute));
      }
    }));
  }

  document.addEventListener("keydown", event => {       // before the theme, whose arrows turn the page
    if (event.key.startsWith("Arrow") && event.target.dataset?.scrolls) event.stopImmediatePropagation();
  }, true);

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".bd-sidebar summary:not([aria-label])").forEach(summary => {
      const link = summary.closest("li")?.querySelector("a");
      summary.setAttribute("aria-label", `Sections of ${link ? link.textContent.trim() : "this part"}`);
    });
    reach();
    window.addEventListener("resize", reach);
    window.addEventListener("load", () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reach));
    document.addEventListener("toggle", reach, true);
  });
})();

// A list of references whose entries stand beside links is no list to a screen reader: its entries say what they are.
document.addEventListener("DOMContentLoaded", () =>
  document.querySelectorAll("div.citation-list[role=list]").forEach(list => list.removeAttribute("role")));
