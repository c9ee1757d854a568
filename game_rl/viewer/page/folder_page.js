// The page of a folder: its runs, experiments and explorations as a table that sorts, and the curves of those that are chosen.

import {Chart, colourOf} from "./chart.js";
import {drawFirst} from "./clip.js";
import {newestOf, readCurves} from "./curves.js";
import {make, setText} from "./elements.js";
import {Heading, STATES} from "./heading.js";
import {MemberScreens} from "./member_screens.js";
import {drawLast} from "./sheet.js";
import {clock, listed, percent, plural, quoted, reward, short, whole} from "./words.js";

const MOST_CHOSEN = 8; // as many as the palette has colours
const FIRST_CHOSEN = 4;
const CURVES_EVERY_MS = 5000;
const COLUMNS = [
  {title: "Run", of: ({folder}) => folder.toLowerCase(), isText: true},
  {title: "Success", of: (member) => scoreOf(member).success_rate},
  {title: "Reward", of: (member) => scoreOf(member).mean_reward},
  {title: "State", of: ({state}) => state, isText: true},
  {title: "Timesteps", of: ({timesteps}) => timesteps},
  {title: "Timesteps/s", of: ({timesteps_per_s: speed}) => speed},
  {title: "Last event", of: ({last_event: time}) => (time ? Date.parse(time) : null)},
];

export class FolderPage {
  constructor() {
    this.heading = new Heading();
    this.rows = new Map();
    this.chosen = new Map(); // colour by run
    this.curves = new Map();
    this.order = {column: 6, isDown: true};
    this.screens = new MemberScreens({
      canvasOf: (run) => this.rowOf(run)?.canvas,
      onDrawn: (run) => this.rowOf(run).canvas.classList.add("drawn"),
    });
    this.sorters = COLUMNS.map(({title, isText}, i) => make("th", {scope: "col", class: isText ? "text" : ""},
      make("button", {type: "button", class: "sorter", text: title, onclick: () => this.sort(i)})));
    this.body = make("tbody");
    const head = make("tr", {}, make("td"), make("td"), ...this.sorters);
    this.success = new Chart({title: "Success", format: (value) => percent(value), range: [0, 1]});
    this.reward = new Chart({title: "Mean reward of an episode"});
    this.compared = make("section", {class: "card", "aria-labelledby": "compared-title", hidden: true},
      make("h2", {id: "compared-title", text: "Curves of the chosen runs"}), make("div", {class: "charts"}, this.success.element, this.reward.element),
      make("p", {class: "note", text: "The evaluations of each run, of an experiment those of its champion or best member; dashed: the training of a run without evaluations."}));
    const main = make("main", {id: "main", tabindex: -1},
      make("section", {class: "card", "aria-labelledby": "members-title"},
        make("div", {class: "card-head"}, make("h2", {id: "members-title", text: "Runs"}), this.screens.button),
        make("div", {class: "scroll runs", tabindex: 0, role: "region", "aria-label": "Table of the runs"},
          make("table", {}, make("thead", {}, head), this.body))), this.compared);
    this.element = make("div", {class: "run"}, this.heading.element, main);
  }

  setState(state) {
    this.state = state;
    this.showHeading(state);
    const names = state.members.map(({folder}) => folder);
    for (const [name, {row}] of this.rows) {
      if (names.includes(name)) continue;
      row.remove();
      this.rows.delete(name);
      this.choose(name, false);
    }
    const isNew = !this.rows.size;
    state.members.forEach((member) => this.showRow(member));
    const newest = this.arrange().filter(({box}) => box && !box.hidden);
    if (isNew) newest.slice(0, FIRST_CHOSEN).forEach(({member}) => this.choose(member.folder, true));
    this.refresh();
    this.screens.expect(state.members, state.members.flatMap(runsThatTrain));
  }

  showHeading({members, name, is_there: isThere}) {
    const count = (test) => members.filter(test).length;
    const explorations = count(({kind}) => kind === "exploration");
    const experiments = count(({is_experiment: isExperiment}) => isExperiment) - explorations;
    const runs = members.length - experiments - explorations;
    const kinds = [
      runs || !(experiments + explorations) ? plural(runs, "run") : "", experiments ? plural(experiments, "experiment") : "",
      explorations ? plural(explorations, "exploration") : "",
    ].filter(Boolean);
    const training = count(({state}) => state === "training");
    const exploring = count(({state}) => state === "exploring");
    const live = training + exploring;
    const sentence = isThere ? `${listed(kinds)}; ${live || "none"} of them ${live === 1 ? "is" : "are"} ${explorations ? "running" : "training"}.` : "This folder is no longer there.";
    const word = training ? "training" : exploring ? "exploring" : explorations ? "not running" : "not training";
    this.heading.show({title: name || "Runs", state: word, share: null, played: "", left: "", sentence});
  }

  // -- the table

  // The row of a run, or of the experiment that it is a run of.
  rowOf(run) { return this.rows.get(run.split("/")[0]); }

  showRow(member) {
    const row = this.rows.get(member.folder) ?? this.makeRow(member);
    row.member = member;
    const {state, stage, generation, generations, cells, timesteps, total_timesteps: total, timesteps_per_s: speed, last_event: time, kind, n_members: count} = member;
    const score = scoreOf(member);
    const what = kind === "exploration" ? "exploration" : kind ? `${kind}${count == null ? "" : ` of ${whole(count)}`}` : member.algorithm?.toUpperCase() ?? "";
    setText(row.what, what);
    const until = state === "training" && total ? `of ${short(total)}` : "";
    const texts = [
      [score.success_rate == null ? "–" : percent(score.success_rate), score.success_rate == null ? score.none ?? "" : score.of],
      [score.mean_reward == null ? "–" : reward(score.mean_reward), score.mean_reward == null ? "" : score.of],
      [STATES[state]?.[0] ?? state, stage ? `${stage} ${whole(generation)} of ${whole(generations)}` : ""],
      [short(timesteps), cells == null ? until : plural(cells, "cell")],
      [speed == null ? "–" : whole(speed), whoTrains(member)],
      [time ? clock(new Date(time)) : "–", ""],
    ];
    texts.forEach(([text, note], i) => {
      setText(row.cells[i].firstChild, text);
      setText(row.cells[i].lastChild, note);
    });
    this.showPicture(row, member);
    this.showBest(row, member);
    if (row.box) row.box.hidden = curvesOf(member) == null;
  }

  // Live screens come by themselves; without them it is a clip, or what an exploration has found.
  showPicture(row, {folder, state, clip, clip_of: clipOf, picture, training}) {
    const isLive = training ? training.length > 0 : state === "training";
    const run = clipOf ? `${folder}/${clipOf}` : folder;
    const address = JSON.stringify(picture ?? [run, clip]);
    if ((!clip && !picture) || isLive) {
      row.picture = null;
    } else if (row.picture !== address) {
      row.picture = address;
      const isWanted = () => row.picture === address;
      if (picture) drawLast(row.canvas, folder, picture, {isWanted});
      else drawFirst(row.canvas, run, clip, {isWanted});
    }
  }

  // The page of an experiment's champion, or of its best member so far.
  showBest(row, {folder, champion, best_member: best}) {
    const [run, text] = bestOf({champion, best_member: best});
    if (row.best?.textContent === text) return;
    row.best?.remove();
    row.best = run ? make("a", {href: `#run=${encodeURIComponent(`${folder}/${run}`)}`, text, class: "champion-link"}) : null;
    if (row.best) row.name.append(row.best);
  }

  makeRow({folder, path, kind, cells: found}) {
    const canvas = make("canvas", {width: 160, height: 144, "aria-hidden": "true"});
    const isUnreadable = kind === "experiment" || (kind === "exploration" && found == null);
    const box = isUnreadable || kind === "exploration" ? null : make("input", {type: "checkbox", "aria-label": `Draw the curves of ${folder}`, onchange: () => { this.choose(folder, box.checked); this.refresh(); }});
    const what = make("span", {class: "note"});
    const name = make("th", {scope: "row"}, isUnreadable ? make("b", {text: folder}) : make("a", {href: `#run=${encodeURIComponent(folder)}`, text: folder}),
      what, isUnreadable ? make("code", {text: `game-rl watch ${quoted(path)}`}) : null);
    const cells = COLUMNS.slice(1).map(({title, isText}) => make("td", {class: isText ? "text" : "", "data-title": title}, make("span"), make("span", {class: "note"})));
    const row = {canvas, box, name, what, cells, row: make("tr", {class: "member"}, make("td", {}, box), make("td", {}, canvas), name, ...cells)};
    this.rows.set(folder, row);
    this.body.append(row.row);
    return row;
  }

  sort(column) {
    this.order = {column, isDown: this.order.column === column ? !this.order.isDown : !COLUMNS[column].isText};
    this.arrange();
  }

  // Rows in the order of a column; those without a value come last. They move only where the order is another.
  arrange() {
    const {column, isDown} = this.order;
    const {of} = COLUMNS[column];
    const sign = isDown ? -1 : 1;
    const rows = [...this.rows.values()].sort((a, b) => {
      const [one, other] = [of(a.member), of(b.member)];
      if (one == null || other == null) return (one == null) - (other == null);
      return one < other ? -sign : one > other ? sign : 0;
    });
    rows.forEach(({row}, i) => { if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i]); });
    this.sorters.forEach((cell, i) => {
      if (i === column) cell.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    return rows;
  }

  // -- the curves

  choose(name, isChosen) {
    this.chosen.delete(name);
    const taken = [...this.chosen.values()];
    if (isChosen) this.chosen.set(name, [1, 2, 3, 4, 5, 6, 7, 8].find((colour) => !taken.includes(colour)));
    for (const [each, {box}] of this.rows) {
      if (!box) continue;
      box.checked = this.chosen.has(each);
      box.disabled = !box.checked && this.chosen.size >= MOST_CHOSEN;
      box.style.accentColor = box.checked ? colourOf(this.chosen.get(each)) : "";
    }
    this.draw();
  }

  // Asks for the curves of chosen runs that are unknown or have gone on.
  async refresh() {
    const now = performance.now();
    for (const name of this.chosen.keys()) {
      const {member} = this.rows.get(name);
      const run = curvesOf(member);
      const known = this.curves.get(name);
      const at = `${run} ${member.timesteps} ${member.last_event}`;
      if (known && (known.at === at || now - known.askedAt < CURVES_EVERY_MS)) continue;
      this.curves.set(name, {at, askedAt: now, curves: known?.curves ?? {}});
      const curves = run == null ? null : await readCurves(run);
      if (curves) this.curves.set(name, {at, askedAt: now, curves});
      this.draw();
    }
  }

  labelOf(name) {
    const [, which] = bestOf(this.rows.get(name)?.member ?? {});
    return which ? `${name}, ${which}` : name;
  }

  draw() {
    for (const [chart, key] of [[this.success, "success_rate"], [this.reward, "mean_reward"]]) {
      chart.show([...this.chosen].flatMap(([name, colour]) => newestOf(this.curves.get(name)?.curves ?? {}, key, this.labelOf(name), colour)));
    }
    this.compared.hidden = this.success.element.hidden && this.reward.element.hidden;
  }

  resume() { this.screens.resume(); }

  pause() { this.screens.pause(); }

  close() { this.pause(); }
}

// What a row is worth: the final result, or the best so far, else the training's episodes.
function scoreOf({kind, state, champion, best_member: member, best_reward: found, final_evaluation: final, best_evaluation: best, success_rate: rate, mean_reward: mean}) {
  if (champion) return {...champion.final, of: "champion"};
  if (member?.fitness) return {...member.fitness, of: `member ${member.folder}`};
  if (kind) return {mean_reward: found, of: "best route", none: kind === "exploration" || state === "unknown" ? "" : "no fitness yet"};
  if (final) return {...final, of: "final"};
  if (best && state !== "training") return {...best, of: "best"};
  return {success_rate: rate, mean_reward: mean, of: "training"};
}

// The run of an experiment that stands for it, its champion or its best member so far, and what it is called.
function bestOf({champion, best_member: best}) {
  return champion ? ["champion", "champion"] : best ? [best.folder, `best member ${best.folder}`] : [];
}

// The run whose curves a row has; null if there is none yet.
function curvesOf(member) {
  if (!member.kind) return member.folder;
  const [run] = bestOf(member);
  return run ? `${member.folder}/${run}` : null;
}

// Itself, or of an experiment those of its runs.
function runsThatTrain({folder, state, training}) {
  if (training) return training.map((run) => `${folder}/${run}`);
  return state === "training" ? [folder] : [];
}

// Whose speed an experiment's is.
function whoTrains({training}) {
  if (!training?.length) return "";
  return training.length === 1 ? `member ${training[0]}` : plural(training.length, "member");
}
