// A run's newest clip; of a reader who wants less motion, its first picture until they ask for more.

import {make} from "./elements.js";

export class Clip {
  constructor({title = "Newest clip", id = "clip"} = {}) {
    this.box = make("div", {class: "list"});
    this.element = make("section", {class: "card clip", "aria-labelledby": `${id}-title`, hidden: true}, make("h2", {id: `${id}-title`, text: title}), this.box);
  }

  show(run, name) {
    this.element.hidden = !name;
    if (!name || `${run}/${name}` === this.shown) return;
    this.shown = `${run}/${name}`;
    const address = addressOf(run, name);
    const isStill = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const alt = `Clip ${name}: episodes of the best policy`;
    const shown = isVideo(name) ? make("video", {src: address, controls: true, loop: true, "aria-label": `Clip ${name}`})
      : isStill ? stillClip(address, alt) : make("img", {src: address, alt});
    this.box.replaceChildren(shown, make("p", {class: "note", text: name}));
  }
}

const isVideo = (name) => name.endsWith(".mp4");

const addressOf = (run, name) => `api/clip?run=${encodeURIComponent(run)}&name=${encodeURIComponent(name)}`;

// Draws a clip's first picture on a canvas, cut to its shape, unless something newer stands there by then.
export function drawFirst(canvas, run, name, {isWanted = () => true} = {}) {
  const source = isVideo(name) ? make("video", {preload: "auto", muted: true}) : new Image();
  source.addEventListener(isVideo(name) ? "loadeddata" : "load", () => {
    if (!isWanted()) return;
    const [width, height] = [source.videoWidth ?? source.naturalWidth, source.videoHeight ?? source.naturalHeight];
    const scale = Math.max(canvas.width / width, canvas.height / height);
    const [w, h] = [canvas.width / scale, canvas.height / scale];
    canvas.getContext("2d").drawImage(source, (width - w) / 2, (height - h) / 2, w, h, 0, 0, canvas.width, canvas.height);
    canvas.classList.add("drawn");
  });
  source.src = addressOf(run, name);
}

function stillClip(address, alt) {
  const canvas = make("canvas", {role: "img", "aria-label": alt});
  const image = new Image();
  image.addEventListener("load", () => {
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0);
  });
  image.src = address;
  const box = make("div", {}, canvas);
  box.append(make("button", {type: "button", class: "plain", text: "▶ Play the clip", onclick: () => box.replaceChildren(make("img", {src: address, alt}))}));
  return box;
}
