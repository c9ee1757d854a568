// The page of an experiment: its champion, a tile for each member, generations, lineage.

import {Chart} from "./chart.js";
import {Clip} from "./clip.js";
import {bar, make, setText, shape} from "./elements.js";
import {Happenings} from "./happenings.js";
import {Heading, linkUp} from "./heading.js";
import {MemberScreens} from "./member_screens.js";
import {clock, duration, number, percent, percentage, plural, quoted, reward as earned, short, whole} from "./words.js";

const MOST_LARGE = 3; // members whose screens are shown at twice their size
const CELL = {width: 46, height: 34};

export class OverviewPage {
  // `run` is the experiment's name in a folder, or "" if the page is its own.
  constructor({run, announce, go}) {
    Object.assign(this, {announce, go, within: run ? `${run}/` : ""});
    this.heading = new Heading({back: linkUp(run)});
    this.tiles = new Map();
    this.members = make("ul", {class: "members"});
    this.screens = new MemberScreens({
      run,
      canvasOf: (name) => this.tileOf(name)?.canvas,
      onDrawn: (name) => this.tileOf(name).item.classList.add("live"),
    });
    this.happenings = new Happenings({announce});
    this.fitness = new Chart({title: "Fitness", unit: "generation", isWhole: true});
    this.table = make("tbody");
    this.lineage = shape("svg", {role: "img", class: "lineage"});
    const columns = ["", "Best", "Mean", "Worst", "Best member", "Copies"];
    this.stageName = make("th", {scope: "col"});
    const head = make("tr", {}, this.stageName,
      ...columns.slice(1).map((text, i) => make("th", {scope: "col", text, class: i > 2 ? "text" : ""})));
    this.generations = make("section", {class: "card", "aria-labelledby": "generations-title"},
      make("h2", {id: "generations-title", text: "Generations"}), this.fitness.element,
      make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the generations"},
        make("table", {}, make("thead", {}, head), this.table)));
    this.descent = make("section", {class: "card", "aria-labelledby": "descent-title"},
      make("h2", {id: "descent-title", text: "Who descends from whom"}),
      make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Lineage"}, this.lineage),
      make("p", {class: "note", text: "A column for each generation, a row for each member; a line comes from the member that was copied. The stronger its colour, the higher its fitness."}));
    this.clip = new Clip({title: "Clip of the champion", id: "champion-clip"});
    this.champion = make("section", {class: "card champion", "aria-labelledby": "champion-title", hidden: true}, make("h2", {id: "champion-title", text: "Champion"}));
    this.mixing = make("p", {class: "note"});
    this.body = make("div", {class: "columns"}, make("div", {class: "wide"}, this.generations, this.descent),
      make("div", {class: "narrow"}, this.happenings.element));
    const top = make("div", {class: "champion-row"}, this.champion, this.clip.element);
    const main = make("main", {id: "main", tabindex: -1}, top,
      make("section", {class: "card", "aria-labelledby": "members-title"},
        make("div", {class: "card-head"}, make("h2", {id: "members-title", text: "Members now"}), this.screens.button), this.members, this.mixing), this.body);
    this.element = make("div", {class: "run"}, this.heading.element, main);
  }

  setState(state) {
    this.state = state;
    setText(this.element.querySelector("#members-title"), state.state === "training" ? "Members now" : "Members");
    this.showExperiment(state);
    this.showMembers(state);
    this.screens.expect([state, ...state.members], state.members.filter((member) => member.is_training).map(({folder}) => this.within + folder));
  }

  showExperiment(state) {
    const {generation, generations, stage, champion} = state;
    const best = state.table.at(-1);
    const done = state.members.reduce((sum, {timesteps}) => sum + timesteps, 0);
    const until = state.members.reduce((sum, member) => sum + member.until, 0);
    const isTraining = state.state === "training";
    const share = state.is_live ? done / until : (generation - 1 + Math.min(1, this.shareOfStage(state))) / generations;
    const playing = isTraining ? state.members.filter(({is_training: isPlaying}) => isPlaying) : [];
    const now = playing.length && playing.length < state.members.length ? ` ${whoTrains(playing)}.` : "";
    const results = champion ? ` The champion, member ${champion.folder}, ${championDid(champion.final)}.` : best ? ` The fittest of ${stage} ${best.generation} has a fitness of ${this.value(best.best)}.` : "";
    this.heading.show({
      title: state.name, state: state.state, share: state.state === "completed" ? 1 : share,
      sentence: `${plural(state.members.length, "member")} of a ${state.kind}, each with ${plural(state.n_envs, "agent")}, ${isTraining ? "learn" : "learned"} to play ${state.game} by ${state.algorithm.toUpperCase()}, ${state.is_live ? "all at once" : `${isTraining ? `now in ${stage} ${whole(generation)} of ${whole(generations)}` : `in ${plural(generations, stage)}`}`}.${results}${now}${state.text ? ` ${state.text}.` : ""}`,
      played: state.timesteps_of_all == null ? "" : `${whole(state.timesteps_of_all)} timesteps of all runs${state.frames_of_all == null ? "" : ` (${short(state.frames_of_all)} frames)`}`,
      left: this.forecast(state),
    });
    if (champion && this.champion.hidden) this.showChampion(champion, state.path);
    this.champion.hidden = !champion;
    setText(this.mixing, state.mixing.map((text) => `${text[0].toUpperCase()}${text.slice(1)}.`).join(" "));
    this.mixing.hidden = !state.mixing.length;
    setText(this.stageName, stage[0].toUpperCase() + stage.slice(1));
    this.generations.hidden = this.descent.hidden = !state.table.length;
    this.body.classList.toggle("alone", !state.table.length);
    this.showGenerations(state.table);
    this.showLineage(state.lineage);
    const text = JSON.stringify(state.happenings);
    if (text !== this.happened) this.happenings.set(state.happenings);
    this.happened = text;
  }

  showChampion({folder, final, clip}, path) {
    const {success_rate: rate, success_interval: interval, mean_reward: mean, episodes} = final;
    const range = interval ? ` (95 % interval ${percent(interval[0])} to ${percent(interval[1])})` : "";
    this.champion.replaceChildren(make("h2", {id: "champion-title", text: `Champion: member ${folder}`}),
      make("p", {class: "result-value", text: rate == null ? `${earned(mean)} reward` : `${percent(rate)} success`}),
      make("p", {class: "note", text: `in ${plural(episodes, "held-out episode")}${range}; mean reward ${earned(mean)}`}),
      make("p", {}, make("a", {href: this.addressOf("champion"), text: "The champion's page"})),
      make("ul", {class: "list"}, ...[
        [`game-rl record ${quoted(path)}`, "records a clip of it"], [`game-rl evaluate ${quoted(path)}`, "plays new episodes with it"],
        [`game-rl report ${quoted(path)} --output report.html`, "writes the experiment into one file"],
      ].map(([command, what]) => make("li", {}, make("code", {text: command}), make("span", {class: "note", text: ` ${what}`})))));
    this.clip.show(`${this.within}champion`, clip);
  }

  // The part of the present generation that its members have trained.
  shareOfStage({members, table, generation}) {
    const width = Math.max(...members.map(({until}) => until)) / Math.max(1, generation);
    const shares = members.map(({timesteps, until, is_done: isDone}) => (isDone ? 1 : 1 - Math.min(1, (until - timesteps) / width)));
    return table.length >= generation ? 1 : shares.reduce((sum, each) => sum + each, 0) / shares.length;
  }

  forecast({state, seconds_left: left, stage, table, generation, generations, is_live: isLive, happenings}) {
    if (state !== "training") return happenings.length ? `ended ${clock(new Date(happenings.at(-1).time))}` : "";
    if (left != null) {
      const end = `about ${clock(new Date(Date.now() + 1000 * left))}, in ${duration(left)}`;
      return isLive || generations === 1 ? `the training ends ${end}` : `the last ${stage} ends ${end}`;
    }
    if (table.length >= generations) return "the champion is being chosen";
    if (!isLive && !table.length && generations > 1) return `the end is estimated after the first ${stage}`;
    return generation === generations ? `the last ${stage} is about to end` : "";
  }

  get format() {
    return this.state.members.some(({fitness: one}) => one && isRate(one)) ? percent : number;
  }

  value(found) { return found == null ? "–" : this.format(found); }

  showMembers({members, state, table, generations}) {
    const isLast = table.length >= generations; // and the champion is sought
    const names = members.map(({folder}) => folder);
    this.members.classList.toggle("few", members.length <= MOST_LARGE);
    for (const [folder, tile] of this.tiles) {
      if (!names.includes(folder)) { tile.item.remove(); this.tiles.delete(folder); }
    }
    members.forEach((member) => {
      const {timesteps, until, timesteps_per_s: speed, is_training: isTraining, is_done: isDone} = member;
      const tile = this.tile(member.folder);
      tile.fill.firstChild.style.width = `${100 * Math.min(1, timesteps / (until || 1))}%`;
      setText(tile.played, howFar(member));
      tile.item.classList.toggle("trains", Boolean(isTraining));
      setText(tile.result, member.fitness ? fitness(member.fitness) : "no fitness yet");
      setText(tile.note, member.copy_of ? `copy of ${member.copy_of}${member.changes ? `: ${member.changes}` : ""}` : "");
      setText(tile.waits, state !== "training" ? "" : isTraining ? `trains now${speed ? `, ${whole(speed)} timesteps/s` : ""}` : isDone ? `has trained${isLast ? "" : "; waits for the others"}` : "waits for its turn");
      this.members.append(tile.item);
    });
  }

  tileOf(run) { return this.tiles.get(run.slice(this.within.length)); }

  addressOf(folder) { return `#run=${encodeURIComponent(this.within + folder)}`; }

  tile(folder) {
    let tile = this.tiles.get(folder);
    if (tile) return tile;
    const canvas = make("canvas", {width: 160, height: 144, "aria-hidden": "true"});
    const [played, result, waits, note] = [make("span"), make("b"), make("span"), make("span", {class: "note"})];
    const fill = bar(0);
    const link = make("a", {href: this.addressOf(folder), class: "member"}, canvas,
      make("span", {class: "name", text: folder}), result, fill, played, waits, note);
    tile = {canvas, played, result, waits, note, fill, item: make("li", {}, link)};
    this.tiles.set(folder, tile);
    return tile;
  }

  showGenerations(table) {
    const timesteps = table.map(({generation}) => generation);
    const curve = (key, name, colour, isPoints = false) => ({name, colour, timesteps, values: table.map((row) => row[key]), isPoints});
    this.fitness.format = this.format;
    this.fitness.show([curve("best", "best", "best", true), curve("mean", "mean", "members"), curve("worst", "worst", "worst")]);
    this.table.replaceChildren(...[...table].reverse().map((row) => make("tr", {},
      make("th", {scope: "row", text: whole(row.generation)}),
      ...[this.value(row.best), this.value(row.mean), this.value(row.worst), row.best_member ?? "–", row.copies.join(", ") || "none"]
        .map((text, i) => make("td", {text, class: i > 2 ? "text" : ""})))));
  }

  // Boxes by generation and member, with a line from the parent of each copy.
  showLineage(cells) {
    if (!cells.length) return;
    const numbers = [...new Set(cells.map(({number: one}) => one))].sort((a, b) => a - b);
    const first = Math.min(...cells.map(({generation}) => generation));
    const last = Math.max(...cells.map(({generation}) => generation));
    const known = cells.map(({value}) => value).filter((value) => value != null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const at = (generation, one) => [44 + (generation - first) * CELL.width, 24 + numbers.indexOf(one) * CELL.height];
    const [width, height] = [44 + (last - first + 1) * CELL.width, 24 + numbers.length * CELL.height];
    this.lineage.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.lineage.setAttribute("width", width);
    this.lineage.setAttribute("height", height);
    const drawn = [];
    for (let generation = first; generation <= last; generation += 1) {
      drawn.push(shape("text", {x: at(generation, numbers[0])[0] + 11, y: 14, "text-anchor": "middle", text: generation}));
    }
    drawn.push(...numbers.map((one) => shape("text", {x: 4, y: at(first, one)[1] + 16, text: String(one).padStart(2, "0")})));
    for (const {generation, number: one, from} of cells) {
      if (generation === first) continue;
      const [x, y] = at(generation, one);
      const [px, py] = at(generation - 1, from ?? one);
      if (numbers.includes(from ?? one)) drawn.push(shape("path", {class: from == null ? "stays" : "copied", d: `M${px + 22} ${py + 11}L${x} ${y + 11}`}));
    }
    for (const {generation, number: one, value, folder} of cells) {
      const [x, y] = at(generation, one);
      const box = shape("rect", {x, y, width: 22, height: 22, rx: 3, class: "cell"}, shape("title", {text: `${folder}, ${this.value(value)}`}));
      box.style.fillOpacity = value == null ? 0 : 0.15 + (0.85 * (value - low)) / (high - low || 1);
      drawn.push(box);
    }
    this.lineage.setAttribute("aria-label", `${plural(cells.filter(({from}) => from != null).length, "copy", "copies")} over ${plural(last - first + 1, "generation")}; the table of generations has the same in words`);
    this.lineage.replaceChildren(...drawn);
  }

  resume() { this.screens.resume(); }

  pause() { this.screens.pause(); }

  close() { this.pause(); }
}

const howFar = ({timesteps, until}) => (until && timesteps < until ? `${short(timesteps)} of ${short(until)} timesteps` : `${short(timesteps)} timesteps`);

function championDid({success_rate: rate, mean_reward: mean, episodes}) {
  const played = plural(episodes, "held-out episode");
  return rate == null ? `earns ${earned(mean)} an episode, in ${played}` : `succeeds in ${percent(rate)} of ${played}`;
}

function whoTrains(members) {
  if (members.length === 1) return `Member ${members[0].folder} trains now, at ${howFar(members[0])}`;
  return `Members that train now: ${members.map((member) => `${member.folder}, at ${howFar(member)}`).join("; ")}`;
}

const isRate = ({value, success_rate: rate}) => rate != null && rate === value;

// The number that members are compared by, and the other one.
function fitness(found) {
  const {value, success_rate: rate, success_interval: interval, mean_reward: reward} = found;
  if (!isRate(found)) return `reward ${number(value)}${rate == null ? "" : ` (success ${percent(rate)})`}`;
  return `${percent(rate)}${interval ? ` (${interval.map((end) => percentage(end)).join("–")})` : ""}, reward ${number(reward)}`;
}
