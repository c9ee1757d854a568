// Starts the page and keeps it at the run that the address names after the #.

import {make, setText} from "./elements.js";
import {ExplorePage} from "./explore_page.js";
import {FolderPage} from "./folder_page.js";
import {OverviewPage} from "./overview_page.js";
import {RunPage} from "./run_page.js";

const root = document.getElementById("page");
const waiting = document.getElementById("waiting");
const announcer = document.getElementById("announcer");

const EVERY_MS = 1000;
const EVERY_FINISHED_MS = 5000;
const LOST_AFTER_MS = 20_000;

let page = null;
let asking = null; // stops the questions about what is shown now
let shown = null;
let last = {}; // what was shown last: id of the newest event, and the texts of the answers

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

// Asks for news again and again, in answers that end: a browser has six connections for all windows.
async function open() {
  if (asking || document.hidden) return;
  const own = asking = new AbortController();
  page?.resume();
  while (!own.signal.aborted) {
    const isFinished = await ask(own);
    await new Promise((done) => { setTimeout(done, isFinished ? EVERY_FINISHED_MS : EVERY_MS); });
  }
}

async function ask(own) {
  const words = new URLSearchParams({run: shown, after: last.id ?? ""});
  try {
    const signal = AbortSignal.any([own.signal, AbortSignal.timeout(LOST_AFTER_MS)]);
    const answer = await fetch(`api/state?${words}`, {signal});
    const news = answer.ok ? await answer.json() : null;
    if (own.signal.aborted) return false;
    if (!news) {
      say(answer.status === 404 ? GONE : answer.status === 401 ? STRANGE : "");
      return false;
    }
    say(news.overview?.is_there === false && page ? GONE : "");
    take(news);
    const isLive = ({state}) => ["training", "exploring"].includes(state);
    return !isLive(news.state ?? news.overview) && !news.overview?.members?.some(isLive);
  } catch {
    if (!own.signal.aborted) say(LOST);
    return false;
  }
}

const LOST = "The server does not answer; the page shows the last data that it received.";
const GONE = "There is no run here any more; the page shows the last data that it received.";
const STRANGE = "The server was restarted: open the address that it has printed now.";

function say(text) {
  document.body.classList.toggle("lost", Boolean(text));
  setText(lostNote, text);
}

function take({id, state, others, overview, history, happened}) {
  if (overview?.is_there === false && page) return;
  const text = JSON.stringify(state ?? overview);
  if (text !== last.text) {
    last.text = text;
    if (state) onState(state);
    else onOverview(overview);
  }
  last.id = id;
  if (others) page.setOthers(others);
  if (history) page.setHappenings(history);
  if (happened) page.addHappenings(happened);
}

function close() {
  stop();
  page?.close();
  page = null;
  last = {};
}

function stop() {
  asking?.abort();
  asking = null;
}

// Another run at the same place gets a page of its own.
function onState(state) {
  const isOther = page instanceof RunPage && page.state && page.state.replacements !== state.replacements;
  if (!(page instanceof RunPage) || isOther) show(new RunPage(shown, place().agent, {announce, go}));
  page.setState(state);
}

function onOverview(overview) {
  const Page = {exploration: ExplorePage, folder: FolderPage}[overview.kind] ?? OverviewPage;
  if (!(page instanceof Page)) show(new Page({run: shown, announce, go}));
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
    stop();
    page?.pause();
  } else {
    open();
  }
});
window.addEventListener("hashchange", follow);
window.addEventListener("popstate", follow);
const lostNote = make("p", {class: "lost-note", role: "alert"});
document.body.append(lostNote);
follow();
