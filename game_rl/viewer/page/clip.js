// A run's clip, which plays by itself; of a reader who wants less motion, its first picture until they ask for more.

import {make} from "./elements.js";
import {whole} from "./words.js";

export class Clip {
  constructor({title = "Clip", id = "clip"} = {}) {
    this.box = make("div", {class: "list"});
    this.element = make("section", {class: "card clip", "aria-labelledby": `${id}-title`, hidden: true}, make("h2", {id: `${id}-title`, text: title}), this.box);
  }

  show(run, name) {
    this.element.hidden = !name;
    if (!name || `${run}/${name}` === this.shown) return;
    this.shown = `${run}/${name}`;
    const address = addressOf(run, name);
    const isStill = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const seen = [name, whatIsSeen(name)].filter(Boolean).join(": ");
    const alt = `Clip ${seen}`;
    const shown = isVideo(name) ? video(address, alt, {isStill})
      : isStill ? stillClip(address, alt) : make("img", {src: address, alt});
    this.box.replaceChildren(shown, make("p", {class: "note", text: seen}));
  }
}

// A clip's name says whose episodes it has.
function whatIsSeen(name) {
  const stem = name.slice(0, name.lastIndexOf("."));
  if (/^\d+$/.test(stem)) return `the policy of timestep ${whole(Number(stem))} at play`;
  if (/^episodes?_\d/.test(stem)) return "logged episodes";
  return SEEN[stem] ?? "";
}

const SEEN = {
  best: "the best policy at play", replay: "the policy at play",
  early: "the first episode of the training", worst: "the worst episode of the evaluation",
};

// Browsers let a video play by itself if it is muted before it has a source.
function video(address, alt, {isStill}) {
  const element = make("video", {controls: true, loop: true, muted: true, playsinline: true, autoplay: !isStill, "aria-label": alt});
  element.muted = true;
  element.src = address;
  return element;
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
