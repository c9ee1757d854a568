// Numbers, sizes and times as people read them.

const plain = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", {notation: "compact", maximumSignificantDigits: 3});

export const whole = (value) => (value == null ? "–" : plain.format(Math.round(value)));

export const short = (value) => (value == null ? "–" : compact.format(value));

// 100 times a share, a half rounded up as on paper; the same as percentage() of statistics.py.
export function percentage(share, digits = 0) {
  const scaled = Number((100 * 10 ** digits * Math.abs(share)).toPrecision(12)); // without the error of the float
  return ((Math.sign(share) * Math.round(scaled)) / 10 ** digits).toFixed(digits);
}

export const percent = (share, digits = 0) => (share == null ? "–" : `${percentage(share, digits)}\u00a0%`);

// Four significant digits without a trailing zero, and never 1e-5 where 0 is meant.
export function number(value) {
  if (value == null) return "–";
  if (Number.isInteger(value)) return plain.format(value);
  const size = Math.abs(value);
  if (size < 1e-9) return "0"; // what is left of sums that are 0
  if (size >= 1000) return plain.format(Math.round(value));
  if (size > 0 && size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

// A reward, which is a sum of numbers of 32 bits.
export const reward = (value) => number(value != null && Math.abs(value) < 1e-6 ? 0 : value);

export function bytes(count) {
  if (count == null) return "–";
  for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (count >= unit) {
      const value = count / unit;
      return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${name}`;
    }
  }
  return `${count} B`;
}

export function duration(seconds) {
  if (seconds == null) return "–";
  const steps = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"]];
  for (const [size, name, small, smallName] of steps) {
    const inSmall = Math.round(seconds / small);
    const count = Math.floor(inSmall / (size / small));
    const rest = inSmall % (size / small);
    if (count) return rest ? `${count} ${name} ${rest} ${smallName}` : `${count} ${name}`;
  }
  const minutes = Math.round(seconds / 60);
  return seconds >= 60 ? `${minutes} min` : `${Math.max(1, Math.round(seconds))} s`;
}

// "19:42" today, "Fri 07:15" within a week, "3 Dec 07:15" later.
export function clock(date) {
  const time = date.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});
  const days = Math.abs(date - new Date()) / 86400e3;
  if (date.toDateString() === new Date().toDateString()) return time;
  const options = days < 6 ? {weekday: "short"} : {day: "numeric", month: "short"};
  return `${date.toLocaleDateString("en-GB", options)} ${time}`;
}

// A path as an argument of a command.
export const quoted = (path) => (/^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

export const plural = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

// "a", "a and b", "a, b and c".
export const listed = (words) => [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ");

// What the button does that pauses live pictures.
export const pauseWords = (isPaused) => (isPaused ? "▶ Resume the screens" : "❚❚ Pause the screens");
