// The newest pictures of a run once more, while its agents wait: the page then moves on without a stop.

const MOST = 48; // messages, twelve seconds at four a second
const MOST_BYTES = 8 << 20;
const AGAIN_EVERY_MS = 250;
const STILL_AFTER_MS = 400; // a longer wait than that between two pictures of agents that play
const LOOK_EVERY_MS = 50;
const FIRST_COUNT = 12;

// onScreens(screens) gets the screens of one message again.
export class Replay {
  constructor(onScreens) {
    this.onScreens = onScreens;
    this.kept = [];
    this.bytes = 0;
    this.learnsFrom = 0;
    this.count = FIRST_COUNT; // pictures that the last wait took: from so far back it begins
    this.shownAt = performance.now();
  }

  // New screens of agents that play.
  take(screens) {
    this.shownAt = performance.now();
    this.kept.push(screens);
    this.bytes += sizeOf(screens);
    while (this.kept.length > MOST || this.bytes > MOST_BYTES) this.bytes -= sizeOf(this.kept.shift());
    if (!this.learnsFrom) this.stop();
  }

  learn(timesteps) {
    this.learnsFrom = timesteps;
    if (timesteps) this.wait();
  }

  // Plays from now on whenever nothing new comes, until something new has come.
  wait() {
    this.timer ??= setInterval(() => this.look(), LOOK_EVERY_MS);
  }

  look() {
    const now = performance.now();
    const isFirst = this.at == null;
    if (now - this.shownAt < (isFirst && !this.learnsFrom ? STILL_AFTER_MS : AGAIN_EVERY_MS) || this.kept.length < 2) return;
    if (isFirst) [this.at, this.played] = [Math.max(0, this.kept.length - this.count), 0];
    this.shownAt = now;
    this.onScreens(this.kept[this.at % this.kept.length]);
    this.at += 1;
    this.played += 1;
  }

  stop() {
    if (this.played) this.count = this.played;
    [this.at, this.played] = [null, 0];
    this.close();
  }

  close() {
    clearInterval(this.timer);
    this.timer = null;
  }
}

const sizeOf = (screens) => screens.reduce((sum, {packed}) => sum + packed.length, 0);
