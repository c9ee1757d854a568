// The live screens: one stream of binary messages, of which each holds what has changed.
//
// A browser has six connections for all its windows, and the server gives four of them to streams.
// A further window asks for single messages instead.
// While no picture of a training comes, its newest ones play again; see replay.js.

import {Replay} from "./replay.js";

const RETRY_MS = [500, 1000, 2000, 5000];
const STILL_EVERY_MS = 1000;
const STILLS = 10; // before the next try to get a stream
const LOOK_EVERY_MS = 50;
const BROWSER = browserName();

function browserName() {
  try {
    return localStorage.browser ??= crypto.getRandomValues(new Uint32Array(4)).join("-");
  } catch {
    return ""; // no storage: this page counts as a browser of its own
  }
}

// Reads the stream until it is closed; each message is decoded before the next one.
// onScreens(screens, isAgain): isAgain says that these pictures were shown before, as those of a run
// are that trains(run) and sends nothing new.
export class FrameFeed {
  constructor(address, {onScreens, onLayout, onState, trains}, replays = new Map()) {
    this.address = address;
    this.handlers = {onScreens, onLayout, onState, trains};
    this.packed = new Map();
    this.replays = replays; // by run
    this.isOpen = false;
  }

  open() {
    if (this.isOpen) return;
    this.isOpen = true;
    for (const replay of this.replays.values()) replay.learnsFrom = 0;
    this.timer = setInterval(() => this.look(), LOOK_EVERY_MS);
    this.run(this.abort = new AbortController());
  }

  close() {
    this.isOpen = false;
    this.abort?.abort();
    clearInterval(this.timer);
  }

  look() {
    for (const [run, replay] of this.replays) {
      if (this.handlers.trains(run)) {
        replay.look();
      } else {
        replay.end();
        this.replays.delete(run);
      }
    }
  }

  // Closes with the newest screens in view.
  end() {
    this.close();
    for (const replay of this.replays.values()) replay.end();
  }

  replayOf(run) {
    if (!this.replays.has(run)) this.replays.set(run, new Replay((screens) => this.handlers.onScreens(screens, true)));
    return this.replays.get(run);
  }

  // Timesteps that the run's network learns from now, or 0.
  learnsFrom(run) { return this.replays.get(run)?.learnsFrom ?? 0; }

  async run(abort) {
    for (let tries = 0; !abort.signal.aborted; tries += 1) {
      try {
        const answer = await fetch(`${this.address}&browser=${BROWSER}`, {signal: abort.signal});
        if (answer.ok) {
          this.handlers.onState("open", "");
          await this.read(answer.body.getReader());
          tries = 0;
        } else if (answer.status === 503) {
          await this.takeStills(abort);
          continue;
        } else {
          this.handlers.onState("refused", await answer.text());
        }
      } catch (error) {
        if (abort.signal.aborted) return;
      }
      if (abort.signal.aborted) return;
      this.handlers.onState("lost", "");
      await pause(RETRY_MS[Math.min(tries, 3)]);
    }
  }

  async takeStills(abort) {
    for (let count = 0; count < STILLS && !abort.signal.aborted; count += 1) {
      const answer = await fetch(`${this.address}&once=1`, {signal: abort.signal});
      if (!answer.ok) return;
      this.handlers.onState("open", "");
      await this.read(answer.body.getReader());
      await pause(STILL_EVERY_MS);
    }
  }

  async read(reader) {
    this.packed.clear();
    let rest = new Uint8Array(0);
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      const joined = new Uint8Array(rest.length + value.length);
      joined.set(rest);
      joined.set(value, rest.length);
      rest = joined;
      while (rest.length >= 4) {
        const size = new DataView(rest.buffer, rest.byteOffset).getUint32(0, true);
        if (rest.length < 4 + size) break;
        this.take(await inflated(rest.subarray(4, 4 + size)));
        rest = rest.subarray(4 + size);
      }
    }
  }

  take(data) {
    const size = new DataView(data.buffer).getUint32(0, true);
    const text = JSON.parse(new TextDecoder().decode(data.subarray(4, 4 + size)));
    let at = 4 + size;
    for (const layout of text.layouts ?? []) {
      const own = JSON.stringify(layout);
      if (this.replays.get(layout.run)?.layout !== own) this.replays.delete(layout.run);
      this.replayOf(layout.run).layout = own;
      this.handlers.onLayout(layout);
    }
    for (const screen of text.screens) {
      const key = `${screen.run}/${screen.env}`;
      const block = data.subarray(at, (at += screen.bytes));
      screen.packed = screen.pixels === "key" ? block.slice() : xored(this.packed.get(key), block);
      this.packed.set(key, screen.packed);
      for (const part of screen.parts) {
        const array = ARRAYS[part.dtype];
        const count = part.shape.reduce((product, side) => product * side, 1);
        const bytes = count * array.BYTES_PER_ELEMENT;
        part.values = new array(data.slice(at, at + bytes).buffer);
        at += bytes;
      }
    }
    if (!this.isOpen) return;
    for (const [run, timesteps] of Object.entries(text.learns_from ?? {})) this.replayOf(run).learnsFrom = timesteps;
    for (const run of new Set(text.screens.map((screen) => screen.run))) {
      this.replayOf(run).take(text.screens.filter((screen) => screen.run === run));
    }
    if (text.screens.length) this.handlers.onScreens(text.screens, false);
  }
}

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

const ARRAYS = {
  uint8: Uint8Array, int8: Int8Array, bool: Uint8Array, uint16: Uint16Array, int16: Int16Array,
  uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array,
};

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function xored(before, change) {
  const now = change.slice();
  if (before) for (let i = 0; i < now.length; i += 1) now[i] ^= before[i];
  return now;
}

// Draws packed pixels: with two bits, the four stretches of a picture share the bytes; see packing.py.
export function drawPacked(canvas, packed, layout) {
  const {width, height} = layout;
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const count = width * height;
  if (layout.bits === 2) {
    const colours = layout.palette.map(([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0);
    for (let part = 0; part < 4; part += 1) {
      const start = part * packed.length;
      const shift = 6 - 2 * part;
      for (let i = 0; i < packed.length && start + i < count; i += 1) {
        pixels[start + i] = colours[(packed[i] >> shift) & 3];
      }
    }
  } else if (layout.channels === 3) {
    for (let i = 0; i < count; i += 1) {
      const [r, g, b] = [packed[i], packed[count + i], packed[2 * count + i]];
      pixels[i] = (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
    }
  } else {
    for (let i = 0; i < count; i += 1) pixels[i] = (0xff000000 | (packed[i] * 0x010101)) >>> 0;
  }
  context.putImageData(image, 0, 0);
}
