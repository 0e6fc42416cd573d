import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { functionsDocument } from '../../../src/sql/functions/document.ts'
import { overloadsOf } from '../../../src/sql/functions/function-table.ts'
import { resolveFunction, type ArgumentType } from '../../../src/sql/functions/resolve-function.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { typeName } from '../../../src/sql/types/type-text.ts'

// The output of SHOW FUNCTIONS on a Trino server.
const recorded = readFileSync(new URL('trino-functions.tsv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))

/** Plug-ins that Quipu does not have: geospatial, machine learning, MongoDB. Table functions belong to the analyser. */
const leftOut =
  /^(st_|geometr|spherical|bing_tile|to_geometry|to_spherical|from_geo|to_geo|to_encoded|from_encoded|great_circle|line_|simplify|convex|learn_|classif|regress|features|evaluate_class|objectid|timestamp_objectid|to_simplify|spatial_)/i

const args = (...types: string[]): ArgumentType[] => types.map((text) => ({ kind: 'value', type: parseTypeText(text) }))

describe('The function table', () => {
  it('has every function name of Trino, except for plug-ins that Quipu does not have', () => {
    const names = [
      ...new Set(
        recorded
          .filter(([, result, , kind]) => kind !== 'table' && !/geometry|sphericalgeography|bingtile/.test(result!))
          .map(([name]) => name!.toLowerCase()),
      ),
    ].filter((name) => !leftOut.test(name))
    expect(names.filter((name) => overloadsOf(name).length === 0)).toEqual([])
  })

  it('matches docs/functions.md', () => {
    expect(readFileSync(new URL('../../../docs/functions.md', import.meta.url), 'utf8')).toBe(functionsDocument())
  })
})

describe('The resolution of overloads', () => {
  it.each([
    ['abs', ['integer'], 'integer'],
    ['abs', ['decimal(9,2)'], 'decimal(9,2)'],
    ['sum', ['integer'], 'bigint'],
    ['sum', ['decimal(9,2)'], 'decimal(38,2)'],
    ['avg', ['integer'], 'double'],
    ['round', ['decimal(9,2)', 'integer'], 'decimal(10,2)'],
    ['substr', ['varchar(7)', 'integer'], 'varchar(7)'],
    ['replace', ['varchar(3)', 'varchar(1)', 'varchar(3)'], 'varchar(15)'],
    ['concat', ['varchar(3)', 'varchar(4)'], 'varchar'],
    ['concat', ['array(integer)', 'bigint'], 'array(bigint)'],
    ['greatest', ['integer', 'decimal(5,2)'], 'decimal(12,2)'],
    ['date_trunc', ['varchar(3)', 'timestamp(6)'], 'timestamp(6)'],
    ['map', ['array(varchar(1))', 'array(integer)'], 'map(varchar(1), integer)'],
    ['element_at', ['map(varchar(1),integer)', 'varchar(1)'], 'integer'],
    ['year', ['date'], 'bigint'],
    ['approx_percentile', ['integer', 'decimal(2,1)'], 'bigint'],
    ['format', ['varchar(2)', 'integer', 'date'], 'varchar'],
  ])('gives %s(%s) the type %s', (name, types, result) => {
    expect(typeName(resolveFunction(name, args(...types)).resultType)).toBe(result)
  })

  it('widens the state type of reduce until the lambda fits', () => {
    const lambda: ArgumentType = {
      kind: 'lambda',
      parameterCount: 2,
      bodyType: ([state]) => (state!.kind === 'integer' ? parseTypeText('bigint') : state!),
    }
    const identity: ArgumentType = { kind: 'lambda', parameterCount: 1, bodyType: ([state]) => state! }
    const resolved = resolveFunction('reduce', [...args('array(bigint)', 'integer'), lambda, identity])
    expect(typeName(resolved.resultType)).toBe('bigint')
    expect(resolved.argumentTypes[1]).toEqual(parseTypeText('bigint'))
  })

  it.each([
    ['no_such', ['integer'], `Function 'no_such' not registered`],
    [
      'abs',
      ['date'],
      'Unexpected parameters (date) for function abs. Expected: abs(bigint), abs(decimal(p,s)), abs(double), abs(integer), abs(real), abs(smallint), abs(tinyint)',
    ],
  ])('refuses %s(%s)', (name, types, message) => {
    expect(() => resolveFunction(name, args(...types))).toThrow(
      expect.objectContaining({ errorName: 'FUNCTION_NOT_FOUND', message }),
    )
  })
})
