/**
 * An element. Text goes in as text nodes and attributes as attributes: nothing that a client sent is ever read as HTML.
 * @param {string} tag
 * @param {Record<string, unknown> | null} attributes `on…` with a function listens; undefined and false leave it out
 * @param {...unknown} children nodes, text, numbers, lists of those; null and undefined are left out
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue
    element.append(typeof child === 'object' ? child : document.createTextNode(String(child)))
  }
  return element
}

/** Only paths of this server become links: an id with anything else in it is shown and not linked. */
export function link(path, text) {
  return /^\/[a-zA-Z0-9/_.?=&%-]*$/.test(path) ? h('a', { href: path }, text) : h('span', null, text)
}
