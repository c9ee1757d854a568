// Line charts in SVG: curves over timesteps, points of evaluations with their intervals.
// A cursor of the pointer, or of the arrow keys, tells the values at a timestep.

import {saveChart, saveCurves} from "./chart_files.js";
import {make, shape} from "./elements.js";
import {number, percent, short, whole} from "./words.js";

const MARGIN = {top: 8, right: 12, bottom: 24, left: 44};
const MOST_WHISKERS = 16; // intervals of more points are drawn as a band
const PAGE_OF_POINTS = 10;

// A colour is known by its meaning, such as "training", or by its number in the palette.
export const colourOf = (colour) => `var(--${typeof colour === "number" ? `series-${((colour - 1) % 8) + 1}` : colour})`;

// series: [{name, colour, timesteps, values, intervals?, isPoints?, isDashed?, isLast?}]; format: of a value.
export class Chart {
  constructor({title, format = number, height = 190, range = null, isSmall = false, unit = "timesteps", isWhole = false, isCount = false}) {
    Object.assign(this, {left: MARGIN.left, title, format, height, range, isSmall, unit, isWhole, isCount, series: []});
    this.svg = shape("svg", {"aria-hidden": "true", class: "chart"});
    // Its keys are those of a slider, whose value is the timestep.
    this.plot = make("div", {class: "plot", role: "slider", tabindex: 0, onkeydown: (event) => this.step(event), onblur: () => this.mark(null)}, this.svg);
    this.legend = make("ul", {class: "legend"});
    const save = (text, what, save) => make("button", {type: "button", class: "save", "aria-label": `Save “${title}” as ${what}`, text, onclick: save});
    this.element = make("figure", {class: isSmall ? "figure small" : "figure"},
      make("figcaption", {}, make("span", {text: title}), make("span", {class: "saves"},
        save("PNG", "a picture", () => saveChart(this)), save("CSV", "a table", () => saveCurves(title, this.series)))),
      this.plot, this.legend);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
  }

  show(series) {
    this.series = series.filter(({timesteps}) => timesteps.length);
    this.element.hidden = !this.series.length;
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width || !this.series.length) return;
    this.width = width;
    this.scale();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", this.height);
    this.plot.setAttribute("aria-label", this.words());
    this.points = [...new Set(this.series.flatMap(({timesteps}) => timesteps))].sort((a, b) => a - b);
    this.plot.setAttribute("aria-valuemin", this.points[0]);
    this.plot.setAttribute("aria-valuemax", this.points.at(-1));
    this.svg.replaceChildren(...this.axes(), ...this.series.flatMap((one) => this.curve(one)));
    this.cross = shape("line", {class: "cross", y1: MARGIN.top, y2: this.height - MARGIN.bottom});
    this.svg.append(this.cross);
    this.mark(this.marked ?? null); // new points leave the cursor where it is
  }

  scale() {
    const all = this.series.flatMap(({values, intervals}) => [...values, ...(intervals ?? []).flat()]);
    const known = all.filter((value) => value != null && Number.isFinite(value));
    let [low, high] = this.range ?? [Math.min(...known), Math.max(...known)];
    const isShare = this.format === percent && low >= 0 && high <= 1;
    if (low === high && isShare) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    this.ticks = ticksOf(low, high, this.isSmall ? 3 : 4).filter((tick) => !this.isCount || Number.isInteger(tick));
    const step = this.ticks[1] - this.ticks[0];
    if (!this.range) [low, high] = [Math.min(low, this.ticks[0]), Math.max(high, this.ticks.at(-1))];
    const longest = Math.max(...this.ticks.map((tick) => this.tickText(tick).length));
    this.left = Math.max(MARGIN.left, 7 * longest + 10);
    const last = Math.max(...this.series.map(({timesteps}) => timesteps.at(-1)));
    const first = Math.min(...this.series.map(({timesteps}) => timesteps[0]), this.isWhole ? Infinity : 0);
    const [w, h] = [this.width - this.left - MARGIN.right, this.height - MARGIN.top - MARGIN.bottom];
    this.last = last;
    this.first = first;
    this.x = (timestep) => this.left + (w * (timestep - first)) / (last - first || 1);
    this.y = (value) => MARGIN.top + h * (1 - (value - low) / (high - low || step));
  }

  * axes() {
    for (const tick of this.ticks) {
      const y = this.y(tick);
      yield shape("line", {class: "grid", x1: this.left, x2: this.width - MARGIN.right, y1: y, y2: y});
      yield shape("text", {x: this.left - 6, y: y + 4, "text-anchor": "end", text: this.tickText(tick)});
    }
    const end = this.width - MARGIN.right - (this.isSmall ? 0 : 78);
    for (const tick of ticksOf(this.first, this.last, this.width < 360 ? 2 : 4)) {
      const x = this.x(tick);
      if (tick < this.first || x > end || (this.isWhole && !Number.isInteger(tick))) continue;
      yield shape("text", {x, y: this.height - 6, "text-anchor": "middle", text: short(tick)});
    }
    if (!this.isSmall) yield shape("text", {x: this.width - MARGIN.right, y: this.height - 6, "text-anchor": "end", text: this.unit});
  }

  // Plain numbers get as many decimals as tell two ticks apart.
  tickText(tick) {
    const step = Math.abs(this.ticks[1] - this.ticks[0]);
    if (this.format !== number || step >= 1 || step < 1e-4) return this.format(tick);
    const decimals = [1, 2, 3, 4, 5].find((count) => Math.abs(step * 10 ** count - Math.round(step * 10 ** count)) < 1e-6);
    return decimals ? tick.toFixed(decimals) : number(tick);
  }

  curve({colour, timesteps, values, intervals, isPoints, isDashed, isLast}) {
    const at = timesteps.map((timestep, i) => [this.x(timestep), values[i] == null ? null : this.y(values[i])]);
    const known = at.filter(([, y]) => y != null);
    const style = colourOf(colour);
    const path = known.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const drawn = [shape("path", {d: path, class: isDashed ? "curve dashed" : isPoints ? "curve thin" : "curve", stroke: style})];
    const pairs = (intervals ?? []).map((pair, i) => pair && {x: at[i][0], low: this.y(pair[0]), high: this.y(pair[1])}).filter(Boolean);
    if (pairs.length > MOST_WHISKERS) {
      const edge = [...pairs.map(({x, high}) => [x, high]), ...pairs.map(({x, low}) => [x, low]).reverse()];
      const d = edge.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
      drawn.unshift(shape("path", {d: `${d}Z`, class: "band", fill: style}));
    } else {
      drawn.push(...pairs.map(({x, low, high}) => shape("line", {class: "interval", x1: x, x2: x, y1: low, y2: high, stroke: style})));
    }
    if (isLast) drawn.push(...known.map(([x, y]) => shape("path", {d: `M${x} ${y - 7}l7 7l-7 7l-7 -7Z`, class: "last", fill: style})));
    else if (isPoints || known.length === 1) drawn.push(...known.map(([x, y]) => shape("circle", {cx: x, cy: y, r: 3.5, fill: style})));
    return drawn;
  }

  point(event) {
    if (!this.cross) return;
    if (!event) {
      this.mark(null);
      return;
    }
    const box = this.svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * this.width;
    const share = (place - this.left) / (this.width - this.left - MARGIN.right);
    this.mark(this.first + Math.max(0, Math.min(1, share)) * (this.last - this.first));
  }

  // Goes from point to point with the arrow keys, ten with Page Up and Down, to both ends, and away.
  step(event) {
    const {points} = this;
    const at = this.marked == null ? points.length - 1 : nearest(points, this.marked);
    const start = this.marked == null ? points.length : at;
    const to = {
      ArrowRight: start + 1, ArrowUp: start + 1, ArrowLeft: start - 1, ArrowDown: start - 1, PageUp: at + PAGE_OF_POINTS,
      PageDown: at - PAGE_OF_POINTS, Home: 0, End: points.length - 1, Escape: null,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.mark(to == null ? null : points[Math.max(0, Math.min(points.length - 1, to))]);
  }

  // Puts the cursor at a timestep, or takes it away.
  mark(wanted) {
    if (!this.cross) return;
    this.marked = wanted;
    this.cross.setAttribute("visibility", wanted == null ? "hidden" : "visible");
    if (wanted != null) for (const end of ["x1", "x2"]) this.cross.setAttribute(end, this.x(wanted));
    this.write(wanted);
    const at = wanted ?? this.points.at(-1);
    this.plot.setAttribute("aria-valuenow", Math.round(at));
    const values = this.series.map((one) => `${one.name || this.title} ${this.text(one, nearest(one.timesteps, at))}`);
    this.plot.setAttribute("aria-valuetext", `${this.isWhole ? this.unit : "timestep"} ${whole(at)}: ${values.join(", ")}`);
  }

  // A value with its interval, if it has one.
  text({values, intervals}, i) {
    const pair = intervals?.[i];
    return `${this.format(values[i])}${pair ? ` (${this.format(pair[0])} to ${this.format(pair[1])})` : ""}`;
  }

  write(wanted) {
    const entries = this.series.map((one) => {
      const i = wanted == null ? one.values.length - 1 : nearest(one.timesteps, wanted);
      const swatch = make("span", {class: one.isLast ? "swatch last" : "swatch", "aria-hidden": "true"});
      swatch.style.background = colourOf(one.colour);
      const when = wanted == null ? "" : ` at ${this.isWhole ? `${this.unit} ` : ""}${short(one.timesteps[i])}`;
      return make("li", {}, swatch, `${one.name} `, make("b", {text: wanted == null && !one.isLast ? this.format(one.values[i]) : this.text(one, i)}), when);
    });
    this.legend.replaceChildren(...entries);
  }

  words() {
    const parts = this.series.map(({name, values, timesteps}) => {
      const known = values.filter((value) => value != null);
      const [low, high] = [Math.min(...known), Math.max(...known)];
      return `${name}: ${this.format(values.at(-1))} at ${this.isWhole ? this.unit : "timestep"} ${whole(timesteps.at(-1))}, ` +
        `from ${this.format(low)} to ${this.format(high)} so far`;
    });
    return `${this.title}. ${parts.join("; ")}`;
  }
}

function nearest(sorted, wanted) {
  let best = 0;
  for (let i = 1; i < sorted.length; i += 1) {
    if (Math.abs(sorted[i] - wanted) <= Math.abs(sorted[best] - wanted)) best = i;
  }
  return best;
}

export function ticksOf(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let i = Math.floor(low / step + 1e-9); i * step <= high + step * 1e-9; i += 1) {
    if (i * step >= low - step * 1e-9) ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks.length > 1 ? ticks : [low, high];
}

// A curve of a few pixels beside a number.
export function sparkline(values) {
  const known = values.filter((value) => value != null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const points = known.map((value, i) => {
    const x = (100 * i) / (known.length - 1 || 1);
    return `${x.toFixed(1)},${(26 - (24 * (value - low)) / (high - low || 1)).toFixed(1)}`;
  });
  const line = shape("polyline", {points: points.join(" "), "vector-effect": "non-scaling-stroke"});
  return shape("svg", {class: "spark", viewBox: "0 0 100 28", preserveAspectRatio: "none", "aria-hidden": "true"}, line);
}
