// The page of an exploration: what it has found, over time, on a map and in pictures.

import {Chart} from "./chart.js";
import {make, setText} from "./elements.js";
import {Figures} from "./figures.js";
import {Heading} from "./heading.js";
import {PlacesMap} from "./places.js";
import {duration, number, plural, short, whole} from "./words.js";

const PICTURES = {
  best: ["The best route", "Screens at each reward that it earns, with the timestep."],
  sheet: ["Screens", "Some cells: number, timesteps of the best route to it, and its reward, if any."],
};

const TILE = {width: 160, height: 144, gap: 8, label: 16}; // of a contact sheet, as game_check/sheets.py lays it out

// Draws the last screen of a picture of an exploration: the end of its best route, or its newest cell.
export function drawLast(canvas, run, {name, at}) {
  const source = new Image();
  source.addEventListener("load", () => {
    const {width, height, gap, label} = TILE;
    const columns = Math.floor((source.naturalWidth - gap) / (width + gap));
    const rows = Math.floor((source.naturalHeight - gap) / (height + label + gap));
    const context = canvas.getContext("2d", {willReadFrequently: true});
    for (let column = columns - 1; column >= 0; column -= 1) {
      const [x, y] = [gap + column * (width + gap), gap + (rows - 1) * (height + label + gap) + label];
      context.drawImage(source, x, y, width, height, 0, 0, canvas.width, canvas.height);
      const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      if (pixels.some((pixel) => pixel !== pixels[0])) break; // beyond the last screen is background alone
    }
    canvas.classList.add("drawn");
  });
  source.src = `api/picture?run=${encodeURIComponent(run)}&name=${name}&at=${at}`;
}

export class ExplorePage {
  constructor() {
    this.heading = new Heading();
    this.figures = new Figures();
    this.cells = new Chart({title: "Cells and places", isCount: true});
    this.maps = new Chart({title: "Maps", isCount: true});
    this.reward = new Chart({title: "Best reward"});
    this.places = new PlacesMap("", {title: "Where it has been", unit: "trip"});
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
    this.pictures = new Map(Object.entries(PICTURES).map(([name, [title, note]]) => {
      const image = make("img", {alt: title});
      const card = make("section", {class: "card", "aria-labelledby": `${name}-title`, hidden: true},
        make("h2", {id: `${name}-title`, text: title}), make("p", {class: "note", text: note}),
        make("div", {class: "scroll sheet", tabindex: 0, role: "region", "aria-label": title}, image));
      return [name, {image, card}];
    }));
    this.commands = make("pre", {class: "commands"});
    const next = make("section", {class: "card", "aria-labelledby": "next-title"}, make("h2", {id: "next-title", text: "Next steps"}), this.commands);
    const main = make("main", {id: "main", tabindex: -1}, this.figures.element, this.curves, this.rewards,
      this.places.element, ...[...this.pictures.values()].map(({card}) => card), next);
    this.element = make("div", {class: "run"}, this.heading.element, main);
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
    for (const [name, {image, card}] of this.pictures) {
      const changed = state.pictures[name];
      card.hidden = changed == null;
      const address = `api/picture?name=${name}&at=${changed}`;
      if (changed != null && image.getAttribute("src") !== address) image.setAttribute("src", address);
    }
    setText(this.commands, state.commands.join("\n"));
    this.places.refresh();
  }

  resume() {}

  pause() {}

  close() {}
}
