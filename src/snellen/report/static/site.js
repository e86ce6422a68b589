// An exported run without a server: filters over the list of its trials, and the way from one trial to the next.
"use strict";
(() => {
  const rows = window.SNELLEN_ROWS; // [number, outcome, why, rule and reason, flipped, groups, text in lower case]
  if (!rows) return;
  const MOST = 300; // rows shown at once
  const read = () => (/^#(outcome|why|rule|flipped|text|group)=/.test(location.hash) ? new URLSearchParams(location.hash.slice(1)) : new URLSearchParams());
  const outcomeFits = (wanted, outcome) => !wanted || wanted === outcome || (wanted === "wrong" && outcome === "partly");
  const fits = (wanted) => ([, outcome, why, said, flipped, groups, text]) =>
    outcomeFits(wanted.get("outcome"), outcome)
    && (!wanted.get("why") || wanted.get("why") === why)
    && (!wanted.get("rule") || said.includes(wanted.get("rule")))
    && (!wanted.get("flipped") || flipped)
    && wanted.getAll("group").every((group) => groups.includes(group))
    && (!wanted.get("text") || text.includes(wanted.get("text").toLowerCase()));
  const told = (wanted) => [...wanted].map(([name, value]) => (name === "why" ? value.replaceAll("_", " ") : value)).join(", ");
  const behind = (wanted) => (wanted.toString() ? `#${wanted}` : "");

  const table = document.querySelector(".trials tbody");
  const form = document.querySelector("form[data-site]");
  let most = MOST;
  const showTable = () => {
    const wanted = read(), want = fits(wanted);
    let found = 0;
    [...table.rows].forEach((line, place) => {
      const fit = want(rows[place]);
      found += fit ? 1 : 0;
      line.hidden = !fit || found > most;
      const link = line.querySelector("th a");
      if (link) link.href = link.getAttribute("href").split("#")[0] + behind(wanted);
    });
    document.querySelector(".trials caption").textContent = `${found} of ${rows.length} trials${told(wanted) ? ` · ${told(wanted)}` : ""}`;
    more.hidden = found <= most;
    for (const button of document.querySelectorAll("nav[aria-label=Outcomes] a")) {
      const named = new URLSearchParams(button.getAttribute("href").split("#")[1] || "");
      const here = (named.get("outcome") || "") === (wanted.get("outcome") || "");
      button.classList.toggle("quiet", !here);
      if (here) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    }
    const groups = wanted.getAll("group");
    for (const field of form.elements) {
      if (field.name === "group") field.value = groups.find((group) => [...field.options].some((option) => option.value === group)) || "";
      else if (field.name && document.activeElement !== field) field.value = wanted.get(field.name) || "";
    }
  };
  const more = document.createElement("button");
  const wireTable = () => {
    form.hidden = false;
    more.textContent = "Show more trials";
    more.type = "button";
    more.addEventListener("click", () => { most += MOST; showTable(); });
    document.querySelector(".trials").after(more);
    const apply = () => {
      const wanted = read(), fresh = new URLSearchParams();
      for (const name of ["outcome", "rule", "flipped"]) if (wanted.get(name)) fresh.set(name, wanted.get(name));
      for (const field of form.elements) if (field.name && field.value) fresh.append(field.name, field.value);
      most = MOST;
      history.replaceState(null, "", behind(fresh) || location.pathname.split("/").pop());
      showTable();
    };
    form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
    form.addEventListener("input", apply);
    addEventListener("hashchange", () => { most = MOST; showTable(); });
    showTable();
  };

  const wireTrial = () => { // the way on is that of the filter one came with
    const wanted = read(), number = Number(location.pathname.match(/(\d+)\.html$/)?.[1]);
    const found = rows.filter(fits(wanted)), at = found.findIndex(([other]) => other === number);
    const way = (row, words, rel) => {
      const made = document.createElement(row ? "a" : "span");
      if (row) { made.href = `${row[0]}.html${behind(wanted)}`; made.rel = rel; made.className = "button quiet"; made.textContent = words; }
      return made;
    };
    const where = document.createElement("span");
    where.className = "muted";
    where.textContent = (at < 0 ? `this trial is not among the ${found.length} that match` : `trial ${at + 1} of ${found.length}`) + (told(wanted) ? ` · ${told(wanted)}` : "");
    const next = at < 0 ? found[0] : found[at + 1];
    document.querySelector("nav.pager")?.replaceChildren(way(at > 0 ? found[at - 1] : null, "← Previous trial", "prev"), where, way(next, "Next trial →", "next"));
    for (const link of document.querySelectorAll(".crumbs a[href*='trials-']")) link.href = link.getAttribute("href").split("#")[0] + behind(wanted);
  };
  if (table && form) wireTable(); else if (!form) wireTrial();
})();
