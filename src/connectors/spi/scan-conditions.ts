import { likeTest, onlyMatch } from '../../shared/like-pattern.ts'

/** A condition on a text: in a list, or like a pattern. Plain JSON, so that it fits an event. */
export type TextCondition =
  | { readonly in: readonly string[] }
  | { readonly like: string; readonly escape?: string | undefined }

/**
 * Conditions that all used rows meet, by column name; all of them hold at once. A connector may leave out other rows,
 * but need not: rows are filtered again.
 */
export type ScanConditions = Readonly<Record<string, readonly TextCondition[]>>

/** Conditions in the form that connectors use. */
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

  /** Whether a row with this text in the column may be used. */
  has(column: string, text: string): boolean {
    return this.#tests.get(column)?.every((test) => test(text)) ?? true
  }

  /** All texts that the column may have; undefined when they are not known one by one. */
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
