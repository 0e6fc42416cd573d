import { describe, expect, it } from 'vitest'
import { createStatementPlanner } from '../../../src/planner/statement-planner.ts'
import { fixedMetadata, recordedSession } from '../../support/sql/fixed-metadata.ts'
import { planText } from '../../support/plan-text.ts'

const planner = createStatementPlanner()
const ROWS = 'ROWS BETWEEN 1 PRECEDING AND CURRENT ROW'

async function outcome(call: string): Promise<string> {
  try {
    await planText(planner, `SELECT ${call} FROM nation`, recordedSession(), fixedMetadata)
    return 'fine'
  } catch (error) {
    const { errorName, message } = error as { readonly errorName?: string; readonly message: string }
    return `${errorName}: ${message.replace(/^line \d+:\d+: /, '')}`
  }
}

const calls = {
  row_number: 'row_number()',
  rank: 'rank()',
  dense_rank: 'dense_rank()',
  percent_rank: 'percent_rank()',
  cume_dist: 'cume_dist()',
  ntile: 'ntile(2)',
  first_value: 'first_value(name)',
  last_value: 'last_value(name)',
  nth_value: 'nth_value(name, 2)',
  lag: 'lag(name)',
  lead: 'lead(name)',
  max: 'max(name)',
} as const

describe.each(Object.entries(calls))('The window clauses of %s', (name, call) => {
  const whole = !['first_value', 'last_value', 'nth_value', 'max'].includes(name)
  const navigates = ['first_value', 'last_value', 'nth_value', 'lag', 'lead'].includes(name)

  it('may have a frame unless the function is of the whole partition', async () => {
    expect(await outcome(`${call} OVER (ORDER BY nationkey ${ROWS})`)).toBe(
      whole ? `INVALID_WINDOW_FRAME: Cannot specify window frame for ${name} function` : 'fine',
    )
  })

  it("may have IGNORE NULLS if the function returns a row's value", async () => {
    expect(await outcome(`${call} IGNORE NULLS OVER (ORDER BY nationkey)`)).toBe(
      navigates ? 'fine' : `NULL_TREATMENT_NOT_ALLOWED: Cannot specify null treatment clause for ${name} function`,
    )
  })

  it('need no ORDER BY, except for lag and lead', async () => {
    expect(await outcome(`${call} OVER ()`)).toBe(
      name === 'lag' || name === 'lead'
        ? `MISSING_ORDER_BY: ${name} function requires an ORDER BY window clause`
        : 'fine',
    )
  })
})
