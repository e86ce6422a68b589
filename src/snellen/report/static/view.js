// Small comforts for pages that work without them: zoom, keys, filters that apply at once, and a page that follows its run.
"use strict";
(() => {
  const zoom = (stage) => stage.classList.toggle("zoomed");
  const wire = (root) => {
    for (const stage of root.querySelectorAll("[data-zoom]")) {
      stage.addEventListener("click", () => zoom(stage));
      stage.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === stage) zoom(stage); });
    }
    for (const place of root.querySelectorAll("[data-load]")) load(place).catch(() => {});
    for (const form of root.querySelectorAll("[data-filters]")) {
      for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => form.requestSubmit());
    }
  };
  const load = async (place) => {
    const page = new DOMParser().parseFromString(await (await fetch(place.dataset.load, { credentials: "same-origin" })).text(), "text/html");
    const parts = [...page.getElementById("main").children].filter((part) => !part.matches(".crumbs"));
    place.replaceWith(...parts.map((part) => document.adoptNode(part)));
  };
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { j: "next", k: "prev" }[event.key];
    if (step) document.querySelector(`a[rel=${step}]`)?.click();
    if (event.key === "/") { document.getElementById("search")?.focus(); event.preventDefault(); }
  });
  let known = null;
  const follow = async () => {
    const main = document.getElementById("main");
    const where = main.dataset.live;
    if (!where) return;
    try {
      const state = await (await fetch(where, { credentials: "same-origin" })).text();
      const busy = main.contains(document.activeElement) && document.activeElement.matches("input, select");
      if (known !== null && state !== known && !busy) {
        const page = new DOMParser().parseFromString(await (await fetch(location.href, { credentials: "same-origin" })).text(), "text/html");
        const fresh = page.getElementById("main");
        if (fresh) { main.replaceWith(document.adoptNode(fresh)); wire(fresh); }
      }
      if (!busy) known = state;
    } catch { /* the viewer was closed: keep what is shown */ }
    setTimeout(follow, 1000);
  };
  wire(document);
  follow();
})();
