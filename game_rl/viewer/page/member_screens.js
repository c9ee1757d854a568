// The newest screens of several runs, each on a canvas of its own, and the button that pauses them.

import {make, setText} from "./elements.js";
import {FrameFeed, drawPacked} from "./frames.js";
import {pauseWords} from "./words.js";

export class MemberScreens {
  // `run` is the experiment in a folder, or ""; `canvasOf` returns the canvas of a run; `onDrawn` hears
  // whose picture is new.
  constructor({run = "", canvasOf, onDrawn}) {
    Object.assign(this, {run, canvasOf, onDrawn});
    this.layouts = new Map();
    this.training = new Set(); // runs whose agents play now, or wait while their network learns or is evaluated
    this.mayBeLive = false; // what is finished has no live screens, and takes no connection for them
    this.hasPictures = false;
    this.isPaused = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.button = make("button", {type: "button", class: "plain", onclick: () => this.toggle()});
    this.showButton();
  }

  // The members are those whose screens may come; `training` names the runs that train.
  expect(members, training) {
    this.training = new Set(training);
    this.mayBeLive = members.some(({state}) => state === "training" || state === "unknown");
    if (this.mayBeLive) this.resume();
    else this.end();
  }

  resume() {
    if (!this.mayBeLive || this.feed || (this.isPaused && this.hasPictures)) return;
    this.feed = new FrameFeed(`api/frames?run=${encodeURIComponent(this.run)}`, {
      onLayout: (layout) => this.layouts.set(layout.run, layout),
      onScreens: (screens) => this.onScreens(screens),
      onState: () => {},
      trains: (run) => this.training.has(run),
    });
    this.feed.open();
  }

  onScreens(screens) {
    for (const {run, packed} of screens) {
      const canvas = this.canvasOf(run);
      if (!canvas || !this.layouts.has(run)) continue;
      drawPacked(canvas, packed, this.layouts.get(run));
      this.onDrawn(run);
      this.hasPictures = true;
    }
    this.showButton();
    if (this.isPaused) this.pause();
  }

  end() {
    this.feed?.end();
    this.pause();
  }

  pause() {
    this.feed?.close();
    this.feed = null;
  }

  toggle() {
    this.isPaused = !this.isPaused;
    if (this.isPaused) this.end();
    else this.resume();
    this.showButton();
  }

  showButton() {
    this.button.hidden = !this.hasPictures;
    setText(this.button, pauseWords(this.isPaused));
  }
}
