// Sheets of screens, cut into single ones that fill the width. The PNG of a sheet says itself where each screen is, and its label.

import {make} from "./elements.js";

const TEXT = "tEXt";
const KEY = "screens\0";
const FIRST_CHUNK = 8; // after the signature

export class Sheet {
  // `run` is an exploration in a folder, or ""; `name` is that of its picture.
  constructor(run, name, {title, note}) {
    Object.assign(this, {run, name});
    this.list = make("ul", {class: "sheet"});
    this.element = make("section", {class: "card", "aria-labelledby": `${name}-title`, hidden: true},
      make("h2", {id: `${name}-title`, text: title}), make("p", {class: "note", text: note}), this.list);
  }

  get count() { return this.list.children.length; }

  // Shows the picture that was written at a time; without one, there is none yet.
  async show(at) {
    if (at == null || at === this.at) return;
    this.at = at;
    const sheet = await readSheet(this.run, {name: this.name, at});
    if (at !== this.at) return;
    if (!sheet) {
      this.at = null; // the next look may find the server again
      return;
    }
    this.list.replaceChildren(...sheet.screens.map((screen) => {
      const canvas = make("canvas", {width: screen.width, height: screen.height, "aria-hidden": "true"});
      draw(canvas, sheet.picture, screen);
      return make("li", {}, canvas, make("span", {text: screen.label}));
    }));
    this.element.hidden = !sheet.screens.length;
  }
}

// Draws the last screen of a picture of an exploration: the end of its best route, or its newest cell.
export async function drawLast(canvas, run, picture, {isWanted = () => true} = {}) {
  const sheet = await readSheet(run, picture);
  if (!sheet?.screens.length || !isWanted()) return;
  draw(canvas, sheet.picture, sheet.screens.at(-1));
  canvas.classList.add("drawn");
}

function draw(canvas, picture, {left, top, width, height}) {
  canvas.getContext("2d").drawImage(picture, left, top, width, height, 0, 0, canvas.width, canvas.height);
}

// Null if it cannot be read now.
async function readSheet(run, {name, at}) {
  try {
    const answer = await fetch(`api/picture?run=${encodeURIComponent(run)}&name=${name}&at=${at}`);
    if (!answer.ok) return null;
    const png = await answer.arrayBuffer();
    return {screens: screensOf(png), picture: await createImageBitmap(new Blob([png], {type: "image/png"}))};
  } catch {
    return null;
  }
}

// A chunk of a PNG has its length, its kind, its content and a checksum; those of text stand before the pixels.
function screensOf(png) {
  const view = new DataView(png);
  const latin = new TextDecoder("latin1");
  for (let at = FIRST_CHUNK; at < png.byteLength; at += 12 + view.getUint32(at)) {
    const kind = latin.decode(new Uint8Array(png, at + 4, 4));
    const text = kind === TEXT ? latin.decode(new Uint8Array(png, at + 8, view.getUint32(at))) : "";
    if (text.startsWith(KEY)) return JSON.parse(text.slice(KEY.length));
  }
  return [];
}
