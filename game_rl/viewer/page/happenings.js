// The list of what has happened, the newest first.

import {make} from "./elements.js";
import {clock, short} from "./words.js";

const MOST = 300;

export class Happenings {
  constructor({announce}) {
    this.announce = announce;
    this.list = make("ol", {class: "happenings", tabindex: 0, "aria-label": "Events, the newest first"});
    this.quiet = make("input", {type: "checkbox", id: "quiet", onchange: () => this.list.classList.toggle("with-quiet", this.quiet.checked)});
    this.element = make("section", {class: "card", "aria-labelledby": "happened-title"},
      make("div", {class: "card-head"}, make("h2", {id: "happened-title", text: "What happened"}),
        make("label", {class: "check", for: "quiet"}, this.quiet, " checkpoints too")), this.list);
  }

  set(lines) {
    this.list.replaceChildren(...lines.filter(isListed).map(entry).reverse());
  }

  add(lines) {
    for (const line of lines) {
      if (isListed(line)) this.list.prepend(entry(line));
      if (line.tone !== "quiet") this.announce(`${line.title}: ${line.text}`);
    }
    while (this.list.children.length > MOST) this.list.lastChild.remove();
  }
}

// Milestones have a list of their own.
const isListed = ({title}) => title !== "milestone";

function entry({time, timesteps, title, text, tone}) {
  const when = new Date(time);
  const at = timesteps == null ? "" : ` · ${short(timesteps)}`;
  return make("li", {class: `tone-${tone}`},
    make("p", {class: "when"}, make("time", {datetime: time, title: when.toLocaleString(), text: clock(when)}), at),
    make("p", {}, make("b", {text: title}), text ? ` ${text}` : ""));
}
