// What a run that is over leads with: its result, when and why it ended, and what one can do with it.

import {make, setText} from "./elements.js";
import {duration, percent, plural, quoted, reward, whole} from "./words.js";

const WHY = {
  completed: "It has played all its timesteps.",
  until: "It paused at this timestep as requested.",
  stopped: "It was stopped.",
  failed: "It failed.",
  killed: "Its process ended without a message: it was killed, or the machine stopped.",
};

export class Result {
  constructor() {
    this.kind = make("h2", {id: "result-title"});
    this.value = make("p", {class: "result-value"});
    this.note = make("p", {class: "note"});
    this.facts = make("dl", {class: "result-facts"});
    this.commands = make("ul", {class: "list"});
    this.element = make("section", {class: "card result", "aria-labelledby": "result-title", hidden: true},
      make("div", {}, this.kind, this.value, this.note, this.facts),
      make("div", {}, make("h3", {text: "Next steps"}), this.commands));
  }

  show(state) {
    const isOver = !["training", "unknown", "not begun"].includes(state.state);
    this.element.hidden = !isOver;
    const text = JSON.stringify([state.ended, state.state, state.timesteps, state.final_evaluation]);
    if (!isOver || text === this.shown) return;
    this.shown = text;
    this.showResult(state);
    this.facts.replaceChildren(...factsOf(state).flatMap(([name, value]) => [make("dt", {text: name}), make("dd", {text: value})]));
    this.commands.replaceChildren(...commandsOf(state).map(([command, what]) =>
      make("li", {}, make("code", {text: command}), make("span", {class: "note", text: what}))));
  }

  showResult({final_evaluation: final, best_evaluation: best, evaluation}) {
    const shown = final ?? best ?? evaluation;
    setText(this.kind, final ? "Final result" : shown ? "Best result so far" : "Result");
    if (!shown) {
      setText(this.value, "–");
      setText(this.note, "No evaluation was played.");
      return;
    }
    const {success_rate: rate, success_interval: interval, mean_reward: mean, std_reward: deviation, episodes} = shown;
    setText(this.value, rate == null ? `${reward(mean)} reward` : `${percent(rate)} success`);
    const range = interval ? ` (95 % interval ${percent(interval[0])} to ${percent(interval[1])})` : "";
    const earned = `${rate == null ? "standard deviation" : `mean reward ${reward(mean)}, standard deviation`} ${reward(deviation)}`;
    setText(this.note, `in ${plural(episodes, "episode")}${range}; ${earned}`);
  }
}

// With a capital letter, unless it begins with a key of the config.
function sentence(text) { return /^[a-z]+[ ,]/.test(text) ? `${text[0].toUpperCase()}${text.slice(1)}` : text; }

function factsOf({ended, last_event: lastEvent, state, trained_s: trained, timesteps, total_timesteps: total, best_evaluation: best, experiment}) {
  const when = ended?.time ?? lastEvent;
  return [
    [ended ? "Ended" : "Last event", when ? new Date(when).toLocaleString("en-GB", {dateStyle: "full", timeStyle: "short"}) : ""],
    ["Trained for", trained == null ? "" : duration(trained)],
    ["Why it ended", ended?.text ? sentence(ended.text) : experiment && state === "until" ? "Its experiment trained it up to this timestep." : WHY[state] ?? ""],
    ["Timesteps", `${whole(timesteps)}${total && timesteps < total ? ` of at most ${whole(total)}` : ""}`],
    ["Best policy", best ? `of timestep ${whole(best.policy_timesteps)}` : ""],
  ].filter(([, value]) => value);
}

function commandsOf({path, state, experiment, best_evaluation: best, final_evaluation: final}) {
  const found = [];
  if (experiment) found.push([`game-rl train --fork ${quoted(path)} run_dir=runs/NAME total_timesteps=N`, "trains a copy of it, up to timestep N"]);
  else if (state !== "completed") found.push([`game-rl train --resume ${quoted(path)}`, "continues the training"]);
  if (best || final) {
    found.push([`game-rl evaluate ${quoted(path)}`, "plays new episodes"], [`game-rl record ${quoted(path)}`, "records a clip"]);
  }
  return [...found, [`game-rl report ${quoted(path)} --output report.html`, "writes all of this into one file"]];
}
