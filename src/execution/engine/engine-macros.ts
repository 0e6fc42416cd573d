/** A macro of the engine. */
export interface MacroDefinition {
  /** The statement that creates it. */
  readonly statement: string
  /** The macros that it calls itself: an engine has them before it. */
  readonly calls: readonly string[]
}

/** By their names, lower case. */
export type MacroDefinitions = ReadonlyMap<string, MacroDefinition>

/** The macros of one DuckDB instance, each defined when a statement first calls it: all of them take longer than a start may. */
export interface EngineMacros {
  /** Resolves when all of these are there, and what they call. Those that are defined wait for those that are not. */
  define(names: Iterable<string>): Promise<void>
}

/** @param run runs statements on a connection of its own, which nobody interrupts */
export function createMacros(definitions: MacroDefinitions, run: (sql: string) => Promise<unknown>): EngineMacros {
  const defined = new Set<string>()
  let previous = Promise.resolve()

  const defineMissing = async (names: readonly string[]): Promise<void> => {
    const missing = new Set<string>()
    const visit = (name: string): void => {
      const definition = definitions.get(name)
      if (definition === undefined || defined.has(name) || missing.has(name)) return
      for (const called of definition.calls) visit(called)
      missing.add(name)
    }
    for (const name of names) visit(name)
    if (missing.size === 0) return
    await run([...missing].map((name) => definitions.get(name)!.statement).join(';\n'))
    for (const name of missing) defined.add(name)
  }

  return {
    async define(called) {
      const names = [...called].filter((name) => !defined.has(name))
      if (names.length === 0) return
      const mine = previous.then(() => defineMissing(names))
      previous = mine.catch(() => undefined)
      await mine
    },
  }
}
