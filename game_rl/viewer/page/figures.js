// The row of numbers: success, reward, evaluation, speed, memory, disk.

import {sparkline} from "./chart.js";
import {bar, make, setText} from "./elements.js";
import {bytes, duration, number, percent, plural, reward, short, whole} from "./words.js";

export class Figures {
  constructor() {
    this.element = make("dl", {class: "figures", "aria-label": "Numbers"});
    this.tiles = new Map();
  }

  tile(id, label) {
    if (!this.tiles.has(id)) {
      const value = make("b");
      const note = make("span", {class: "note"});
      const extra = make("div", {class: "extra"});
      const group = make("div", {class: "figure-tile"}, make("dt", {text: label}), make("dd", {}, value, extra, note));
      this.tiles.set(id, {value, note, extra, group, label: group.firstChild});
      this.element.append(group);
    }
    return this.tiles.get(id);
  }

  set(id, label, {value, note = "", share = null, isOver = false, isShown = true}) {
    const tile = this.tile(id, label);
    tile.group.hidden = !isShown;
    setText(tile.label, label);
    setText(tile.value, value);
    setText(tile.note, note);
    if (share != null) {
      if (!tile.bar) tile.extra.append(tile.bar = bar(0));
      tile.bar.firstChild.style.width = `${100 * Math.min(1, share)}%`;
      tile.bar.firstChild.classList.toggle("bad", isOver);
    }
  }

  spark(id, values) {
    const tile = this.tiles.get(id);
    if (tile && values.length > 2) tile.extra.replaceChildren(sparkline(values));
  }

  show(state) {
    const isOver = !["training", "unknown", "not begun"].includes(state.state); // its result stands above
    const {machine, evaluation, best_evaluation: best, final_evaluation: final} = state;
    this.set("success", "Success in training", {
      value: percent(state.success_rate), note: "of the last episodes", isShown: state.success_rate != null,
    });
    this.set("reward", "Reward in training", {value: reward(state.mean_reward), note: "mean of the last episodes"});
    const shown = final ?? evaluation;
    this.set("evaluation", final ? "Final evaluation" : "Newest evaluation", {
      value: !shown ? "–" : shown.success_rate == null ? reward(shown.mean_reward) : percent(shown.success_rate),
      note: !shown ? "none yet" : evaluationNote(shown, final ? null : best), isShown: !isOver,
    });
    const {stuck, looped, term} = state.circles;
    this.set("circles", "Going in circles", {
      value: percent(stuck), isShown: stuck > 0.01 || looped > 0.15,
      note: `of the episodes are stuck${looped > 0.15 ? `; ${percent(looped)} of ${term.replaceAll("_", " ")} is earned in a loop` : ""}`,
    });
    this.showPool(state.pool);
    const pace = state.timesteps && state.frames ? (state.timesteps_per_s * state.played_s) / state.timesteps : null;
    this.set("speed", "Speed", {
      value: state.timesteps_per_s == null ? "–" : `${whole(state.timesteps_per_s)}/s`,
      note: pace ? `timesteps; ${short(pace)} × a Game Boy` : "timesteps",
    });
    this.set("played", "Played", {
      value: state.played_s == null ? "–" : duration(state.played_s),
      note: state.frames == null ? "" : `on a Game Boy, in ${duration(state.trained_s)} here; ${short(state.frames)} frames`,
      isShown: state.frames !== 0,
    });
    this.showMachine(machine);
  }

  showPool(pool) {
    const {states, share, success_rate: rate, success_rate_from_start: start, passed} = pool ?? {states: 0};
    this.set("pool", "Goal met from the pool", {
      value: percent(rate), isShown: Boolean(pool),
      note: [
        start == null ? "" : `${percent(start)} from the start states`,
        share == null ? "" : `${percent(share)} of the episodes start in it`,
        `${plural(states, "state")}${passed == null ? "" : `, ${whole(passed)} passed`}`,
      ].filter(Boolean).join("; "),
    });
  }

  showMachine({ram, vram, disk, lake}) {
    const used = ram.now ?? ram.peak;
    this.set("ram", ram.now == null && ram.peak != null ? "Memory, at most" : "Memory", {
      value: bytes(used ?? ram.predicted),
      note: used == null ? "forecast" : ram.predicted ? `of ${bytes(ram.predicted)} forecast` : "",
      share: used != null && ram.predicted ? used / ram.predicted : null,
      isOver: used > 1.1 * ram.predicted,
      isShown: used != null || ram.predicted != null,
    });
    this.set("vram", "GPU memory", {
      value: bytes(vram.now), note: vram.predicted ? `of ${bytes(vram.predicted)} forecast` : "",
      share: vram.now && vram.predicted ? vram.now / vram.predicted : null, isShown: vram.now != null,
    });
    const free = disk.free == null ? "" : `${bytes(disk.free)} free`;
    this.set("disk", "Disk", {
      value: bytes(disk.now),
      note: [disk.predicted ? `of ${bytes(disk.predicted)} forecast` : "", lake ? `Lake ${bytes(lake.now)}` : "", free].filter(Boolean).join("; "),
      share: disk.predicted ? disk.now / disk.predicted : null,
      isOver: disk.predicted != null && disk.now > 1.1 * disk.predicted,
    });
  }
}

function evaluationNote(shown, best) {
  const {success_rate: rate, success_interval: interval, episodes, mean_reward: mean} = shown;
  const range = interval ? `${percent(interval[0])} to ${percent(interval[1])} (95 %)` : "";
  const parts = [range || plural(episodes, "episode"), rate == null ? "" : `reward ${reward(mean)}`];
  if (best && best.policy_timesteps !== shown.policy_timesteps) {
    parts.push(`best ${best.success_rate == null ? number(best.mean_reward) : percent(best.success_rate)}`);
  }
  return parts.filter(Boolean).join("; ");
}
