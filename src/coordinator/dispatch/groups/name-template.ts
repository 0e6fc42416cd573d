import { groupText, type GroupPath } from './group-path.ts'

/** A group's name in which `${NAME}` stands for what a selector found. */
export interface NameTemplate {
  readonly text: string
  readonly variables: readonly string[]
  /** @returns undefined where a variable has no value, as one of an expression's branch that was not taken */
  expand(values: ReadonlyMap<string, string>): string | undefined
  /** Could it be the name of a group made of this? */
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

/** Literals one after the other, anything between them. */
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

/** `global.adhoc.${USER}` as its templates. */
export function pathTemplates(text: string): readonly NameTemplate[] {
  return text.split('.').map(nameTemplate)
}

/** One name for all groups that a template makes: bounded by the file, for figures. */
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
