import { describe, expect, it } from 'vitest'
import { parseProfile } from '../../../src/execution/engine/profile.ts'

describe('a profile', () => {
  const operator = {
    operator_type: 'TABLE_SCAN',
    operator_name: 'READ_PARQUET ',
    operator_timing: 0.25,
    operator_cardinality: 7,
    operator_rows_scanned: 99,
    extra_info: { Filters: 'a>1', 'Filename(s)': ['x', 'y'], 'Estimated Cardinality': '12' },
    children: [],
  }
  const root = { latency: 1.5, cpu_time: 2.5, rows_returned: 7, result_set_size: 56, query_name: 'x', extra_info: {} }

  it('is read as written, unknown fields kept out', () => {
    expect(parseProfile(JSON.stringify({ ...root, children: [operator] }))).toEqual({
      latencySeconds: 1.5,
      scheduledSeconds: 2.5,
      rowsReturned: 7,
      resultSetBytes: 56,
      children: [
        {
          type: 'TABLE_SCAN',
          name: 'READ_PARQUET',
          timingSeconds: 0.25,
          rowsOut: 7,
          estimatedRows: 12,
          extraInfo: { Filters: 'a>1', 'Filename(s)': ['x', 'y'] },
          children: [],
        },
      ],
    })
  })

  it.each(['', '{"latency": 1.5', '{}', '[]'])('is none when its text is %j', (text) => {
    expect(parseProfile(text)).toBeUndefined()
  })
})
