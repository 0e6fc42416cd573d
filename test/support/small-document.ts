/** The part of a browser's document that the views use. Text and elements are distinct. */
export interface SmallElement {
  readonly tag: string
  readonly attributes: ReadonlyMap<string, string>
  readonly listeners: ReadonlyMap<string, (event: unknown) => void>
  readonly children: readonly (SmallElement | string)[]
}

class Element implements SmallElement {
  readonly tag: string
  readonly attributes = new Map<string, string>()
  readonly listeners = new Map<string, (event: unknown) => void>()
  readonly children: (Element | string)[] = []

  constructor(tag: string) {
    this.tag = tag
  }

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value)
  }

  addEventListener(name: string, listener: (event: unknown) => void): void {
    this.listeners.set(name, listener)
  }

  append(child: Element | { readonly text: string }): void {
    this.children.push('text' in child ? child.text : child)
  }
}

export const smallDocument = {
  createElement: (tag: string) => new Element(tag),
  createTextNode: (text: string) => ({ text }),
}

/** These elements and all elements below them. Other nodes are left out. */
export function elementsOf(parts: readonly unknown[]): SmallElement[] {
  return parts.flat(Infinity).flatMap((part) => {
    if (!(part instanceof Element)) return []
    return [part, ...elementsOf(part.children)]
  })
}

export function textOf(element: SmallElement): string {
  return element.children.map((child) => (typeof child === 'string' ? child : textOf(child))).join('')
}
