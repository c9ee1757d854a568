// Making and changing elements; texts never become HTML.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Writes a text only where it differs, so that nothing is laid out or read out again without need.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function section(title, id, ...children) {
  const heading = make("h2", {id: `${id}-title`, text: title});
  return make("section", {id, "aria-labelledby": `${id}-title`}, heading, ...children);
}

// A bar whose length is CSS, as inline styles are not allowed in HTML.
export function bar(share, kind = "") {
  const fill = make("span", {class: `fill ${kind}`});
  fill.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return make("span", {class: "bar", "aria-hidden": "true"}, fill);
}
