import { likeTest, onlyMatch } from '../../shared/like-pattern.ts'

/** What a text has to be: one of a list, or like a pattern. Plain JSON, so that it fits an event. */
export type TextCondition =
  { readonly in: readonly string[] } | { readonly like: string; readonly escape?: string | undefined }

/**
 * What every row that is used fulfils, by the names of its columns, all of it at once. A connector may leave out rows that do
 * not, and need not: they are looked at again.
 */
export type ScanConditions = Readonly<Record<string, readonly TextCondition[]>>

/** Conditions as a connector asks them. */
export class Wanted {
  readonly #tests = new Map<string, readonly ((text: string) => boolean)[]>()
  readonly #values = new Map<string, readonly string[]>()

  constructor(conditions: ScanConditions = {}) {
    for (const [column, all] of Object.entries(conditions)) {
      this.#tests.set(column, all.map(testOf))
      const lists = all.map(valuesOf).filter((values) => values !== undefined)
      if (lists.length > 0)
        this.#values.set(
          column,
          [...new Set(lists[0])].filter((text) => this.has(column, text)),
        )
    }
  }

  /** May a row with this text in the column be used? */
  has(column: string, text: string): boolean {
    return this.#tests.get(column)?.every((test) => test(text)) ?? true
  }

  /** All texts that the column may have; undefined where they are not known one by one. */
  values(column: string): readonly string[] | undefined {
    return this.#values.get(column)
  }
}

function testOf(condition: TextCondition): (text: string) => boolean {
  if ('like' in condition) return likeTest({ pattern: condition.like, escape: condition.escape })
  const values = new Set(condition.in)
  return (text) => values.has(text)
}

function valuesOf(condition: TextCondition): readonly string[] | undefined {
  if ('in' in condition) return condition.in
  const only = onlyMatch({ pattern: condition.like, escape: condition.escape })
  return only === undefined ? undefined : [only]
}
