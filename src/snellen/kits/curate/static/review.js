"use strict";
// The review page: shows one item, takes one decision by keyboard, and keeps a save until the server has it on disk.
const $ = (id) => document.getElementById(id);
const OUTBOX = "snellen-outbox:" + location.pathname;   // every reviewer has an address of their own: no tab sends another person's saves
let mode = "review", item = null, editing = false, chosen = [], at = 0, busy = false;

const KEYS = {
  review: [["a", "accept"], ["e", "edit"], ["r", "reject"], ["s", "skip"], ["u", "undo"]],
  settle: [["a", "accept"], ["e", "edit"], ["r", "reject"], ["u", "undo"]],
  audit: [["a", "valid"], ["r", "invalid"], ["u", "undo"]],
  answer: [["u", "undo"]],
};

function make(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = String(text);   // never markup: model text stays text
  if (className) node.className = className;
  return node;
}
const ticket = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
const outbox = () => JSON.parse(localStorage.getItem(OUTBOX) || "[]");
const keep = (list) => localStorage.setItem(OUTBOX, JSON.stringify(list));
function notice(text) { $("notice").textContent = text || ""; $("notice").hidden = !text; }

async function call(path, body) {
  const options = body ? { method: "POST", headers: { "Content-Type": "application/json", "X-Snellen": "1" }, body: JSON.stringify(body) } : {};
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) { const error = new Error(answer.error || response.statusText); error.status = response.status; throw error; }
  return answer;
}

async function flush() {          // saves that a closed browser or a killed server left behind are sent again; tickets make that safe
  let answer = null;
  for (const entry of outbox()) {
    try { answer = await call("api/decide", entry); }
    catch (error) {
      if (error.status === 400) { keep(outbox().filter((each) => each.ticket !== entry.ticket)); throw error; }
      throw new Error("not saved yet (" + error.message + "); it is kept here and will be sent again");
    }
    keep(outbox().filter((each) => each.ticket !== entry.ticket));
  }
  return answer;
}

async function decide(action, reason, body) {
  if (!item || busy) return;
  busy = true;
  keep([...outbox(), { mode, item: item.id, action, reason: reason || "", body: body === undefined ? null : body, ticket: ticket() }]);
  try { const answer = await flush(); editing = false; notice(""); show(answer); }
  catch (error) { notice(error.message); setTimeout(retry, 3000); }
  finally { busy = false; }
}
async function retry() {
  if (!outbox().length || busy) return;
  try { const answer = await flush(); if (answer) { notice(""); editing = false; show(answer); } }
  catch (error) { notice(error.message); if (error.status !== 400) setTimeout(retry, 3000); }
}
async function undo() {
  try { const answer = await call("api/undo", { mode, ticket: ticket() }); notice(answer.undone ? "" : "nothing to undo"); if (answer.item) show(answer); }
  catch (error) { notice(error.message); }
}
async function load(next) {
  mode = next || mode; editing = false;
  try { show(await call("api/next?mode=" + mode)); } catch (error) { notice(error.message); }
}

const figure = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits === undefined ? 2 : digits));
function showState(state) {
  const box = $("numbers"); box.replaceChildren();
  const add = (label, value) => { const span = make("span", label + " "); span.append(make("b", value)); box.append(span); };
  add("yours", state.decided + " of " + state.assigned);
  for (const name of ["accepted", "rejected", "disputed", "open"]) add(name, state.counts[name]);
  add("shared", state.shared);
  add("Krippendorff's α", figure(state.alpha));
  for (const each of state.kappas.slice(0, 4)) add("Cohen's κ " + each.pair.join("–"), figure(each.kappa) + " (" + each.n + ")");
  $("disputed").textContent = state.counts.disputed || "";
  $("who").textContent = state.reviewer;
}

function show(answer) {
  item = answer.item; chosen = item ? item.questions.map(() => null) : []; at = 0;
  $("name").textContent = answer.name;
  showState(answer.state);
  for (const button of document.querySelectorAll("nav button")) {
    if (button.dataset.mode === mode) button.setAttribute("aria-current", "page"); else button.removeAttribute("aria-current");
  }
  $("main").hidden = !item; $("done").hidden = !!item;
  fillReasons(answer.reasons);
  if (item) { $("picture").src = "image/" + encodeURIComponent(item.id); showFacts(); showQuestions(); }
  showKeys();
}
function showFacts() {
  const facts = $("facts"); facts.replaceChildren();
  const add = (name, value) => { if (value) facts.append(make("dt", name), make("dd", value)); };
  add("item", item.id); add("clue", item.clue); add("inference", item.inference);
  if (item.provenance) add("drafted by", item.provenance.model);
  add("your decision", item.own);
  $("findings").replaceChildren(...(item.findings || []).map((each) => make("li", each.gate + ": " + each.outcome + ", " + each.reason, each.outcome)));
  $("others").replaceChildren(...(item.decisions || []).map(other));
  if (mode === "settle") {
    const own = "You reviewed this item: what you choose becomes your position. It is settled when all its reviewers agree, or by somebody else.";
    $("others").prepend(make("p", item.party ? own : "The reviewers differ: take one version, merge them (E), or reject the item.", "muted"));
  }
}
function other(each, place) {      // one person's decision, with every text it changes, and a way to take it
  const box = make("div", null, "other");
  const said = each.action === "accept" ? "accepts it" + (each.mode === "settle" ? ", unedited" : "") : each.action === "edit" ? "edited it" : each.action;
  box.append(make("b", each.reviewer + ": " + said), make("span", each.reason ? " · " + each.reason : ""));
  for (const change of changes(each.body)) {
    const line = make("p", null, "change");
    line.append(make("small", change.name + " "), make("del", change.before), make("ins", change.after)); box.append(line);
  }
  if (mode === "settle" && each.action === "edit") {
    const button = make("button", null, "take"); button.type = "button"; button.dataset.take = place;
    button.append(make("kbd", place + 1), document.createTextNode("take this version")); button.addEventListener("click", () => take(place)); box.append(button);
  }
  return box;
}
function parts(body) { return body && body.inference ? [...body.steps, body.inference] : null; }
function changes(body) {           // what an edit makes other than the draft, text by text
  const after = parts(body), list = [];
  if (!after) return list;
  item.questions.forEach((question, place) => {
    const now = after[place], add = (name, old, text) => { if (old !== text) list.push({ name: question.name + " " + name, before: old, after: text }); };
    if (!now) { list.push({ name: question.name, before: question.question, after: "(left out)" }); return; }
    add("question", question.question, now.question);
    question.candidates.forEach((text, index) => add("option " + (index + 1), text, now.candidates[index] || ""));
    add("right", question.candidates[question.right], now.candidates[now.right]);
  });
  return list;
}
function take(place) {
  const each = (item.decisions || [])[place];
  if (each && each.action === "edit") decide("edit", "as " + each.reviewer + " edited it", each.body);
}
function showQuestions() {
  $("questions").replaceChildren(...item.questions.map((question, place) => editing ? editor(question, place) : card(question, place)));
}
function card(question, place) {
  const box = make("section", null, "question" + (mode === "answer" && place === at ? " current" : ""));
  const title = make("h3"); title.append(make("small", question.name), make("span", question.question)); box.append(title);
  const list = make("ol");
  question.candidates.forEach((text, index) => {
    const line = make("li", text, index === question.right ? "right" : index === chosen[place] ? "chosen" : "");
    if (mode === "answer") line.addEventListener("click", () => { at = place; pick(index); });
    list.append(line);
  });
  box.append(list);
  return box;
}
function editor(question, place) {
  const box = make("section", null, "question");
  const title = make("h3"); title.append(make("small", question.name)); title.append(field(question.question, "q" + place)); box.append(title);
  offer(box, "q" + place, place, question.question, (each) => each.question);
  question.candidates.forEach((text, index) => {
    const line = make("div"), radio = make("input");
    radio.type = "radio"; radio.name = "right" + place; radio.value = index; radio.checked = index === question.right; radio.title = "right";
    line.append(radio, field(text, "c" + place + "_" + index)); box.append(line);
    offer(box, "c" + place + "_" + index, place, text, (each) => each.candidates[index]);
  });
  return box;
}
function offer(box, id, place, current, read) {      // merging: every other wording of this text, one click away
  for (const each of mode === "settle" ? item.decisions || [] : []) {
    const theirs = parts(each.body), text = theirs && theirs[place] && read(theirs[place]);
    if (!text || text === current) continue;
    const chip = make("button", each.reviewer + ": " + text, "chip"); chip.type = "button";
    chip.addEventListener("click", () => { $(id).value = text; }); box.append(chip);
  }
}
function field(value, id) { const input = make("input"); input.type = "text"; input.id = id; input.value = value; return input; }
function edited() {
  const read = item.questions.map((question, place) => ({
    question: $("q" + place).value,
    candidates: question.candidates.map((_, index) => $("c" + place + "_" + index).value),
    right: Number(document.querySelector("input[name=right" + place + "]:checked").value),
  }));
  return { steps: read.slice(0, -1), inference: read[read.length - 1] };
}
function edit(on) { editing = on; showQuestions(); showKeys(); if (on) $("q0").focus(); }
function pick(index) {
  if (mode !== "answer" || !item || index >= item.questions[at].candidates.length) return;
  chosen[at] = index;
  if (chosen.every((each) => each !== null)) { decide("answer", "", { places: chosen }); return; }
  at = chosen.findIndex((each) => each === null);
  showQuestions();
}

function showKeys() {
  const bar = $("keys"); bar.replaceChildren();
  const add = (key, label, run, main) => {
    const button = make("button", null, main ? "main" : ""); button.type = "button"; button.dataset.action = label;
    button.append(make("kbd", key), document.createTextNode(label)); button.addEventListener("click", run); bar.append(button);
  };
  if (editing) { add("Ctrl+Enter", "save", () => decide("edit", "", edited()), true); add("Esc", "cancel", () => edit(false)); return; }
  if (mode === "answer") add("1–6", "choose", () => {}, true);
  const words = mode === "settle" ? { accept: "take the draft, unedited", edit: "merge" } : {};
  for (const [key, action] of KEYS[mode]) add(key.toUpperCase(), words[action] || action, () => act(action), key === "a" && mode !== "settle");
  add("M", "next mode", () => { const all = Object.keys(KEYS); load(all[(all.indexOf(mode) + 1) % all.length]); });
}
function act(action) {
  if (action === "undo") undo();
  else if (action === "edit") edit(true);
  else if (action === "reject") { $("reasontext").value = ""; $("reasons").showModal(); $("reasonlist").focus(); }
  else decide(action, "", action === "accept" && mode === "review" ? { seen: item.mark } : undefined);   // another may edit it meanwhile
}
function fillReasons(reasons) {
  $("reasonlist").replaceChildren(...reasons.map((reason) => { const line = make("li", reason); line.addEventListener("click", () => reject(reason)); return line; }));
}
function reject(reason) { $("reasons").close(); decide("reject", reason); }

document.addEventListener("keydown", (event) => {
  if ($("reasons").open) {
    const lines = $("reasonlist").children, typing = document.activeElement === $("reasontext") && $("reasontext").value;
    if (!typing && /^[1-9]$/.test(event.key) && lines[event.key - 1]) { event.preventDefault(); reject(lines[event.key - 1].textContent); }
    else if (event.key === "Enter" && $("reasontext").value.trim()) { event.preventDefault(); reject($("reasontext").value.trim()); }
    return;
  }
  if (editing) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); decide("edit", "", edited()); }
    if (event.key === "Escape") edit(false);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !item && !"um".includes(event.key.toLowerCase())) return;
  if (event.key.toLowerCase() === "m") { const all = Object.keys(KEYS); load(all[(all.indexOf(mode) + 1) % all.length]); return; }
  if (mode === "answer" && /^[1-9]$/.test(event.key)) { pick(Number(event.key) - 1); return; }
  if (mode === "settle" && /^[1-9]$/.test(event.key)) { take(Number(event.key) - 1); return; }
  const found = KEYS[mode].find(([key]) => key === event.key.toLowerCase());
  if (found) { event.preventDefault(); act(found[1]); }
});
for (const button of document.querySelectorAll("nav button")) button.addEventListener("click", () => load(button.dataset.mode));
setInterval(() => { call("api/state").then(showState, () => {}); }, 5000);
flush().catch((error) => notice(error.message)).then(() => load("review"));
