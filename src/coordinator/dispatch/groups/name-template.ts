import { groupText, type GroupPath } from './group-path.ts'

/** The name of a group in which `${NAME}` stands for a value from the selector. */
export interface NameTemplate {
  readonly text: string
  readonly variables: readonly string[]
  /**
   * @returns undefined where a variable has no value, such as a named group in a branch of an expression that did not
   * match
   */
  expand(values: ReadonlyMap<string, string>): string | undefined
  /** Whether the template could make a group of this name. */
  fits(name: string): boolean
}

type Part = { readonly literal: string } | { readonly variable: string }

const VARIABLE = /\$\{([a-zA-Z][a-zA-Z0-9]*)\}/g

export function nameTemplate(text: string): NameTemplate {
  const parts: Part[] = []
  let from = 0
  for (const found of text.matchAll(VARIABLE)) {
    parts.push({ literal: text.slice(from, found.index) }, { variable: found[1]! })
    from = found.index + found[0].length
  }
  parts.push({ literal: text.slice(from) })
  const literals = parts.flatMap((part) => ('literal' in part ? [part.literal] : []))
  return {
    text,
    variables: parts.flatMap((part) => ('variable' in part ? [part.variable] : [])),
    expand(values) {
      let name = ''
      for (const part of parts) {
        const piece = 'literal' in part ? part.literal : values.get(part.variable)
        if (piece === undefined) return undefined
        name += piece
      }
      return name
    },
    fits: (name) => fitsLiterals(literals, name),
  }
}

/** Whether the name has the literals one after the other, with anything between them. */
function fitsLiterals(literals: readonly string[], name: string): boolean {
  const first = literals[0]!
  if (literals.length === 1) return name === first
  const last = literals.at(-1)!
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false
  let at = first.length
  for (const literal of literals.slice(1, -1)) {
    const found = name.indexOf(literal, at)
    if (found < 0) return false
    at = found + literal.length
  }
  return at <= name.length - last.length
}

/** The templates of a path such as `global.adhoc.${USER}`. */
export function pathTemplates(text: string): readonly NameTemplate[] {
  return text.split('.').map(nameTemplate)
}

/** One label for all groups that a template makes: the file bounds how many labels metrics have. */
export function templateText(templates: readonly Pick<NameTemplate, 'text'>[]): string {
  return groupText(templates.map(({ text }) => text))
}

/** @returns undefined where a name would be empty */
export function expandPath(
  templates: readonly NameTemplate[],
  values: ReadonlyMap<string, string>,
): GroupPath | undefined {
  const path: string[] = []
  for (const template of templates) {
    const name = template.expand(values)
    if (!name) return undefined
    path.push(name)
  }
  return path
}
