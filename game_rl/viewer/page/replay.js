// The newest pictures of a run once more, while nothing new comes: the page then moves on without a stop.

const MOST = 48; // moments, twelve seconds at four a second
const MOST_BYTES = 8 << 20;
const AGAIN_EVERY_MS = 250;
const STILL_AFTER_MS = 350; // without a new picture
const LATE = 1.4; // times the usual wait for a picture, if that is longer: agents that are slow play on
const USUAL_OF = 9; // waits
const FIRST_COUNT = 12;
const LEAST_COUNT = 4;

// onScreens(screens) gets the screens of one moment again.
export class Replay {
  constructor(onScreens) {
    this.onScreens = onScreens;
    this.kept = [];
    this.bytes = 0;
    this.learnsFrom = 0; // timesteps that the network learns from now
    this.waits = [];
    this.count = FIRST_COUNT; // pictures that the last wait took: from so far back it begins
    this.played = 0;
  }

  // New screens of agents that play; messages on different agents make one moment.
  take(screens) {
    const now = performance.now();
    this.bytes += sizeOf(screens);
    const last = this.kept.at(-1);
    if (last && !this.played && screens.every(({env}) => last.every((screen) => screen.env !== env))) {
      last.push(...screens);
      return;
    }
    if (this.takenAt != null) this.waits = [...this.waits, now - this.takenAt].slice(-USUAL_OF);
    this.takenAt = this.shownAt = now;
    this.kept.push([...screens]);
    while (this.kept.length > MOST || this.bytes > MOST_BYTES) this.bytes -= sizeOf(this.kept.shift());
    if (this.played) this.count = Math.max(LEAST_COUNT, this.played);
    this.played = 0;
  }

  // Plays the next picture again if it is time to; to be called often.
  look() {
    const now = performance.now();
    if (this.kept.length < 2 || now - this.shownAt < this.patience) return;
    if (!this.played) this.at = Math.max(0, this.kept.length - this.count);
    this.shownAt = now;
    this.onScreens(this.kept[this.at % this.kept.length]);
    this.at += 1;
    this.played += 1;
  }

  get patience() {
    if (this.played || this.learnsFrom) return AGAIN_EVERY_MS;
    const usual = [...this.waits].sort((a, b) => a - b)[this.waits.length >> 1];
    return Math.max(STILL_AFTER_MS, LATE * usual);
  }

  // Shows each agent's newest screen.
  end() {
    if (!this.played) return;
    this.played = 0;
    this.onScreens([...new Map(this.kept.flat().map((screen) => [screen.env, screen])).values()]);
  }
}

const sizeOf = (screens) => screens.reduce((sum, {packed}) => sum + packed.length, 0);
