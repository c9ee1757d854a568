() => {
  // What a checker of accessibility looks for first: names, labels, contrast, ids, headings, focus.
  const faults = [];
  const shown = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(element).visibility === "visible";
  };
  const words = (element) => `<${element.tagName.toLowerCase()} class="${element.className.baseVal ?? element.className}"> ${element.textContent.trim().slice(0, 40)}`;
  const named = (element) => {
    const by = element.getAttribute("aria-labelledby");
    const label = element.id && document.querySelector(`label[for="${element.id}"]`);
    return (element.getAttribute("aria-label") || (by && document.getElementById(by)?.textContent) ||
      label?.textContent || element.getAttribute("alt") || element.textContent || "").trim();
  };

  const needNames = "button, a[href], input, select, summary, [role=img], [role=region], [role=progressbar], [role=group], section, nav, img, video, [tabindex]";
  for (const element of document.querySelectorAll(needNames)) {
    if (shown(element) && element.id !== "main" && !named(element)) faults.push(`no name: ${words(element)}`);
  }
  for (const canvas of document.querySelectorAll("canvas, svg")) {
    const hidden = canvas.closest("[aria-hidden=true]");
    if (!hidden && !(canvas.getAttribute("role") === "img" && named(canvas)) && shown(canvas)) faults.push(`a picture without words: ${words(canvas)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map(({id}) => id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) faults.push(`twice: #${id}`);
  for (const element of document.querySelectorAll("[aria-labelledby], label[for]")) {
    const target = element.getAttribute("aria-labelledby") ?? element.getAttribute("for");
    if (!document.getElementById(target)) faults.push(`names what is not there: ${target}`);
  }
  if (!document.documentElement.lang) faults.push("no language");
  if (!document.title) faults.push("no title");
  for (const tag of ["main", "h1"]) if (document.querySelectorAll(tag).length !== 1) faults.push(`not one ${tag}`);
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    if (!shown(heading)) continue;
    const own = Number(heading.tagName[1]);
    if (own > level + 1) faults.push(`a heading of level ${own} after ${level}: ${words(heading)}`);
    level = own;
  }
  for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) faults.push(`changes the order of focus: ${words(element)}`);
  for (const element of document.querySelectorAll("[aria-hidden=true] button, [aria-hidden=true] a, button button, a button")) faults.push(`unreachable: ${words(element)}`);
  for (const list of document.querySelectorAll("ul, ol")) {
    for (const child of list.children) if (child.tagName !== "LI") faults.push(`in a list: ${words(child)}`);
  }
  for (const box of document.querySelectorAll("*")) {
    const style = getComputedStyle(box);
    const scrolls = ["auto", "scroll"].includes(style.overflowY) || ["auto", "scroll"].includes(style.overflowX);
    const isCut = box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1;
    if (scrolls && isCut && shown(box) && box.tabIndex < 0 && !box.querySelector("button, a, [tabindex]")) faults.push(`scrolls without keys: ${words(box)}`);
  }
  for (const button of document.querySelectorAll("button, select, input, summary, a[href]")) {
    const box = button.getBoundingClientRect();
    if (shown(button) && button.id !== "skip" && box.height < 12) faults.push(`too small: ${words(button)}`);
  }

  // contrast of each text with what is painted behind it
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = rgb(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !shown(element) || element.closest("script, noscript, title, .unseen, .skip")) continue;
    const style = getComputedStyle(element);
    const colour = rgb(element instanceof SVGElement ? style.fill : style.color);
    const [high, low] = [light(colour), light(behind(element))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${words(element)}`);
  }
  return faults;
}
