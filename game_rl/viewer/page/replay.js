// The newest pictures of a run once more, while nothing new comes: the page then moves on without a stop.

const MOST = 48; // pictures of an agent, twelve seconds at four a second
const MOST_BYTES = 8 << 20; // of all of them
const AGAIN_EVERY_MS = 250;
const STILL_AFTER_MS = 350; // without a new picture
const LATE = 1.4; // times the usual wait for a picture, if that is longer: agents that are slow play on
const USUAL_OF = 9; // waits
const FIRST_COUNT = 12;
const LEAST_COUNT = 4;

// onScreens(screens) gets one of the kept screens of each agent again.
export class Replay {
  constructor(onScreens) {
    this.onScreens = onScreens;
    this.kept = new Map(); // screens by agent, the newest last
    this.moment = new Set(); // agents that have sent a screen since the first of them did
    this.learnsFrom = 0; // timesteps that the network learns from now
    this.waits = []; // between moments
    this.count = FIRST_COUNT; // pictures that the last stop took: from so far back it begins
    this.played = 0;
  }

  // New screens of agents that play; they may come in several messages, each on some of the agents.
  take(screens) {
    const fresh = screens.filter((screen) => this.keep(screen));
    if (!fresh.length) return;
    if (this.played || fresh.some(({env}) => this.moment.has(env))) this.moment.clear();
    if (!this.moment.size) this.begin();
    for (const {env} of fresh) this.moment.add(env);
  }

  // Returns whether the screen is of another timestep than the agent's last one.
  keep(screen) {
    const known = this.kept.get(screen.env) ?? [];
    this.kept.set(screen.env, known);
    const isNew = known.at(-1)?.timestep !== screen.timestep;
    if (!isNew) known.pop();
    known.push(screen);
    if (known.length > Math.min(MOST, Math.max(2, MOST_BYTES / (this.kept.size * screen.packed.length)))) known.shift();
    return isNew;
  }

  begin() {
    const now = performance.now();
    if (this.takenAt != null) this.waits = [...this.waits, now - this.takenAt].slice(-USUAL_OF);
    this.takenAt = this.shownAt = now;
    if (this.played) this.count = Math.max(LEAST_COUNT, this.played);
    this.played = 0;
  }

  // Plays the next pictures again if it is time to; to be called often.
  look() {
    const now = performance.now();
    if (this.waits.length < 1 || now - this.shownAt < this.patience) return;
    this.shownAt = now;
    const next = (known) => known[(Math.max(0, known.length - this.count) + this.played) % known.length];
    this.onScreens([...this.kept.values()].map(next));
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
    this.onScreens([...this.kept.values()].map((known) => known.at(-1)));
  }
}
