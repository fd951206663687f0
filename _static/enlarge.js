// A click on a picture, or Enter where it has the focus, shows it as large as it was drawn; a click or Escape closes it.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const view = document.createElement("dialog");
  view.className = "enlarged";
  view.addEventListener("click", () => view.close());
  view.addEventListener("keydown", event => {           // the theme keeps Escape for its search field
    if (event.key === "Escape") view.close();
  });
  view.addEventListener("close", () => view.replaceChildren());
  document.body.append(view);
  document.querySelectorAll(".bd-article .cell_output img, .bd-article figure img").forEach(image => {
    const open = () => {
      const large = new Image();
      large.src = image.currentSrc || image.src;
      large.alt = image.alt;
      view.setAttribute("aria-label", image.alt);
      view.replaceChildren(large);
      view.showModal();
    };
    image.tabIndex = 0;
    image.setAttribute("role", "button");
    image.setAttribute("aria-label", `Enlarge: ${image.alt}`);
    image.addEventListener("click", open);
    image.addEventListener("keydown", event => {
      if (event.key === "Enter") open();
    });
  });
});
