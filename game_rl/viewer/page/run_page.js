// The page of one run.

import {Clip} from "./clip.js";
import {Curves} from "./curves.js";
import {bar, make, setText} from "./elements.js";
import {Figures} from "./figures.js";
import {FrameFeed} from "./frames.js";
import {Happenings} from "./happenings.js";
import {Heading, runProgress, runSentence} from "./heading.js";
import {Large} from "./large.js";
import {PlacesMap} from "./places.js";
import {Result} from "./result.js";
import {Screens} from "./screens.js";
import {Settings} from "./settings.js";
import {clock, duration, pauseWords, plural, quoted, reward, short, whole} from "./words.js";

const MOST_MILESTONES = 12;
const DOING_EVERY_MS = 250;
const WAITS_AFTER_MS = 300;
const DOING = {
  evaluating: "playing an evaluation …",
  confirming: "playing new episodes to confirm the goal …",
  "final evaluation": "playing the final evaluation …",
  recording: "recording the clip …",
};

export class RunPage {
  constructor(run, agent, {announce, go}) {
    Object.assign(this, {run, agent, go});
    this.layout = null;
    this.newest = new Map();
    this.replays = new Map();
    this.isPaused = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.up = make("nav", {"aria-label": "Up", class: "up"});
    const back = this.up;
    this.heading = new Heading({back});
    this.figures = new Figures();
    this.happenings = new Happenings({announce});
    this.places = new PlacesMap(run);
    this.large = new Large();
    this.curves = new Curves(run, {onCurves: (curves) => this.showSparks(curves)});
    this.screens = new Screens({
      label: "The agents' screens; the arrow keys go from one to another",
      onChoose: (key) => this.go({run: this.run, agent: Number(key.slice(key.lastIndexOf("/") + 1))}),
      nameOf: (screen) => `Agent ${screen.env + 1}`,
      noteOf: (screen) => reward(screen.episode_reward),
    });
    this.makeSections();
  }

  makeSections() {
    this.button = make("button", {type: "button", class: "plain", onclick: () => this.toggle()});
    this.liveNote = make("p", {class: "note live-note"});
    this.table = make("tbody");
    const columns = ["Agent", "Episode", "Timestep", "Action", "Reward", "Place"];
    this.tableBox = make("details", {class: "table-box"}, make("summary", {text: "The agents as a table"}),
      make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the agents"},
        make("table", {}, make("thead", {}, make("tr", {}, ...columns.map((text) => make("th", {scope: "col", text})))), this.table)));
    this.stage = make("div", {class: "agents"}, this.large.element, this.screens.element, this.large.inside);
    this.agentsTitle = make("h2", {id: "agents-title", text: "The agents now"});
    this.doing = make("span", {class: "doing"});
    this.agents = make("section", {class: "card", "aria-labelledby": "agents-title"},
      make("div", {class: "card-head"}, make("div", {class: "title"}, this.agentsTitle, this.doing), this.button),
      this.liveNote, this.stage, this.tableBox);
    this.hints = card("Hints", "hints");
    this.milestones = card("Milestones", "milestones");
    this.states = card("Newest evaluation by start state", "states");
    this.pool = card("Episodes from the pool, by the reward at their start", "pool");
    this.clip = new Clip();
    this.result = new Result();
    this.settings = new Settings(this.run);
    this.ended = make("div", {class: "ended"});
    this.wide = make("div", {class: "wide"}, this.curves.element, this.places.element);
    this.narrow = make("div", {class: "narrow"}, this.states, this.pool, this.happenings.element, this.milestones, this.clip.element, this.settings.element);
    const main = make("main", {id: "main", tabindex: -1}, this.result.element, this.ended, this.figures.element, this.hints, this.agents,
      make("div", {class: "columns"}, this.wide, this.narrow));
    this.element = make("div", {class: "run"}, this.heading.element, main);
    this.showButton();
  }

  setState(state) {
    const wasLive = this.mayBeLive;
    this.state = state;
    if (this.mayBeLive && !wasLive) this.resume();
    if (!this.mayBeLive) this.end();
    const sentence = runSentence(state);
    this.heading.show({title: state.name, state: state.state, sentence, ...runProgress(state)});
    this.figures.show(state);
    if (state.n_envs && !this.newest.size && state.state === "training") {
      this.screens.expect(Array.from({length: state.n_envs}, (_, env) => `${this.run}/${env}`));
    }
    this.curves.refresh(state.n_curve_points);
    this.places.flags = state.milestones;
    this.places.refresh();
    this.showHints(state.hints);
    this.showMilestones(state.milestones);
    this.showStates(state);
    this.showPool(state.pool?.levels ?? []);
    this.clip.show(this.run, state.clips[0]);
    this.result.show(state);
    this.showUp(state);
    this.showLiveNote();
  }

  setOthers(names) { this.curves.setOthers(names); }

  setHappenings(lines) { this.happenings.set(lines); }

  addHappenings(lines) { this.happenings.add(lines); }

  // -- live screens

  // What is finished has no live screens, and takes no connection for them.
  get mayBeLive() {
    return this.state?.state === "training" || this.state?.state === "unknown";
  }

  resume() {
    if (!this.mayBeLive || this.feed || (this.isPaused && this.newest.size)) return;
    this.openFeed();
  }

  pause() {
    this.feed?.close();
    this.feed = null;
    clearInterval(this.timer);
    this.timer = null;
    setText(this.doing, "");
  }

  close() { this.pause(); }

  end() {
    this.feed?.end();
    this.pause();
  }

  openFeed() {
    const address = `api/frames?run=${encodeURIComponent(this.run)}&env=${this.agent}`;
    this.feed = new FrameFeed(address, {
      onLayout: (layout) => { this.layout = layout; this.screens.setLayout(layout); this.newest.clear(); },
      onScreens: (screens, isAgain) => this.onScreens(screens, isAgain),
      trains: () => this.state?.state === "training",
      onState: (state, text) => { this.refusal = state === "refused" ? text : ""; this.showLiveNote(); },
    }, this.replays);
    this.feed.open();
    this.timer ??= setInterval(() => this.showDoing(), DOING_EVERY_MS);
  }

  // While the network learns or is evaluated, nobody plays here, and the newest screens play again.
  showDoing() {
    const isTraining = this.state?.state === "training" && this.newest.size && !this.isPaused;
    const learnsFrom = this.feed?.learnsFrom(this.run) ?? 0;
    const isWaiting = performance.now() - (this.playedAt ?? 0) > WAITS_AFTER_MS;
    const doing = learnsFrom ? `learning from ${plural(learnsFrom, "timestep")} …` : isWaiting ? DOING[this.state?.phase] ?? "" : "";
    const again = this.isAgain ? "replaying the last screens" : "";
    setText(this.doing, isTraining ? [doing, again].filter(Boolean).join(" ") : "");
  }

  choose(agent) {
    if (agent === this.agent) return;
    this.agent = agent;
    this.screens.choose(`${this.run}/${agent}`);
    this.places.large = agent;
    this.showLarge();
    this.pause();
    if (this.mayBeLive) this.openFeed(); // which now brings what this agent sees; a paused page takes one picture
  }

  toggle() {
    this.isPaused = !this.isPaused;
    if (this.isPaused) this.end();
    else this.resume();
    this.showButton();
  }

  showButton() {
    setText(this.button, pauseWords(this.isPaused));
  }

  onScreens(screens, isAgain) {
    if (!this.newest.size) {
      this.screens.expect(Array.from({length: this.layout.n_envs}, (_, env) => `${this.run}/${env}`));
      this.screens.choose(`${this.run}/${this.agent}`);
      this.places.large = this.agent;
    }
    for (const screen of screens) this.newest.set(screen.env, screen);
    this.isAgain = isAgain;
    if (!isAgain) this.playedAt = performance.now();
    this.showDoing();
    this.screens.show(screens);
    if (screens.some(({env}) => env === this.agent)) this.showLarge();
    if (!isAgain) this.places.move(screens, this.layout);
    this.showTable();
    this.showLiveNote();
    if (this.isPaused) this.pause();
  }

  showLarge() {
    const screen = this.newest.get(this.agent);
    if (screen) this.large.show(screen, this.layout);
  }

  showTable() {
    const now = performance.now();
    if (!this.tableBox.open || now - (this.tabledAt ?? -1000) < 1000) return;
    this.tabledAt = now;
    const rows = [...this.newest.values()].sort((a, b) => a.env - b.env).map((screen) => [
      `Agent ${screen.env + 1}`, whole(screen.episode + 1), whole(screen.episode_timestep),
      this.layout.actions[screen.action] ?? "–", reward(screen.episode_reward), screen.place ? screen.place.join(", ") : "–",
    ]);
    this.table.replaceChildren(...rows.map(([first, ...others]) =>
      make("tr", {}, make("th", {scope: "row", text: first}), ...others.map((text) => make("td", {text})))));
  }

  showLiveNote() {
    const isLive = this.newest.size > 0;
    this.stage.hidden = !isLive;
    this.tableBox.hidden = !isLive;
    this.button.hidden = !isLive;
    const hasEnded = this.state && this.state.state !== "training";
    setText(this.agentsTitle, hasEnded ? "The agents" : "The agents now");
    this.arrange(!this.result.element.hidden && !this.clip.element.hidden);
    setText(this.liveNote, this.refusal || (hasEnded && isLive ? "The training has ended; these are its last screens." : isLive ? "" : noPictures(this.state)));
    this.liveNote.hidden = !this.liveNote.textContent;
  }

  // Of agents that play no more, the clip is all that there is to see; it stands beside the curves.
  arrange(isClipFirst) {
    this.agents.hidden = isClipFirst && !this.newest.size;
    this.ended.hidden = !isClipFirst;
    if (isClipFirst === (this.clip.element.parentElement === this.ended)) return;
    if (isClipFirst) {
      this.ended.append(this.clip.element, this.curves.element);
    } else {
      this.wide.prepend(this.curves.element);
      this.milestones.after(this.clip.element);
    }
  }

  // Where the run belongs: its experiment, or the folder whose page this is.
  showUp({experiment}) {
    const name = experiment?.split(/[\\/]/).at(-1);
    const above = this.run.split("/").slice(0, -1).join("/"); // the experiment in a folder
    const link = this.run ? make("a", {href: above ? `#run=${encodeURIComponent(above)}` : "#", class: "back", text: experiment ? `← ${name}` : "← all runs"}) : null;
    const of = experiment && !this.run ? make("span", {class: "note"}, "A run of the experiment ", make("b", {text: name}), ": ", make("code", {text: `game-rl watch ${quoted(experiment)}`})) : null;
    const shown = [link, of].filter(Boolean);
    if (shown.map((each) => each.outerHTML).join() !== [...this.up.children].map((each) => each.outerHTML).join()) this.up.replaceChildren(...shown);
    this.up.hidden = !shown.length;
  }

  // -- what stands beside

  showSparks(curves) {
    this.figures.spark("success", curves["training/success_rate"]?.values ?? []);
    this.figures.spark("reward", curves["training/mean_reward"]?.values ?? []);
    this.figures.spark("speed", curves["training/timesteps_per_s"]?.values ?? []);
  }

  showHints(hints) {
    this.hints.hidden = !hints.length;
    this.hints.fill(hints.map(({text, key, timesteps}) => make("li", {}, make("p", {text}),
      make("p", {class: "note"}, key ? make("code", {text: key}) : "", ` at timestep ${short(timesteps)}`))), "ul");
  }

  showMilestones(milestones) {
    this.milestones.hidden = !milestones.length;
    const newest = milestones.slice(-MOST_MILESTONES).reverse();
    const items = newest.map(({text, timesteps, hours}) => make("li", {}, make("p", {text}),
      make("p", {class: "note", text: `timestep ${short(timesteps)}${hours == null ? "" : `, after ${duration(3600 * hours)}`}`})));
    const others = milestones.length - newest.length;
    if (others) items.push(make("li", {class: "note", text: `and ${whole(others)} before`}));
    this.milestones.fill(items, "ol");
  }

  showPool(levels) {
    this.pool.hidden = !levels.length;
    this.pool.fill(levels.map(({least_reward: least, most_reward: most, states, episodes, successes, mean_reward: mean}) => {
      const [from, to] = [reward(least), reward(most)];
      const note = `goal met, from ${plural(states, "state")}${mean == null ? "" : `; mean reward ${reward(mean)}`}`;
      return make("li", {}, make("p", {class: "both"}, make("span", {text: `reward ${from === to ? from : `${from} to ${to}`}`}),
        make("b", {text: `${whole(successes)} of ${whole(episodes)}`})),
        bar(episodes ? successes / episodes : 0), make("p", {class: "note", text: note}));
    }), "ul");
  }

  showStates({final_evaluation: final, evaluation}) {
    const found = Object.entries((final ?? evaluation)?.by_start_state ?? {});
    this.states.hidden = !found.length;
    setText(this.states.querySelector("h2"), `${final ? "Final" : "Newest"} evaluation by start state`);
    this.states.fill(found.map(([name, {episodes, successes, mean_reward: mean}]) => {
      const result = successes == null ? `reward ${reward(mean)}` : `${whole(successes)} of ${whole(episodes)}`;
      const note = successes == null ? `${whole(episodes)} episodes` : `successful; reward ${reward(mean)}`;
      return make("li", {}, make("p", {class: "both"}, make("span", {text: name.replaceAll("_", " ")}), make("b", {text: result})),
        successes == null ? null : bar(successes / episodes), make("p", {class: "note", text: note}));
    }), "ul");
  }
}

function card(title, id) {
  const element = make("section", {class: `card ${id}`, "aria-labelledby": `${id}-title`, hidden: true}, make("h2", {id: `${id}-title`, text: title}));
  let shown = "";
  element.fill = (children, tag) => {
    const text = children.map((child) => child.outerHTML).join("");
    if (text === shown) return;
    shown = text;
    element.querySelector(".list")?.remove();
    element.append(make(tag, {class: "list"}, ...children));
  };
  return element;
}

function noPictures(state) {
  if (!state || state.state === "training") return "Screens appear with the next timesteps. A training that started with an older version of game_rl, or with live.fps: 0, shows none.";
  if (state.state === "unknown") return "Nothing is live, and this user may not read whether the run is training.";
  const when = state.ended ? ` It ended ${clock(new Date(state.ended.time))}.` : "";
  return `Nothing is live, because this run is not training.${when}`;
}
