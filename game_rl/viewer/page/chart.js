// Line charts in SVG: curves over timesteps, points of evaluations with their intervals.

import {make, shape} from "./elements.js";
import {number, percent, short, whole} from "./words.js";

const MARGIN = {top: 8, right: 12, bottom: 24, left: 44};

// series: [{name, colour, timesteps, values, intervals?, isPoints?, isDashed?}]; format: of a value.
export class Chart {
  constructor({title, format = number, height = 190, range = null, isSmall = false, unit = "timesteps", isWhole = false}) {
    Object.assign(this, {left: MARGIN.left, title, format, height, range, isSmall, unit, isWhole, series: []});
    this.svg = shape("svg", {role: "img", class: "chart"});
    this.legend = make("ul", {class: "legend"});
    this.element = make("figure", {class: isSmall ? "figure small" : "figure"},
      make("figcaption", {text: title}), this.svg, this.legend);
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
    this.svg.setAttribute("aria-label", this.words());
    this.svg.replaceChildren(...this.axes(), ...this.series.flatMap((one) => this.curve(one)));
    this.cross = shape("line", {class: "cross", y1: MARGIN.top, y2: this.height - MARGIN.bottom});
    this.cross.setAttribute("visibility", "hidden");
    this.svg.append(this.cross);
    this.write(null);
  }

  scale() {
    const all = this.series.flatMap(({values, intervals}) => [...values, ...(intervals ?? []).flat()]);
    const known = all.filter((value) => value != null && Number.isFinite(value));
    let [low, high] = this.range ?? [Math.min(...known), Math.max(...known)];
    const isShare = this.format === percent && low >= 0 && high <= 1;
    if (low === high && isShare) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    this.ticks = ticksOf(low, high, this.isSmall ? 3 : 4);
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

  curve({colour, timesteps, values, intervals, isPoints, isDashed}) {
    const at = timesteps.map((timestep, i) => [this.x(timestep), values[i] == null ? null : this.y(values[i])]);
    const known = at.filter(([, y]) => y != null);
    const style = `var(--series-${colour})`;
    const path = known.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const drawn = [shape("path", {d: path, class: isDashed ? "curve dashed" : isPoints ? "curve thin" : "curve", stroke: style})];
    if (intervals) {
      intervals.forEach((pair, i) => {
        if (!pair) return;
        const [x] = at[i];
        drawn.push(shape("line", {class: "interval", x1: x, x2: x, y1: this.y(pair[0]), y2: this.y(pair[1]), stroke: style}));
      });
    }
    if (isPoints || known.length === 1) drawn.push(...known.map(([x, y]) => shape("circle", {cx: x, cy: y, r: 3.5, fill: style})));
    return drawn;
  }

  point(event) {
    if (!this.cross) return;
    if (!event) {
      this.cross.setAttribute("visibility", "hidden");
      this.write(null);
      return;
    }
    const box = this.svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * this.width;
    const share = (place - this.left) / (this.width - this.left - MARGIN.right);
    const wanted = this.first + Math.max(0, Math.min(1, share)) * (this.last - this.first);
    this.cross.setAttribute("visibility", "visible");
    this.cross.setAttribute("x1", this.x(wanted));
    this.cross.setAttribute("x2", this.x(wanted));
    this.write(wanted);
  }

  write(wanted) {
    const entries = this.series.map((one) => {
      const i = wanted == null ? one.values.length - 1 : nearest(one.timesteps, wanted);
      const swatch = make("span", {class: "swatch", "aria-hidden": "true"});
      swatch.style.background = `var(--series-${one.colour})`;
      const when = wanted == null ? "" : ` at ${this.isWhole ? `${this.unit} ` : ""}${short(one.timesteps[i])}`;
      return make("li", {}, swatch, `${one.name} `, make("b", {text: this.format(one.values[i])}), when);
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
