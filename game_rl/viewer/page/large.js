// One agent large: its screen, what it chooses between, what it has earned, and what it sees.

import {bar, make, setText} from "./elements.js";
import {drawPacked} from "./frames.js";
import {PartsView} from "./parts.js";
import {number, percent, reward, whole} from "./words.js";

const MOST_SCALE = 3;

export class Large {
  constructor() {
    this.canvas = make("canvas", {width: 160, height: 144, role: "img", "aria-label": "the agent's screen"});
    this.title = make("h3", {text: "Agent"});
    this.facts = make("dl", {class: "facts"});
    this.actions = new Bars("What it chooses");
    this.terms = new Bars("Reward of this episode");
    this.variables = make("dl", {class: "variables"});
    this.arrays = make("dl", {class: "arrays"}); // each on a line of its own, which it may need
    this.variablesBox = make("details", {open: true}, make("summary", {text: "Variables of the game"}), this.variables, this.arrays);
    this.parts = new PartsView();
    this.frame = make("div", {class: "stage"}, this.canvas);
    this.element = make("div", {class: "large"}, this.frame,
      make("div", {class: "beside"}, this.title, this.facts),
      make("div", {class: "pair"}, this.actions.element, this.terms.element), this.variablesBox);
    this.inside = make("div", {class: "inside"}, this.parts.element);
    this.observer = new ResizeObserver(() => this.size());
    this.observer.observe(this.element);
  }

  size() {
    const ratio = window.devicePixelRatio || 1;
    const available = this.element.clientWidth;
    const {width, height} = this.canvas;
    if (!available) return;
    const scale = Math.max(1, Math.min(MOST_SCALE * ratio, Math.floor((available * ratio) / width)));
    this.canvas.style.width = `${(width * scale) / ratio}px`;
    this.canvas.style.height = `${(height * scale) / ratio}px`;
  }

  show(screen, layout) {
    const isNew = this.canvas.width !== layout.width;
    drawPacked(this.canvas, screen.packed, layout);
    if (isNew) this.size();
    const name = `Agent ${screen.env + 1}`;
    setText(this.title, name);
    const action = layout.actions[screen.action] ?? "–";
    this.canvas.setAttribute("aria-label",
      `Screen of agent ${screen.env + 1}: episode ${screen.episode + 1}, reward ${reward(screen.episode_reward)}`);
    rows(this.facts, [
      ["Episode", `${whole(screen.episode + 1)}, from ${screen.start_state.replaceAll("_", " ")}`],
      ["Timestep", whole(screen.episode_timestep)],
      ["Reward so far", reward(screen.episode_reward)],
      ["Expected return", screen.value == null ? "–" : number(screen.value)],
      ["Action", action],
    ]);
    const isShare = layout.action_values === "probabilities";
    const values = screen.action_values;
    this.actions.title(isShare || !values ? "What it chooses between" : "Q-value of each action");
    this.actions.show(layout.actions.map((each, i) => ({
      name: each,
      value: values ? values[i] : null,
      text: !values ? "" : isShare ? percent(values[i]) : number(values[i]),
      isChosen: i === screen.action,
    })), isShare);
    this.terms.show(Object.entries(screen.reward_terms).map(([term, value]) => ({
      name: term, value, text: reward(value), isChosen: false,
    })), false);
    const variables = Object.entries(screen.variables);
    this.variablesBox.hidden = !variables.length;
    if (this.variablesBox.open) {
      rows(this.variables, variables.filter(([, value]) => !Array.isArray(value)).map(([key, value]) => [key, number(value)]));
      rows(this.arrays, variables.filter(([, value]) => Array.isArray(value)).map(([key, value]) => [key, value.map(number).join(" ")]));
    }
    this.parts.show(screen.parts, layout);
    this.inside.hidden = this.parts.element.hidden;
  }
}

// Named bars; the elements stay, so that four pictures a second do not lay the page out anew.
class Bars {
  constructor(title) {
    this.heading = make("h4", {text: title});
    this.list = make("ul", {class: "bars"});
    this.element = make("div", {}, this.heading, this.list);
  }

  title(text) {
    setText(this.heading, text);
  }

  show(entries, isShare) {
    this.element.hidden = !entries.length;
    while (this.list.children.length > entries.length) this.list.lastChild.remove();
    while (this.list.children.length < entries.length) {
      this.list.append(make("li", {}, make("span", {class: "key"}), bar(0), make("span", {class: "text"})));
    }
    const known = entries.map(({value}) => value).filter((value) => value != null);
    const low = isShare ? 0 : Math.min(0, ...known);
    const high = isShare ? 1 : Math.max(0, ...known);
    entries.forEach(({name, value, text, isChosen}, i) => {
      const [key, drawn, shown] = this.list.children[i].children;
      this.list.children[i].classList.toggle("chosen", isChosen);
      setText(key, isChosen ? `▸ ${name}` : name);
      setText(shown, text);
      const [from, to] = [Math.min(value ?? 0, 0), Math.max(value ?? 0, 0)].map((each) => (each - low) / (high - low || 1));
      drawn.firstChild.style.marginLeft = `${100 * from}%`;
      drawn.firstChild.style.width = `${100 * (to - from)}%`;
      drawn.firstChild.classList.toggle("bad", (value ?? 0) < 0);
    });
  }
}

function rows(list, pairs) {
  while (list.children.length > 2 * pairs.length) list.lastChild.remove();
  while (list.children.length < 2 * pairs.length) list.append(make(list.children.length % 2 ? "dd" : "dt"));
  pairs.forEach(([key, value], i) => {
    setText(list.children[2 * i], key);
    setText(list.children[2 * i + 1], value);
  });
}
