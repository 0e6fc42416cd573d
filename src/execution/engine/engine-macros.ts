/** A macro of the engine. */
export interface MacroDefinition {
  /** The statement that creates it. */
  readonly statement: string
  /** The macros that it calls: an engine has to define them first. */
  readonly calls: readonly string[]
}

/** Macros by name, lower case. */
export type MacroDefinitions = ReadonlyMap<string, MacroDefinition>

/**
 * The macros of one DuckDB instance, each defined when a statement first calls it: defining all would make the start
 * too slow.
 */
export interface EngineMacros {
  /** Resolves when all of these macros, and the macros that they call, are defined. Calls run one after the other. */
  define(names: Iterable<string>): Promise<void>
}

/** @param run runs statements on a connection of its own, which is never interrupted */
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
