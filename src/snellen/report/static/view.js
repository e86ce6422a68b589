// Small comforts for pages that work without them: zoom, keys, filters that apply at once, and a page that follows its run.
"use strict";
(() => {
  const MOST = 64;
  const wireStage = (stage) => {
    const pane = stage.querySelector(".pane"), frame = stage.querySelector(".frame"), picture = stage.querySelector("img");
    if (!pane || !frame || !picture) return;
    let scale = 0; // 0: as wide as its place
    const shown = () => scale || (picture.naturalWidth ? picture.clientWidth / picture.naturalWidth : 1);
    const middle = () => { const box = pane.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; };
    const set = (wanted, [x, y] = middle()) => { // what is under (x, y) stays there
      const old = picture.getBoundingClientRect();
      const across = (x - old.left) / old.width, down = (y - old.top) / old.height;
      scale = wanted ? Math.min(MOST, Math.max(0.05, wanted)) : 0;
      stage.classList.toggle("zoomed", scale !== 0);
      picture.style.width = scale ? `${picture.naturalWidth * scale}px` : "";
      frame.style.setProperty("--pixel", `${shown()}px`);
      const now = picture.getBoundingClientRect();
      pane.scrollLeft += now.left + across * now.width - x;
      pane.scrollTop += now.top + down * now.height - y;
    };
    const doings = {
      in: () => set(shown() * 1.5), out: () => set(shown() / 1.5), fit: () => set(0), actual: () => set(1),
      grid: () => { stage.classList.toggle("gridded"); if (shown() < 6) set(8); else set(shown()); },
      full: () => { if (document.fullscreenElement) document.exitFullscreen(); else stage.requestFullscreen?.().catch(() => {}); },
    };
    for (const button of stage.querySelectorAll("[data-do]")) button.addEventListener("click", () => doings[button.dataset.do]());
    pane.addEventListener("wheel", (event) => {
      if (!scale && !event.ctrlKey && !document.fullscreenElement) return; // the page scrolls until one asked for the picture
      event.preventDefault();
      set(shown() * Math.exp(-event.deltaY / 400), [event.clientX, event.clientY]);
    }, { passive: false });
    let drag = null;
    pane.addEventListener("pointerdown", (event) => {
      if (event.button === 0) drag = { x: event.clientX, y: event.clientY, moved: false };
    });
    pane.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) pane.setPointerCapture(event.pointerId);
      drag = { x: event.clientX, y: event.clientY, moved: true };
      pane.scrollLeft -= dx; pane.scrollTop -= dy;
    });
    pane.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) {
        set(scale ? 0 : 1, [event.clientX, event.clientY]);
        stage.focus({ preventScroll: true });
      }
      drag = null;
    });
    picture.addEventListener("dragstart", (event) => event.preventDefault());
    stage.addEventListener("keydown", (event) => {
      if (event.target !== stage) return;
      const keys = { Enter: () => set(scale ? 0 : 1), "+": doings.in, "=": doings.in, "-": doings.out, 0: doings.fit, g: doings.grid, f: doings.full };
      if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    });
  };
  const wirePicture = (picture) => {
    const tell = async () => { // a broken sign says nothing: the server says why there is no picture
      const words = document.createElement("span");
      words.className = "nopicture muted small";
      words.textContent = "no picture";
      picture.replaceWith(words);
      try { words.textContent = `no picture: ${(await (await fetch(picture.src, { credentials: "same-origin" })).text()).slice(0, 200)}`; } catch { /* said already */ }
    };
    if (picture.complete && picture.src && !picture.naturalWidth) tell(); else picture.addEventListener("error", tell, { once: true });
  };
  const wire = (root) => {
    for (const stage of root.querySelectorAll("[data-zoom]")) wireStage(stage);
    for (const picture of root.querySelectorAll("img")) wirePicture(picture);
    if (matchMedia("(max-width: 700px)").matches) for (const part of root.querySelectorAll("[data-fold]")) part.open = false;
    wireTabs(root);
    for (const place of root.querySelectorAll("[data-load]")) load(place).catch(() => {});
    for (const form of root.querySelectorAll("[data-filters]")) {
      for (const select of form.querySelectorAll("select")) select.addEventListener("change", () => form.requestSubmit());
    }
  };
  const KEPT = "snellen-reply"; // how replies are shown is chosen once, not on every page
  const wireTabs = (root) => {
    const radios = [...root.querySelectorAll(".tabs > input")];
    let chosen = null;
    try { chosen = localStorage.getItem(KEPT); } catch { /* storage is shut: the first one is shown */ }
    for (const radio of radios) {
      if (radio.value === chosen) radio.checked = true;
      radio.addEventListener("change", () => { try { localStorage.setItem(KEPT, radio.value); } catch { /* as above */ } });
    }
  };
  const nextTab = () => {
    const radios = [...document.querySelectorAll(".tabs > input")];
    radios[(radios.findIndex((radio) => radio.checked) + 1) % radios.length]?.click();
  };
  const load = async (place) => {
    const page = new DOMParser().parseFromString(await (await fetch(place.dataset.load, { credentials: "same-origin" })).text(), "text/html");
    const parts = [...page.getElementById("main").children].filter((part) => !part.matches(".crumbs"));
    place.replaceWith(...parts.map((part) => document.adoptNode(part)));
  };
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input:not([type=radio], [type=checkbox]), select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { j: "next", k: "prev" }[event.key];
    if (step) document.querySelector(`a[rel=${step}]`)?.click();
    if (event.key === "r") nextTab();
    if (event.key === "o") document.querySelector(".trials tbody tr:not([hidden]) th a, .thumbs a")?.click();
    if (event.key === "u") [...document.querySelectorAll(".crumbs a")].at(-1)?.click();
    if (event.key === "m") {
      const marks = document.getElementById("marks");
      if (marks) { marks.open = true; marks.querySelector("input:not([type=hidden])")?.focus(); event.preventDefault(); }
    }
    if (event.key === "?") {
      const keys = document.getElementById("keys");
      if (keys) { if (keys.open) keys.close(); else keys.showModal(); }
    }
    if (event.key === "/") {
      const field = document.getElementById("search");
      field?.closest("details")?.setAttribute("open", "");
      field?.focus();
      event.preventDefault();
    }
  });
  document.addEventListener("click", (event) => { // the player stands where the frame was taken
    const tick = event.target.closest?.(".timeline a[data-second]");
    const film = tick?.closest(".film")?.querySelector("video");
    if (film) { film.pause(); film.currentTime = Number(tick.dataset.second); }
  });
  let known = null;
  const follow = async () => {
    const main = document.getElementById("main");
    const where = main.dataset.live;
    if (!where) return;
    try {
      const state = await (await fetch(where, { credentials: "same-origin" })).text();
      const busy = main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
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
