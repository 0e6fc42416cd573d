/** A part of an HTML page. Text stays text wherever it comes from: only `writeDocument` turns a tree into markup. */
export type PagePart = PageElement | string

export interface PageElement {
  readonly tag: Tag
  readonly attributes: Readonly<Record<string, string | undefined>>
  readonly children: readonly PagePart[]
}

type Tag =
  | 'html'
  | 'head'
  | 'meta'
  | 'title'
  | 'link'
  | 'body'
  | 'main'
  | 'h1'
  | 'p'
  | 'form'
  | 'input'
  | 'label'
  | 'button'
  | 'a'
  | 'dl'
  | 'dt'
  | 'dd'
  | 'strong'
  | 'header'
  | 'style'
  | 'h2'
  | 'section'
  | 'details'
  | 'summary'
  | 'pre'
  | 'code'
  | 'table'
  | 'tr'
  | 'th'
  | 'td'

/** Makes an element. Attributes that are undefined are left out. */
export function element(
  tag: Tag,
  attributes: PageElement['attributes'],
  ...children: readonly PagePart[]
): PageElement {
  return { tag, attributes, children }
}

const VOID = new Set<Tag>(['meta', 'link', 'input'])

function write(part: PagePart, inLines = false): string {
  if (typeof part === 'string')
    return inLines
      ? part
          .split(/(?<=[\n\t])/)
          .map(line)
          .join('')
      : escaped(part)
  const { tag, attributes, children } = part
  const written = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : [` ${name}="${escaped(value)}"`],
  )
  const open = `<${tag}${written.join('')}>`
  return VOID.has(tag)
    ? open
    : `${open}${children.map((child) => write(child, inLines || tag === 'pre')).join('')}</${tag}>`
}

/** Escapes a line of preformatted text and keeps the line break or tab at its end. */
function line(text: string): string {
  const end = /[\n\t]$/.exec(text)?.[0] ?? ''
  return escaped(text.slice(0, text.length - end.length)) + end
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Escapes a text. Controls, and characters that change the direction of text, become U+FFFD: a name must look like
 * itself.
 */
function escaped(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, '\uFFFD')
    .replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}

/** Writes a whole HTML document. */
export function writeDocument(html: PageElement): string {
  return `<!doctype html>${write(html)}`
}
