import { binaryFunctions } from './binary.ts'
import { checksumFunctions } from './checksum.ts'
import { colorFunctions } from './color.ts'
import { datetimeFunctions } from './datetime.ts'
import { formatFunctions } from './format.ts'
import { jsonFunctions } from './json.ts'
import { jsonTableFunctions } from './json-table.ts'
import { networkFunctions } from './network.ts'
import { regexpFunctions } from './regexp.ts'
import { rowPatternFunctions } from './row-patterns.ts'
import type { ScalarFunction } from './scalar-function.ts'
import { sqlJsonFunctions } from './sql-json.ts'
import { statisticsFunctions } from './statistics.ts'
import { textFunctions } from './text.ts'
import { urlFunctions } from './url.ts'

/** Every function of the engine written in JavaScript. */
export const scalarFunctions: readonly ScalarFunction[] = [
  ...textFunctions,
  ...binaryFunctions,
  ...regexpFunctions,
  ...jsonFunctions,
  ...sqlJsonFunctions,
  ...jsonTableFunctions,
  ...rowPatternFunctions,
  ...urlFunctions,
  ...networkFunctions,
  ...datetimeFunctions,
  ...statisticsFunctions,
  ...checksumFunctions,
  ...colorFunctions,
  ...formatFunctions,
]
