// How the agents learn: success and reward, then all other curves by group.

import {Chart} from "./chart.js";
import {make, setText} from "./elements.js";
import {number, percent, whole} from "./words.js";

const EVERY_MS = 5000;
const MOST_TOGETHER = 8;

// A curve belongs to the first group whose prefix it has; those of one chart have the same unit.
const GROUPS = [
  {prefix: "game/reward/", title: "Reward terms", note: "Sum over an episode", isTogether: true},
  {prefix: "game/ending/", title: "How episodes end", note: "Share of the episodes", isTogether: true, format: percent},
  {prefix: "game/stuck/", title: "Going in circles", name: (name) => (name === "episodes" ? "share of episodes that are stuck" : `${name} in which an episode is stuck`)},
  {prefix: "game/looped/", title: "Going in circles", name: (name) => `${name}: share that is earned in a loop`},
  {prefix: "eval/success_rate/", title: "Evaluation by start state", note: "Success", isTogether: true, format: percent},
  {prefix: "eval/mean_reward/", title: "Evaluation by start state", note: "Mean reward", isTogether: true},
  {prefix: "pool/", title: "Episodes from the pool", name: (name) => POOL[name]},
  {prefix: "rollout/", title: "Episodes", name: (name) => EPISODES[name]},
  {prefix: "eval/", title: "Evaluation"},
  {prefix: "train/", title: "Learning"},
  {prefix: "game/", title: "Variables at the end of an episode"},
  {prefix: "learn_from/", title: "Learning from Lakes"},
  {prefix: "offline/", title: "Before the first timestep"},
  {prefix: "replay/", title: "Lake"},
  {prefix: "upload/", title: "Upload"},
  {prefix: "milestones/", title: "Milestones"},
  {prefix: "time/", title: "Speed", name: (name) => (name === "fps" ? "timesteps per second" : null)},
  {prefix: "resources/", title: "Machine", name: (name) => MACHINE[name]},
  {prefix: "", title: "Others"},
];
const EPISODES = {ep_rew_mean: "reward", ep_len_mean: "length in timesteps", truncated: "share cut off by a limit"};
const POOL = {
  states: "states", share: "share of episodes that start in it", passed: "share of a route's states that are passed",
  success_rate: "goal met from the pool", success_rate_from_start: "goal met from the start states",
  reward: "reward from the pool", reward_from_start: "reward from the start states",
};
const MACHINE = {
  ram_gib: "memory in GiB", vram_gib: "GPU memory in GiB", ram_free_gib: "free memory in GiB",
  disk_free_gib: "free disk in GiB", cpu_percent: "processor in %",
};
const SHOWN_FIRST = ["training/", "baseline/", "evaluation/", "evaluation_stochastic/", "final/"];
const MOST_OTHERS = 3; // runs laid over; the palette has as many colours that mean nothing else
const OTHERS_FROM = 6; // the first of them

export class Curves {
  constructor(run, {onCurves}) {
    Object.assign(this, {run, onCurves, curves: {}, groups: new Map()});
    this.success = new Chart({title: "Success", format: (value) => percent(value), range: [0, 1]});
    this.reward = new Chart({title: "Mean reward of an episode"});
    this.none = make("p", {class: "note", text: "The first curves come with the first update."});
    this.box = make("div", {class: "groups"});
    this.others = new Map();
    this.laidOver = make("details", {class: "laid-over", hidden: true}, make("summary", {text: "Overlay other runs"}), make("ul", {class: "choices"}));
    this.filter = make("input", {type: "search", placeholder: "Find a curve", "aria-label": "Find a curve", oninput: () => this.find()});
    this.element = make("section", {class: "card", "aria-labelledby": "learning-title"},
      make("div", {class: "card-head"}, make("h2", {id: "learning-title", text: "Learning curves"}), this.filter), this.none,
      make("div", {class: "charts"}, this.success.element, this.reward.element), this.laidOver, this.box);
    this.filter.hidden = true;
    this.noneFound = make("p", {class: "note", role: "status", hidden: true});
    this.box.before(this.noneFound);
  }

  // Asks for the curves if there are more points than at the last time.
  async refresh(points) {
    const now = performance.now();
    if (points === this.points || this.isAsking || now - (this.askedAt ?? -EVERY_MS) < EVERY_MS) return;
    [this.isAsking, this.askedAt] = [true, now];
    try {
      const curves = await readCurves(this.run);
      if (!curves) return; // the next state asks again
      for (const name of this.others.keys()) this.others.set(name, await readCurves(name) ?? this.others.get(name));
      this.show(curves);
      this.points = points;
    } finally {
      this.isAsking = false;
    }
  }

  // Other runs of the place, whose success and reward may be laid over.
  setOthers(names) {
    if (JSON.stringify(names) === this.names) return;
    this.names = JSON.stringify(names);
    this.laidOver.hidden = !names.length;
    for (const name of this.others.keys()) if (!names.includes(name)) this.others.delete(name);
    this.laidOver.lastChild.replaceChildren(...names.map((name) => make("li", {}, make("label", {class: "check"},
      make("input", {type: "checkbox", "aria-label": `Lay ${name} over`, checked: this.others.has(name), onchange: ({target}) => this.layOver(name, target.checked)}), ` ${name}`))));
  }

  async layOver(name, isChosen) {
    this.others.delete(name);
    if (isChosen) this.others.set(name, await readCurves(name) ?? {});
    const isFull = this.others.size >= MOST_OTHERS;
    for (const box of this.laidOver.querySelectorAll("input")) box.disabled = isFull && !box.checked;
    this.showFirst();
  }

  showFirst() {
    for (const [chart, key] of [[this.success, "success_rate"], [this.reward, "mean_reward"]]) {
      const others = [...this.others].flatMap(([name, curves], i) => newestOf(curves, key, name, OTHERS_FROM + i));
      chart.show([...withBaselines(this.curves, key, ownCurves(this.curves, key)), ...others]);
    }
  }

  show(curves) {
    this.curves = curves;
    this.showFirst();
    this.none.hidden = Object.keys(curves).length > 0;
    const grouped = new Map(GROUPS.map(({title}) => [title, new Map()]));
    for (const [key, curve] of Object.entries(curves)) {
      if (SHOWN_FIRST.some((prefix) => key.startsWith(prefix))) continue;
      const group = GROUPS.find(({prefix}) => key.startsWith(prefix));
      const found = grouped.get(group.title);
      found.set(group, [...(found.get(group) ?? []), [key.slice(group.prefix.length), curve]]);
    }
    for (const [title, found] of grouped) if (found.size) this.showGroup(title, found);
    this.filter.hidden = !this.groups.size;
    this.onCurves(curves);
  }

  showGroup(title, found) {
    let group = this.groups.get(title);
    if (!group) {
      group = {charts: new Map(), body: make("div", {class: "small-charts"}), note: make("p", {class: "note"}), summary: make("summary")};
      group.box = make("details", {}, group.summary, group.body, group.note);
      this.groups.set(title, group);
      const later = GROUPS.slice(GROUPS.findLastIndex((each) => each.title === title) + 1).map((each) => this.groups.get(each.title));
      this.box.insertBefore(group.box, later.find(Boolean)?.box ?? null);
    }
    const [constant, count] = [[], [...found.values()].reduce((sum, curves) => sum + curves.length, 0)];
    for (const [{prefix, note, isTogether, format, name}, curves] of found) {
      if (isTogether && curves.length <= MOST_TOGETHER) {
        const series = curves.map(([key, curve], i) => ({name: words(key), colour: i + 1, ...curve}));
        this.chart(group, prefix, {title: note, format}).show(series);
        continue;
      }
      for (const [key, curve] of curves) {
        const shown = name?.(key) ?? words(key);
        if (curve.values.length > 2 && curve.values.every((value) => value === curve.values[0])) {
          constant.push(`${shown} ${number(curve.values[0])}`);
          group.charts.get(prefix + key)?.element.remove();
          group.charts.delete(prefix + key);
        } else {
          this.chart(group, prefix + key, {title: shown, height: 120, isSmall: true, format}).show([{name: "", colour: 1, ...curve}]);
        }
      }
    }
    group.summary.textContent = `${title} (${whole(count)})`;
    group.note.textContent = constant.length ? `Unchanged so far: ${constant.join("; ")}.` : "";
    this.find();
  }

  chart({charts, body}, key, options) {
    let chart = charts.get(key);
    if (!chart) {
      chart = new Chart({format: number, ...Object.fromEntries(Object.entries(options).filter(([, value]) => value != null))});
      if (!options.isSmall) chart.element.classList.add("together");
      charts.set(key, chart);
      body.append(chart.element);
    }
    return chart;
  }

  // Leaves the charts whose title, group or TensorBoard name holds the text, and opens their groups.
  find() {
    const wanted = this.filter.value.trim().toLowerCase();
    for (const [title, {box, charts, note}] of this.groups) {
      const isGroup = title.toLowerCase().includes(wanted);
      let some = isGroup;
      for (const [key, {element, title: name, series}] of charts) {
        const names = [key, name, ...series.map((one) => one.name)];
        const isFound = isGroup || names.some((each) => each.toLowerCase().includes(wanted));
        element.classList.toggle("filtered", !isFound);
        some ||= isFound;
      }
      some ||= note.textContent.toLowerCase().includes(wanted);
      box.hidden = !some;
      if (wanted && !this.wasFinding) box.wasOpen = box.open;
      if (wanted) box.open = some;
      else if (this.wasFinding) box.open = box.wasOpen;
    }
    this.wasFinding = Boolean(wanted);
    this.noneFound.hidden = !wanted || [...this.groups.values()].some(({box}) => !box.hidden);
    setText(this.noneFound, this.noneFound.hidden ? "" : `No curve has “${this.filter.value.trim()}” in its name.`);
  }
}

// The curves of a run, or null.
export async function readCurves(run) {
  try {
    const answer = await fetch(`api/curves?run=${encodeURIComponent(run)}`);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

function ownCurves(curves, key) {
  const named = (group, name, colour, more = {}) => curves[`${group}/${key}`] ? [{name, colour, ...more, ...curves[`${group}/${key}`]}] : [];
  return [
    ...named("training", "training", "training"), ...named("evaluation", "evaluation", "evaluation", {isPoints: true}),
    ...named("evaluation_stochastic", "evaluation, stochastic", "stochastic-evaluation", {isPoints: true}),
    ...named("final", "final evaluation", "evaluation", {isLast: true}),
  ];
}

// One curve for a run among others: its evaluations, or what it reached in training if there are none.
export function newestOf(curves, key, name, colour) {
  const group = ["evaluation", "evaluation_stochastic", "training"].find((each) => curves[`${each}/${key}`]);
  if (!group) return [];
  const {timesteps, values} = curves[`${group}/${key}`];
  const isTraining = group === "training";
  return [{name: isTraining ? `${name}, training` : name, colour, isDashed: isTraining, timesteps, values}];
}

const words = (name) => name.replaceAll("_", " ");

// Adds what policies that have learned nothing reached, as lines over the whole run.
function withBaselines(curves, key, series) {
  const last = Math.max(0, ...series.map(({timesteps}) => timesteps.at(-1) ?? 0));
  const found = Object.keys(curves).filter((name) => name.startsWith("baseline/") && name.endsWith(`/${key}`));
  if (!last) return series;
  return [...series, ...found.map((name, i) => {
    const value = curves[name].values.at(-1);
    return {name: name.slice("baseline/".length, -key.length - 1), colour: i ? 4 + i : "baseline", isDashed: true, timesteps: [0, last], values: [value, value]};
  })];
}
