// The top of a page: what it is, how well it goes, and when it ends, in one sentence and a bar.

import {bar, make, setText} from "./elements.js";
import {clock, duration, listed, percent, percentage, plural, reward, whole} from "./words.js";

export const STATES = {
  training: ["training", "good"],
  exploring: ["exploring", "good"],
  completed: ["complete", "good"],
  until: ["paused", ""],
  stopped: ["stopped", ""],
  failed: ["failed", "bad"],
  killed: ["killed", "bad"],
  unknown: ["state unknown", ""],
};

export class Heading {
  constructor({back = null} = {}) {
    this.title = make("h1");
    this.state = make("span", {class: "state"});
    this.sentence = make("p", {class: "sentence"});
    this.progress = make("div", {class: "progress", role: "progressbar", "aria-label": "Timesteps played", "aria-valuemin": 0, "aria-valuemax": 100}, bar(0));
    this.played = make("span");
    this.left = make("span");
    this.element = make("header", {}, back,
      make("div", {class: "title"}, this.title, this.state), this.sentence,
      this.progress, make("p", {class: "under"}, this.played, this.left));
  }

  show({title, state, sentence, share, played, left}) {
    setText(this.title, title);
    document.title = `${share == null ? "" : `${percent(Math.min(1, share))} · `}${title} – game_rl`;
    const [word, tone] = STATES[state] ?? [state, ""];
    setText(this.state, word);
    this.state.className = `state ${tone} ${["training", "exploring"].includes(state) ? "running" : ""}`;
    setText(this.sentence, sentence);
    this.progress.hidden = share == null;
    this.progress.querySelector(".fill").style.width = `${100 * Math.min(1, share ?? 0)}%`;
    this.progress.setAttribute("aria-valuenow", percentage(Math.min(1, share ?? 0)));
    setText(this.played, played);
    setText(this.left, left);
  }
}

// From an experiment or exploration to the folder that it was found in.
export function linkUp(run) {
  return run ? make("nav", {"aria-label": "Up", class: "up"}, make("a", {href: "#", class: "back", text: "← all runs"})) : null;
}

export function runSentence(state) {
  const {game, n_envs: agents, algorithm, success_rate: success, mean_reward: earned} = state;
  const who = agents ? plural(agents, "agent") : "The agents";
  const from = state.start_states.length > 1 && state.start_states.length < 5 ? ` from ${listed(state.start_states).replaceAll("_", " ")}` : "";
  const plays = `${who} ${agents === 1 ? "plays" : "play"} ${game || "the game"}${from} with one policy` +
    (algorithm ? `, which learns with ${algorithm.toUpperCase()}` : "") +
    (state.memory ? ` and remembers with ${state.memory}` : "");
  const result = [];
  const final = state.final_evaluation;
  const last = final ?? state.best_evaluation ?? state.evaluation;
  if (state.state === "training") {
    if (success != null) result.push(`succeed in ${percent(success)} of their episodes`);
    else if (earned != null) result.push(`earn ${reward(earned)} an episode`);
    return `${plays}. ${result.length ? `They ${result[0]}.` : "No episode has ended yet."}`;
  }
  const did = plays.replace(" play ", " played ").replace("learns", "learned").replace("remembers", "remembered");
  if (!last) return `${did}. No evaluation was played.`;
  const how = last.success_rate == null ? `earns ${reward(last.mean_reward)} an episode` : `succeeds in ${percent(last.success_rate)} of ${plural(last.episodes, "episode")}`;
  const which = final ? "In the final evaluation, the best policy" : "The best policy so far";
  return `${did}. ${which} ${how}.`;
}

// What a run does beside playing and learning, in words after "it is".
const PHASES = {
  evaluating: "playing an evaluation",
  confirming: "confirming its goal with new episodes",
  "final evaluation": "playing the final evaluation",
  recording: "recording the clip",
};

export function runProgress(state) {
  const {timesteps, total_timesteps: total, seconds_left: left, left_is: kind} = state;
  const isTraining = state.state === "training";
  const isComplete = state.state === "completed";
  const atMost = state.stop_when.length > 0;
  const share = isComplete ? 1 : total ? timesteps / total : null;
  let played = `${whole(timesteps)} timesteps`;
  if (total && timesteps < total) {
    played = isComplete ? `${whole(timesteps)} timesteps, of at most ${whole(total)}`
      : `${whole(timesteps)} of ${atMost ? "at most " : ""}${whole(total)} timesteps`;
  }
  const early = atMost && isTraining && timesteps < total ? `; it ends early with ${state.stop_when.join(" or ")}` : "";
  const when = [];
  if (isTraining && PHASES[state.phase]) when.push(`now ${PHASES[state.phase]}`);
  if (left != null) {
    const end = clock(new Date(Date.now() + 1000 * left));
    when.push(kind === "at most" ? `ends by ${end} at the latest, in ${duration(left)}` : `ends about ${end}, in ${duration(left)}`);
  } else if (isTraining && !when.length && total) {
    when.push(timesteps >= total ? "about to end" : "the time left is known after the first updates");
  }
  return {share, played: played + early, left: when.join("; ")};
}
