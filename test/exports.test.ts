import { expect, it } from 'vitest'
import { exportedNames } from './support/exported-names.ts'

const all = exportedNames()

it('reads exports and imports', () => {
  expect(all.length).toBeGreaterThan(1_500)
  expect(all).toContainEqual({
    name: 'loadConfig',
    file: 'src/config/load-config.ts',
    isType: false,
    usedAtHome: false,
    imported: true,
  })
})

it('what nobody imports is not exported', () => {
  const dead = all.filter((one) => !one.imported && !(one.isType && one.usedAtHome))
  expect(dead.map(({ file, name }) => `${file}: ${name}`)).toEqual([])
})

/**
 * Names of two things, each within rooms that never meet; none is to be added. Functions of one name beside each other say
 * what SQL calls (families) and what runs (javascript).
 */
const TWO_MEANINGS: readonly string[] = [
  'Attempt',
  'ColumnDefinition',
  'ComparisonOperator',
  'FileColumn',
  'FinishedTask',
  'Found',
  'Frame',
  'JsonValue',
  'LocalTime',
  'LocalTimestamp',
  'Place',
  'Relation',
  'ResultPage',
  'SessionProperty',
  'StatementAnswer',
  'Step',
  'TableColumn',
  'TaskNews',
  'Token',
  'Work',
  'aggregate',
  'binaryFunctions',
  'canonicalZone',
  'catalogsOf',
  'constantValue',
  'datetimeFunctions',
  'distributionOf',
  'integer',
  'jsonFunctions',
  'named',
  'needsKey',
  'nodeInfo',
  'parseCall',
  'parseDate',
  'parseExpression',
  'parsePattern',
  'parseTime',
  'parseTimestamp',
  'parseType',
  'printType',
  'queryInfo',
  'queryListItem',
  'readPage',
  'regexpFunctions',
  'shapeOf',
  'taskInfo',
  'text',
  'tokensOf',
  'urlFunctions',
]

it('a name means one thing', () => {
  const files = new Map<string, Set<string>>()
  for (const { name, file } of all) files.set(name, (files.get(name) ?? new Set()).add(file))
  const twice = [...files].filter(([, of]) => of.size > 1).map(([name]) => name)
  expect(twice.toSorted()).toEqual(TWO_MEANINGS)
})
