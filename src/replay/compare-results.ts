import { digits, integer, joined, sql, toText, type Sql } from '../duckdb/text/sql.ts'
import { canonicalValue } from './canonical-value.ts'
import { cellsOf, type ScratchResult, type ScratchResults } from './scratch-results.ts'
import type { Difference } from './verdict.ts'

export type Comparison =
  | { readonly kind: 'same'; readonly order: boolean }
  | { readonly kind: 'different'; readonly difference: Difference; readonly examples: readonly Example[] }

/** A row that one side has more often, with its values as they were sent. */
export interface Example {
  readonly side: 'here' | 'there'
  readonly row: readonly (string | null)[]
}

/**
 * The largest accepted difference between sums of the same numbers in another order, as a share of the sum of their
 * magnitudes: 2^-53 times some million additions, and for float4 2^-24 times some hundreds. (Presto's verifier takes
 * 1e-4 of the sum itself. That hides an average that is wrong in its fifth digit, and fails if a sum is near zero.)
 */
const MARGIN = { double: '1e-9', real: '1e-5' } as const
const MOST_EXAMPLES = 10

/**
 * Compares two results as bags of rows. Values without a fraction are compared by their texts. Floating-point columns
 * are compared by their sums among rows whose other columns are equal; NaN, infinities and NULL are counted. @returns
 * whether the order is the same too, if nothing differs
 */
export async function compareResults(
  { connection }: Pick<ScratchResults, 'connection'>,
  here: ScratchResult,
  there: ScratchResult,
): Promise<Comparison> {
  const different = (difference: Difference, examples: readonly Example[] = []): Comparison => ({
    kind: 'different',
    difference,
    examples,
  })
  const shape = (one: ScratchResult) => one.columns.map(({ name, type }) => `${name} ${type}`)
  if (shape(here).join('\0') !== shape(there).join('\0'))
    return different({ kind: 'columns', here: shape(here), there: shape(there) })
  const columns = here.columns.map(({ name, type }, index) => ({ name, index, ...readAs(type, index) }))
  const exact = columns.filter((column) => column.kind === 'exact')
  const floating = columns.filter((column) => column.kind !== 'exact')
  const examples = () => examplesOf(connection, here, there)
  const ask = async (query: Sql): Promise<readonly number[]> => {
    const [row] = (await connection.runAndReadAll(toText(query))).getRowsJS()
    return (row ?? []).map(Number)
  }
  if (here.rows !== there.rows) return different({ kind: 'rows', here: here.rows, there: there.rows }, await examples())
  if (columns.length === 0) return { kind: 'same', order: true }

  const both = bothSides(here, there, columns)
  const [otherGroups = 0, ...otherSums] = await ask(groupsThatDiffer(both, exact, floating))
  if (otherGroups > 0) {
    const counts = await ask(
      sql`SELECT ${joined(
        exact.map((column) => sql`(${valuesThatDiffer(both, column)})`),
        ', ',
      )}`,
    )
    const found = exact.filter((_, i) => counts[i]! > 0)
    return different(named('values', found), await examples())
  }
  const beyond = floating.filter((_, i) => otherSums[i]! > 0)
  if (beyond.length > 0) return different(named('floating', beyond), await examples())
  const [misplaced = 0] = exact.length === 0 ? [] : await ask(positionsThatDiffer(here, there, exact))
  return { kind: 'same', order: misplaced === 0 }
}

interface ComparedColumn {
  readonly name: string
  readonly index: number
  readonly kind: 'exact' | keyof typeof MARGIN
  /** SQL of the compared value, made from the text that was sent. */
  readonly value: Sql
}

function named(kind: 'values' | 'floating', columns: readonly ComparedColumn[]): Difference {
  return { kind, columns: columns.map(({ index }) => index), names: columns.map(({ name }) => name) }
}

function readAs(type: string, index: number): Pick<ComparedColumn, 'kind' | 'value'> {
  const sent = cellsOf(index)
  if (type === 'double' || type === 'real') return { kind: type, value: sql`TRY_CAST(${sent} AS DOUBLE)` }
  return { kind: 'exact', value: canonicalValue(sent, type) }
}

function bothSides(here: ScratchResult, there: ScratchResult, columns: readonly ComparedColumn[]): Sql {
  const fields = joined(
    columns.map(({ index, value }) => sql`, ${value} AS ${cellsOf(index)}`),
    '',
  )
  return sql`(SELECT 1 AS side${fields} FROM ${here.table} UNION ALL SELECT -1 AS side${fields} FROM ${there.table})`
}

function groupsThatDiffer(both: Sql, exact: readonly ComparedColumn[], floating: readonly ComparedColumn[]): Sql {
  const sums = floating.map(({ index, kind }) => {
    const value = cellsOf(index)
    const finite = sql`isfinite(${value})`
    const margin = digits(kind === 'real' ? MARGIN.real : MARGIN.double)
    return sql`, (coalesce(sum(side) FILTER (${value} IS NULL), 0) <> 0
      OR coalesce(sum(side) FILTER (isnan(${value})), 0) <> 0
      OR coalesce(sum(side) FILTER (isinf(${value}) AND ${value} > 0), 0) <> 0
      OR coalesce(sum(side) FILTER (isinf(${value}) AND ${value} < 0), 0) <> 0
      OR abs(coalesce(fsum(side * ${value}) FILTER (${finite}), 0))
        > ${margin} * coalesce(fsum(abs(${value})) FILTER (${finite}), 0)) AS f${integer(index)}`
  })
  const keys =
    exact.length === 0
      ? sql``
      : sql` GROUP BY ${joined(
          exact.map(({ index }) => cellsOf(index)),
          ', ',
        )}`
  const counts = floating.map(({ index }) => sql`, count(*) FILTER (f${integer(index)})`)
  return sql`SELECT count(*) FILTER (surplus <> 0)${joined(counts, '')}
    FROM (SELECT sum(side) AS surplus${joined(sums, '')} FROM ${both}${keys})`
}

function valuesThatDiffer(both: Sql, { index }: ComparedColumn): Sql {
  const key = cellsOf(index)
  return sql`SELECT count(*) FROM (SELECT ${key} FROM ${both} GROUP BY ${key} HAVING sum(side) <> 0)`
}

function positionsThatDiffer(here: ScratchResult, there: ScratchResult, exact: readonly ComparedColumn[]): Sql {
  const fields = joined(
    exact.map(({ index, value }) => sql`, ${value} AS ${cellsOf(index)}`),
    '',
  )
  const unlike = exact.map(({ index }) => sql`a.${cellsOf(index)} IS DISTINCT FROM b.${cellsOf(index)}`)
  return sql`SELECT count(*) FROM (SELECT place${fields} FROM ${here.table}) a
    JOIN (SELECT place${fields} FROM ${there.table}) b USING (place) WHERE ${joined(unlike, ' OR ')}`
}

/** Rows that one side has more often, as they were sent. */
async function examplesOf(
  connection: ScratchResults['connection'],
  here: ScratchResult,
  there: ScratchResult,
): Promise<readonly Example[]> {
  if (here.columns.length === 0) return []
  const fields = joined(
    here.columns.map((_, index) => cellsOf(index)),
    ', ',
  )
  const examples: Example[] = []
  for (const [side, one, other] of [
    ['here', here, there],
    ['there', there, here],
  ] as const) {
    const query = sql`SELECT ${fields} FROM ${one.table} EXCEPT ALL SELECT ${fields} FROM ${other.table}
      LIMIT ${integer(MOST_EXAMPLES / 2)}`
    const rows = (await connection.runAndReadAll(toText(query))).getRowsJS()
    for (const row of rows) examples.push({ side, row: row as (string | null)[] })
  }
  return examples
}
