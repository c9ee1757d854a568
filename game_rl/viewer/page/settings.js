// The run's settings, as its config.yaml has them; asked for when they are opened.

import {make} from "./elements.js";

export class Settings {
  constructor(run) {
    this.address = `api/settings?run=${encodeURIComponent(run)}`;
    this.text = make("pre", {class: "settings", tabindex: 0, role: "region", "aria-label": "Settings of the run"});
    this.box = make("details", {ontoggle: () => this.ask()}, make("summary", {text: "Settings"}), this.text);
    this.element = make("section", {class: "card", "aria-label": "Settings"}, this.box);
  }

  async ask() {
    if (!this.box.open || this.isKnown) return;
    try {
      const answer = await fetch(this.address);
      this.isKnown = answer.ok;
      this.text.textContent = answer.ok ? (await answer.json()).text : "They cannot be read.";
    } catch {
      this.text.textContent = "The server does not answer.";
    }
  }
}
