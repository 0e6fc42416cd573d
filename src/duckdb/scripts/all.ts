import { binaryScripts } from './binary.ts'
import { checksumScripts } from './checksum.ts'
import { colorScripts } from './color.ts'
import { datetimeScripts } from './datetime.ts'
import { distinctEstimateScripts } from './distinct-estimate.ts'
import { doubleTextScripts } from './double-text.ts'
import { formatScripts } from './format.ts'
import { jsonScripts } from './json.ts'
import { jsonTableScripts } from './json-table.ts'
import { networkScripts } from './network.ts'
import { regexpScripts } from './regexp.ts'
import { rowPatternScripts } from './row-patterns.ts'
import type { ColumnFunction, ScalarFunction } from './scalar-function.ts'
import { sqlJsonScripts } from './sql-json.ts'
import { statisticsScripts } from './statistics.ts'
import { textScripts } from './text.ts'
import { urlScripts } from './url.ts'
import { zoneScripts } from './zone-offsets.ts'

/** Every function of the engine written in JavaScript. */
export const engineScripts: readonly (ColumnFunction | ScalarFunction)[] = [
  ...textScripts,
  ...doubleTextScripts,
  ...binaryScripts,
  ...regexpScripts,
  ...jsonScripts,
  ...sqlJsonScripts,
  ...jsonTableScripts,
  ...rowPatternScripts,
  ...urlScripts,
  ...networkScripts,
  ...datetimeScripts,
  ...zoneScripts,
  ...statisticsScripts,
  ...distinctEstimateScripts,
  ...checksumScripts,
  ...colorScripts,
  ...formatScripts,
]
