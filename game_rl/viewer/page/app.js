// Starts the page and keeps it at the run that the address names after the #.

import {make, setText} from "./elements.js";
import {OverviewPage} from "./overview_page.js";
import {RunPage} from "./run_page.js";

const root = document.getElementById("page");
const waiting = document.getElementById("waiting");
const announcer = document.getElementById("announcer");

let page = null;
let source = null;
let shown = null;

export function announce(text) {
  setText(announcer, text);
}

// The address's part behind the #: run and agent, such as #run=03&agent=2.
function place() {
  const words = new URLSearchParams(location.hash.slice(1));
  return {run: words.get("run") ?? "", agent: Math.max(0, (Number(words.get("agent")) || 1) - 1)};
}

export function go({run = place().run, agent = null}) {
  const words = new URLSearchParams();
  if (run) words.set("run", run);
  if (agent) words.set("agent", agent + 1);
  const hash = words.toString();
  if (hash === location.hash.slice(1)) return;
  history[run === place().run ? "replaceState" : "pushState"](null, "", hash ? `#${hash}` : location.pathname);
  follow();
}

function follow() {
  const {run, agent} = place();
  if (run === shown) {
    page?.choose?.(agent);
    return;
  }
  shown = run;
  close();
  root.replaceChildren(waiting);
  open();
}

function open() {
  if (source || document.hidden) return;
  source = new EventSource(`api/state?run=${encodeURIComponent(shown)}`);
  source.addEventListener("state", (event) => onState(JSON.parse(event.data)));
  source.addEventListener("overview", (event) => onOverview(JSON.parse(event.data)));
  source.addEventListener("history", (event) => page?.setHappenings?.(JSON.parse(event.data)));
  source.addEventListener("happened", (event) => page?.addHappenings?.(JSON.parse(event.data)));
  source.addEventListener("open", () => document.body.classList.remove("lost"));
  source.addEventListener("error", () => {
    document.body.classList.add("lost");
    if (source?.readyState === EventSource.CLOSED) retry();
  });
  page?.resume();
}

// The server refuses, such as when too many pages watch: try again later.
function retry() {
  source = null;
  setTimeout(open, 5000);
}

function close() {
  source?.close();
  source = null;
  page?.close();
  page = null;
}

function onState(state) {
  if (!(page instanceof RunPage)) show(new RunPage(shown, place().agent, {announce, go}));
  page.setState(state);
}

function onOverview(overview) {
  if (!(page instanceof OverviewPage)) show(new OverviewPage({announce, go}));
  page.setState(overview);
}

function show(next) {
  page?.close();
  page = next;
  root.replaceChildren(page.element);
  page.resume();
}

// A hidden page takes no pictures, and leaves its place to another one.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
    page?.pause();
  } else {
    open();
  }
});
window.addEventListener("hashchange", follow);
window.addEventListener("popstate", follow);
document.body.append(make("p", {class: "lost-note", role: "alert", text: "The server does not answer; the page shows the last that it has got."}));
follow();
