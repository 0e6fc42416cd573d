import { aggregateFunctions } from './families/aggregate.ts'
import type { FunctionDefinition } from './function-definition.ts'

/** The function table: every function of the dialect, one family a file. */
const families: Readonly<Record<string, readonly FunctionDefinition[]>> = {
  aggregate: aggregateFunctions,
}

let byName: ReadonlyMap<string, readonly FunctionDefinition[]> | undefined

/** The overloads of a name in lower case; none where there is no such function. */
export function overloadsOf(name: string): readonly FunctionDefinition[] {
  byName ??= indexed()
  return byName.get(name) ?? []
}

function indexed(): ReadonlyMap<string, readonly FunctionDefinition[]> {
  const index = new Map<string, FunctionDefinition[]>()
  for (const definition of Object.values(families).flat()) {
    const name = nameOf(definition)
    const overloads = index.get(name)
    if (overloads === undefined) index.set(name, [definition])
    else overloads.push(definition)
  }
  return index
}

/** The table by family, for the documentation, SHOW FUNCTIONS and tests. */
export function functionFamilies(): Readonly<Record<string, readonly FunctionDefinition[]>> {
  return families
}

export function nameOf(definition: FunctionDefinition): string {
  return definition.signature.slice(0, definition.signature.indexOf('('))
}
