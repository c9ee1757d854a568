// Which buttons of the Game Boy a person holds: keys, a game pad, and buttons on the screen.

export const KEYS = {
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
  a: "a", s: "b", Enter: "start", Backspace: "select",
};
const OPPOSITE = {left: "right", right: "left", up: "down", down: "up"};

// The standard layout of the Gamepad API; A is on the right, as on a Game Boy.
const PAD = {0: "b", 1: "a", 2: "b", 3: "a", 8: "select", 9: "start", 12: "up", 13: "down", 14: "left", 15: "right"};
const TILT = 0.5; // of a stick, of 1

export class HeldButtons {
  // onChange is called with the buttons, the one held last at the end.
  constructor(onChange) {
    this.onChange = onChange;
    this.keys = new Map(); // code of the key -> button
    this.touched = new Map(); // pointer -> button
    this.pad = [];
    this.order = [];
    this.sent = "";
    window.addEventListener("gamepadconnected", () => {
      if (!this.isPolling) this.poll();
    });
    window.addEventListener("blur", () => this.release());
  }

  // Whether the event was a key of the game.
  key(event, isDown) {
    if (!isDown) {
      const was = this.keys.delete(event.code);
      this.update();
      return was;
    }
    const button = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (!button) return false;
    this.keys.set(event.code, button);
    this.update();
    return true;
  }

  touch(pointer, button) {
    if (button) this.touched.set(pointer, button);
    else this.touched.delete(pointer);
    this.update();
  }

  release() {
    this.keys.clear();
    this.touched.clear();
    this.update();
  }

  poll() {
    const pads = [...navigator.getGamepads()].filter(Boolean);
    if (!pads.length) {
      this.isPolling = false;
      this.pad = [];
      this.update();
      return;
    }
    this.isPolling = true;
    const held = new Set();
    for (const {buttons, axes} of pads) {
      for (const [index, button] of Object.entries(PAD)) if (buttons[index]?.pressed) held.add(button);
      const [x = 0, y = 0] = axes;
      if (x < -TILT) held.add("left");
      if (x > TILT) held.add("right");
      if (y < -TILT) held.add("up");
      if (y > TILT) held.add("down");
    }
    this.pad = [...held];
    this.update();
    requestAnimationFrame(() => this.poll());
  }

  update() {
    const now = new Set([...this.keys.values(), ...this.touched.values(), ...this.pad]);
    this.order = [...this.order.filter((button) => now.has(button)), ...[...now].filter((button) => !this.order.includes(button))];
    const held = this.order.filter((button) => this.order.lastIndexOf(OPPOSITE[button]) < this.order.indexOf(button));
    const text = held.join();
    if (text === this.sent) return;
    this.sent = text;
    this.onChange(held);
  }
}
