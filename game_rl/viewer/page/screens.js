// The screens of all agents: a grid of buttons that the arrow keys walk through.

import {drawPacked} from "./frames.js";
import {make, setText} from "./elements.js";
import {number, whole} from "./words.js";

const GAP = 10;
const MOST_SCALE = 3;
const NAME_EVERY_MS = 1000;

// onChoose(key) when a screen is chosen; nameOf(screen) for the text below it.
export class Screens {
  constructor({label, onChoose, nameOf, noteOf}) {
    Object.assign(this, {onChoose, nameOf, noteOf});
    this.tiles = new Map();
    this.layouts = new Map();
    this.element = make("div", {class: "screens", role: "group", "aria-label": label});
    this.element.addEventListener("keydown", (event) => this.walk(event));
    this.observer = new ResizeObserver(() => this.size());
    this.observer.observe(this.element);
  }

  setLayout(layout) {
    this.layouts.set(layout.run, layout);
    this.size();
  }

  // Shows a tile for each key at once, with its picture as soon as there is one.
  expect(keys) {
    for (const key of [...this.tiles.keys()].filter((each) => !keys.includes(each))) {
      this.tiles.get(key).button.remove();
      this.tiles.delete(key);
    }
    keys.forEach((key) => this.tile(key));
    this.size();
  }

  tile(key) {
    let tile = this.tiles.get(key);
    if (tile) return tile;
    const canvas = make("canvas", {width: 160, height: 144, "aria-hidden": "true"});
    const name = make("span", {class: "name"});
    const note = make("span", {class: "note"});
    const button = make("button", {type: "button", class: "screen", "data-key": key, tabindex: -1,
      onclick: () => this.onChoose(key)}, canvas, make("span", {class: "caption"}, name, note));
    tile = {button, canvas, name, note, namedAt: -NAME_EVERY_MS};
    this.tiles.set(key, tile);
    const after = [...this.element.children].find((each) => order(each.dataset.key) > order(key));
    this.element.insertBefore(button, after ?? null);
    if (!this.element.querySelector('[tabindex="0"]')) button.tabIndex = 0;
    return tile;
  }

  show(screens) {
    const isNew = screens.some((screen) => !this.tiles.has(keyOf(screen)));
    for (const screen of screens) {
      const layout = this.layouts.get(screen.run);
      if (!layout) continue;
      const tile = this.tile(keyOf(screen));
      drawPacked(tile.canvas, screen.packed, layout);
      tile.button.classList.add("live");
      setText(tile.name, this.nameOf(screen));
      setText(tile.note, this.noteOf(screen));
      const now = performance.now();
      if (now - tile.namedAt >= NAME_EVERY_MS) {
        tile.namedAt = now;
        tile.button.setAttribute("aria-label", label(screen, layout, this.nameOf(screen)));
      }
    }
    if (isNew) this.size();
  }

  choose(key) {
    for (const [each, {button}] of this.tiles) {
      button.setAttribute("aria-pressed", String(each === key));
      button.tabIndex = each === key ? 0 : -1;
    }
    if (!this.tiles.has(key)) this.tiles.values().next().value?.button.setAttribute("tabindex", 0);
  }

  // The largest whole number of device pixels for a game's pixel that leaves the grid low enough.
  size() {
    const available = this.element.clientWidth;
    if (!available || !this.tiles.size) return;
    const {width = 160, height = 144} = this.layouts.values().next().value ?? {};
    const ratio = window.devicePixelRatio || 1;
    const most = Math.max(480, window.innerHeight * 0.8);
    let best = Math.max(1, Math.floor(ratio));
    for (let scale = best; scale <= MOST_SCALE * ratio; scale += 1) {
      const tile = (width * scale) / ratio;
      const columns = Math.floor((available + GAP) / (tile + GAP));
      const rows = Math.ceil(this.tiles.size / columns);
      if (columns < 1 || rows * ((height * scale) / ratio + 30) > most) break;
      best = scale;
    }
    this.element.style.setProperty("--tile", `${(width * best) / ratio}px`);
  }

  walk(event) {
    const buttons = [...this.element.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (at < 0) return;
    const columns = buttons.filter((each) => each.offsetTop === buttons[0].offsetTop).length;
    const moves = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns};
    const to = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : at + moves[event.key];
    if (!buttons[to]) return;
    event.preventDefault();
    buttons.forEach((each, i) => { each.tabIndex = i === to ? 0 : -1; });
    buttons[to].focus();
  }
}

export const keyOf = (screen) => `${screen.run}/${screen.env}`;

function order(key) {
  const at = key.lastIndexOf("/");
  return `${key.slice(0, at)}/${key.slice(at + 1).padStart(6, "0")}`;
}

function label(screen, layout, name) {
  return `${name}: episode ${whole(screen.episode + 1)}, timestep ${whole(screen.episode_timestep)}, ` +
    `${layout.actions[screen.action] ?? "no action"}, reward ${number(screen.episode_reward)}. Show large`;
}
