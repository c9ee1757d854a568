// The page that game-rl play serves: one WebSocket brings pictures and numbers, and takes buttons.

import {make, setText} from "./elements.js";
import {drawPacked} from "./frames.js";
import {HeldButtons} from "./held_buttons.js";
import {number} from "./words.js";

const RETRY_MS = [500, 1000, 2000, 5000];
const MOST_SAID = 50;
const root = document.getElementById("page");
const announcer = document.getElementById("announcer");

const DEEDS = [
  {key: "p", text: "Pause", words: "pause, or continue"},
  {key: "r", text: "Take back 10 s", words: "take the last ten seconds back", deed: "take_back"},
  {key: "m", text: "Mark a moment", words: "mark this moment for a search of addresses", deed: "moment"},
  {key: "k", text: "Keep as start state", words: "keep this moment as a start state", deed: "start_state"},
  {key: "n", text: "New episode", words: "start a new episode", deed: "again"},
  {key: "f", text: "Fast forward", words: "four times as fast, or normal speed"},
];

class PlayPage {
  constructor() {
    this.held = new HeldButtons((held) => this.send({held, input: (this.input += 1)}));
    this.input = 0;
    this.role = "guest";
    this.state = null;
    this.tries = 0;
    window.addEventListener("keydown", (event) => this.keyed(event));
    window.addEventListener("keyup", (event) => this.held.key(event, false));
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.leave();
    });
    this.lost = make("p", {class: "lost-note", role: "alert"});
    document.body.append(this.lost);
    this.connect();
  }

  connect() {
    const address = new URL("api/play", document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.search = address.hash = "";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({data}) => (typeof data === "string" ? this.take(JSON.parse(data)) : this.draw(data));
    socket.onclose = ({reason}) => {
      const again = "The server does not answer; if it was restarted, open the address that it has printed now.";
      this.say(reason || again);
      setTimeout(() => this.connect(), RETRY_MS[Math.min(this.tries, RETRY_MS.length - 1)]);
      this.tries += 1;
    };
    this.socket = socket;
  }

  say(text) {
    document.body.classList.toggle("lost", Boolean(text));
    setText(this.lost, text);
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  take({game, state, said, role}) {
    if (game) this.open(game);
    if (role) this.setRole(role);
    if (state) this.show(state);
    if (said) this.note(said);
  }

  // A new connection: everything is made again, and the first picture is compared with zeros.
  open(game) {
    this.tries = 0;
    this.say("");
    this.game = game;
    this.arrived = 0;
    this.packed = new Uint8Array((game.width * game.height * game.channels * game.bits) / 8);
    document.title = `${game.title} · game_rl play`;
    if (!this.canvas) root.replaceChildren(this.build());
  }

  draw(data) {
    const view = new DataView(data);
    const change = new Uint8Array(data, 8);
    for (let i = 0; i < change.length; i += 1) this.packed[i] ^= change[i];
    drawPacked(this.canvas, this.packed, this.game);
    this.canvas.dataset.frame = view.getUint32(0, true);
    this.canvas.dataset.input = view.getUint32(4, true);
    this.arrived += 1;
    this.send({seen: this.arrived});
  }

  do(what, name = "") {
    this.send({do: what, name});
  }

  keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.state) return;
    const at = document.activeElement;
    if (at?.matches("input, select, textarea")) {
      if (event.key === "Escape") at.blur();
      return;
    }
    if (at?.matches("button, a, summary") && (event.key === "Enter" || event.key === " ")) return;
    const deed = DEEDS.find(({key}) => key === event.key.toLowerCase()) ?? (event.key === " " ? DEEDS[0] : null);
    if (deed) {
      event.preventDefault();
      if (!event.repeat) this.press(deed);
    } else if (this.held.key(event, true)) {
      event.preventDefault();
    }
  }

  press({key, deed}) {
    if (key === "p") this.do(this.state.paused ? "go" : "pause");
    else if (key === "f") this.do(this.state.fast ? "normal" : "fast");
    else if (key === "n") this.do(deed, this.starts?.value ?? "");
    else if (key === "m" || key === "k") {
      this.do(deed, this.name.value.trim());
      this.name.value = "";
    } else this.do(deed);
  }

  leave() {
    this.held.release();
    if (this.state && this.role === "player" && !this.state.paused) this.do("pause");
  }

  build() {
    const {game} = this;
    const label = `The screen of ${game.title}`;
    this.canvas = make("canvas", {width: game.width, height: game.height, role: "img", "aria-label": label});
    this.veil = make("button", {class: "veil", type: "button"});
    this.veil.addEventListener("click", () => this.unveil());
    this.buttons = DEEDS.map((each) => {
      const button = make("button", {class: "plain", type: "button"}, each.text, make("kbd", {"aria-hidden": "true"}, each.key.toUpperCase()));
      button.addEventListener("click", () => {
        this.press(each);
        button.blur(); // Enter is a button of the game
      });
      return button;
    });
    this.name = make("input", {type: "text", maxlength: "200", id: "name", autocomplete: "off"});
    const naming = make("label", {class: "naming", for: "name"}, "Name of the next start state, or what is known at the next moment (health: 3)", this.name);
    this.starts = make("select", {id: "starts"}, ...game.start_states.map((name) => make("option", {value: name}, name)));
    const from = make("label", {class: "naming", for: "starts"}, "A new episode starts in", this.starts);
    this.title = make("h1", {}, game.title);
    this.pill = make("span", {class: "state"});
    this.under = make("p", {class: "under"}, make("span"), make("span"));
    this.sum = make("p", {class: "sum"});
    this.terms = make("dl", {class: "terms"});
    this.endings = make("dl", {class: "endings"});
    this.variables = make("dl", {class: "variables"});
    this.arrays = make("dl", {class: "arrays"});
    this.said = make("ul", {class: "said"});
    this.notes = card("Notes", this.said);
    this.notes.hidden = true; // until there is one
    const numbers = game.has_game_file
      ? [card("Reward", this.sum, this.terms), card("Endings", this.endings), card("Variables", this.variables, this.arrays)]
      : [card("Only the screen", make("p", {class: "note"}, "This ROM has no game file, so there are no variables and rewards. K keeps a start state for one."))];
    return make("div", {class: "run"},
      make("header", {}, make("div", {class: "title"}, this.title, this.pill), this.under),
      make("main", {id: "main", tabindex: "-1", class: "play"},
        make("section", {class: "game", "aria-label": "The game"},
          make("div", {class: "stage"}, this.canvas, this.veil),
          make("div", {class: "deeds"}, ...this.buttons),
          pad(this.held),
          make("div", {class: "deeds"}, naming, game.start_states.length > 1 ? from : "")),
        make("div", {class: "beside-game"}, ...numbers, this.notes, card("Keys", keyList()))));
  }

  unveil() {
    if (this.role !== "player") this.do("take_controls");
    else if (this.state.over) this.do("again", this.starts?.value ?? "");
    else this.do("go");
    this.veil.blur();
  }

  setRole(role) {
    if (role === "player" && this.role !== "player") this.held.sent = "";
    this.role = role;
    if (this.state) this.show(this.state);
  }

  show(state) {
    const before = this.state;
    this.state = state;
    this.canvas.dataset.dropped = state.dropped;
    if (!before && this.starts) this.starts.value = state.start_state;
    const isMine = this.role === "player";
    const word = state.over ? "over" : state.paused ? "paused" : state.fast ? "fast forward" : "playing";
    setText(this.pill, isMine ? word : "watching");
    this.pill.classList.toggle("running", word === "playing" && isMine);
    this.pill.classList.toggle("good", word === "playing" && isMine);
    const [played, file] = this.under.children;
    setText(played, `${number(state.seconds)} s, ${number(state.timesteps)} timesteps from ${state.start_state}`);
    setText(file, `recorded to ${state.recording}`);
    setText(this.sum, number(state.reward));
    pairs(this.terms, Object.entries(state.reward_terms).map(([name, value]) => [name, number(value)]));
    const endings = this.game.endings.map((name) => [name, name === state.ending ? "met" : "no"]);
    if (state.ending && !this.game.endings.includes(state.ending)) endings.push([state.ending, "met"]);
    pairs(this.endings, endings.length ? endings : [["none in game.yaml", ""]]);
    this.endings.querySelectorAll("dd").forEach((each) => each.classList.toggle("met", each.textContent === "met"));
    const variables = Object.entries(state.variables);
    pairs(this.variables, variables.filter(([, value]) => typeof value !== "string").map(([name, value]) => [name, number(value)]));
    pairs(this.arrays, variables.filter(([, value]) => typeof value === "string"));
    this.buttons.forEach((button) => { button.disabled = !isMine; });
    this.buttons[0].firstChild.textContent = state.paused ? "Continue" : "Pause";
    this.buttons[5].setAttribute("aria-pressed", String(state.fast));
    this.cover(state, isMine);
  }

  cover(state, isMine) {
    const [title, text] = !isMine
      ? ["Another page is playing", this.role === "free" ? "Nobody has the controls: click to play here" : "Click to take the controls"]
      : state.over
        ? [`Over: ${state.over}`, "N or a click: a new episode. R: take ten seconds back"]
        : !state.begun
          ? ["Ready", "Press a button of the game, or click"]
          : state.paused ? ["Paused", "P or a click: continue"] : ["", ""];
    this.veil.hidden = !title;
    this.veil.classList.toggle("clear", title === "Paused");  // the numbers on the screen can be read
    if (this.veil.dataset.text === title + text) return;
    this.veil.dataset.text = title + text;
    this.veil.replaceChildren(make("b", {}, title), make("span", {}, text));
    if (title) setText(announcer, `${title}. ${text}`);
  }

  note(text) {
    this.notes.hidden = false;
    this.said.prepend(make("li", {}, text));
    while (this.said.children.length > MOST_SAID) this.said.lastChild.remove();
    setText(announcer, text);
  }
}

const card = (title, ...children) => make("section", {class: "card", "aria-label": title}, make("h2", {}, title), ...children);

// Changes a list of terms and values in place.
function pairs(list, rows) {
  while (list.children.length > 2 * rows.length) list.lastChild.remove();
  rows.forEach(([name, value], index) => {
    if (!list.children[2 * index]) list.append(make("dt"), make("dd"));
    setText(list.children[2 * index], name);
    setText(list.children[2 * index + 1], value);
  });
}

function keyList() {
  const rows = [
    [["←", "↑", "→", "↓"], "directional pad"], [["A"], "A"], [["S"], "B"], [["Enter"], "START"], [["Backspace"], "SELECT"],
    ...DEEDS.map(({key, words}) => [[key.toUpperCase()], words]),
  ];
  const list = make("dl", {class: "keys"});
  for (const [keys, words] of rows) {
    list.append(make("dt", {}, ...keys.map((key) => make("kbd", {}, key))), make("dd", {}, words));
  }
  list.append(make("dt", {}, "game pad"), make("dd", {}, "its directional pad or left stick, A on the right, B below, START, SELECT"));
  return list;
}

function pad(held) {
  const key = (button, text) => {
    const element = make("button", {type: "button", tabindex: "-1", "aria-label": button}, text);
    const down = (event) => {
      event.preventDefault();
      element.setPointerCapture(event.pointerId);
      element.classList.add("down");
      held.touch(event.pointerId, button);
    };
    const up = (event) => {
      element.classList.remove("down");
      held.touch(event.pointerId, null);
    };
    element.addEventListener("pointerdown", down);
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) element.addEventListener(name, up);
    element.addEventListener("contextmenu", (event) => event.preventDefault());
    return element;
  };
  return make("div", {class: "pad", role: "group", "aria-label": "The buttons of the Game Boy"},
    make("div", {class: "cross"}, key("up", "↑"), key("left", "←"), key("right", "→"), key("down", "↓")),
    make("div", {class: "letters"}, key("b", "B"), key("a", "A")),
    make("div", {class: "small"}, key("select", "SELECT"), key("start", "START")));
}

new PlayPage();
