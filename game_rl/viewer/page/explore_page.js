// The page of an exploration: what it has found, over time, on a map and in pictures.

import {Chart} from "./chart.js";
import {make, setText} from "./elements.js";
import {Figures} from "./figures.js";
import {Heading, linkUp} from "./heading.js";
import {PlacesMap} from "./places.js";
import {Sheet} from "./sheet.js";
import {duration, number, plural, short, whole} from "./words.js";

const MOST_BESIDE = 12; // screens of the best route that stand beside the curves; more take the whole width

export class ExplorePage {
  // `run` is the exploration's name in a folder, or "" if the page is its own.
  constructor({run}) {
    this.heading = new Heading({back: linkUp(run)});
    this.figures = new Figures();
    this.cells = new Chart({title: "Cells", isCount: true});
    this.maps = new Chart({title: "Maps", isCount: true});
    this.reward = new Chart({title: "Best reward"});
    this.places = new PlacesMap(run, {title: "Where it has been", unit: "trip"});
    this.terms = make("tbody");
    this.noTerms = make("p", {class: "note", text: "No reward term was earned yet."});
    const head = ["Reward term", "After timesteps", "After", "Most in an episode"];
    this.rewards = make("section", {class: "card", "aria-labelledby": "rewards-title"},
      make("h2", {id: "rewards-title", text: "When each reward was first earned"}), this.noTerms,
      make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the reward terms"},
        make("table", {class: "wrapped"}, make("thead", {}, make("tr", {}, ...head.map((text) => make("th", {scope: "col", text})))), this.terms)));
    this.curves = make("section", {class: "card", "aria-labelledby": "found-title"},
      make("h2", {id: "found-title", text: "What it has found"}),
      make("div", {class: "charts"}, this.cells.element, this.reward.element, this.maps.element));
    this.best = new Sheet(run, "best", {title: "The best route", note: "Screens at each reward that it earns, with the timestep."});
    this.sheet = new Sheet(run, "sheet", {title: "Screens", note: "Some cells: number, timesteps of the best route to it, and its reward, if any."});
    this.commands = make("pre", {class: "commands"});
    const next = make("section", {class: "card", "aria-labelledby": "next-title"}, make("h2", {id: "next-title", text: "Next steps"}), this.commands);
    this.wide = make("div", {class: "wide"}, this.places.element, this.best.element);
    this.narrow = make("div", {class: "narrow"}, this.curves, this.rewards);
    this.body = make("div", {class: "columns explored"}, this.wide, this.narrow);
    const main = make("main", {id: "main", tabindex: -1}, this.figures.element, this.body, this.sheet.element, next);
    this.element = make("div", {class: "run"}, this.heading.element, main);
    const observer = new ResizeObserver(() => requestAnimationFrame(() => this.arrange()));
    [this.wide, this.narrow].forEach((column) => observer.observe(column));
  }

  setState(state) {
    const {has_rewards: hasRewards, curves, terms} = state;
    const isExploring = state.state === "exploring";
    const where = state.places ? ` at ${plural(state.places, "place")}${state.maps > 1 ? ` on ${plural(state.maps, "map")}` : ""}` : "";
    const way = isExploring ? "returns to states that it has found, and continues" : "returned to states that it had found, and continued";
    this.heading.show({
      title: state.name, state: state.state, share: null, left: "",
      sentence: `Random play of ${state.game} ${way} from there. From the start state ${state.start_state.replaceAll("_", " ")}, it ${isExploring ? "has found" : "found"} ${plural(state.cells, "cell")}${where}.`,
      played: `${whole(state.timesteps)} timesteps in ${duration(state.seconds)}`,
    });
    this.figures.set("cells", "Cells", {value: whole(state.cells), note: plural(state.rounds, "round")});
    this.figures.set("places", "Places", {value: whole(state.places), note: state.maps > 1 ? `on ${plural(state.maps, "map")}` : "", isShown: state.places > 0});
    this.figures.set("reward", "Best reward", {value: number(state.reward), note: state.has_success ? "a route ends with a success" : "no success yet", isShown: hasRewards});
    this.figures.set("speed", "Speed", {value: state.timesteps_per_s == null ? "–" : `${whole(state.timesteps_per_s)}/s`, note: `timesteps; ${short(state.frames)} frames in total`});
    const curve = (key, name, colour) => ({name, colour, timesteps: curves.timesteps, values: curves[key]});
    if (state.places && this.cells.title === "Cells") {
      const both = new Chart({title: "Cells and places", isCount: true});
      this.cells.element.replaceWith(both.element);
      this.cells = both;
    }
    this.cells.show([curve("cells", "cells", "cells"), ...(state.places ? [curve("places", "places", "places")] : [])]);
    this.maps.show(state.maps > 1 ? [curve("maps", "maps", "maps")] : []);
    this.reward.show(hasRewards ? [curve("reward", "best route", "best")] : []);
    this.curves.hidden = !curves.timesteps.length;
    this.rewards.hidden = !hasRewards;
    this.noTerms.hidden = terms.length > 0;
    this.terms.closest("table").hidden = !terms.length;
    this.terms.replaceChildren(...terms.map((term) => make("tr", {},
      make("th", {scope: "row", text: term.name}),
      ...[whole(term.timesteps), duration(term.seconds), number(term.most)].map((text) => make("td", {text})))));
    this.best.show(state.pictures.best);
    this.sheet.show(state.pictures.sheet);
    setText(this.commands, state.commands.join("\n"));
    this.places.refresh();
  }

  // A long best route stands below both columns, and the rewards in the column that is shorter without them.
  arrange() {
    const isBeside = this.best.count <= MOST_BESIDE;
    if (isBeside !== this.wide.contains(this.best.element)) {
      if (isBeside) this.places.element.after(this.best.element);
      else this.body.after(this.best.element);
    }
    const heightOf = ({children}) => [...children].reduce((sum, card) => sum + (card === this.rewards ? 0 : card.offsetHeight), 0);
    const shorter = heightOf(this.wide) < heightOf(this.narrow) ? this.wide : this.narrow;
    if (this.rewards.parentElement !== shorter) shorter.append(this.rewards);
  }

  resume() {}

  pause() {}

  close() {}
}
