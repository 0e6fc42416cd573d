import { aggregateFunctions } from './families/aggregate.ts'
import { arrayFunctions } from './families/array.ts'
import { binaryFunctions } from './families/binary.ts'
import { datetimeFunctions } from './families/datetime.ts'
import { generalFunctions } from './families/general.ts'
import { jsonFunctions } from './families/json.ts'
import { lambdaFunctions } from './families/lambda.ts'
import { mapFunctions } from './families/map.ts'
import { mathFunctions } from './families/math.ts'
import { regexpFunctions } from './families/regexp.ts'
import { sketchFunctions } from './families/sketch.ts'
import { stringFunctions } from './families/string.ts'
import { urlFunctions } from './families/url.ts'
import { windowFunctions } from './families/window.ts'
import type { FunctionDefinition } from './function-definition.ts'

/** The function table: every function of the dialect, one file per family. */
const families: Readonly<Record<string, readonly FunctionDefinition[]>> = {
  Aggregate: aggregateFunctions,
  Window: windowFunctions,
  Array: arrayFunctions,
  Map: mapFunctions,
  Lambda: lambdaFunctions,
  String: stringFunctions,
  'Regular expression': regexpFunctions,
  JSON: jsonFunctions,
  'Date and time': datetimeFunctions,
  Mathematical: mathFunctions,
  Binary: binaryFunctions,
  URL: urlFunctions,
  Sketch: sketchFunctions,
  'Conversion, comparison and others': generalFunctions,
}

let byName: ReadonlyMap<string, readonly FunctionDefinition[]> | undefined

/** The overloads of a name in lower case; empty if there is no such function. */
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
