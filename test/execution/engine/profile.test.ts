import { describe, expect, it } from 'vitest'
import { parseProfile, withoutBound } from '../../../src/execution/engine/profile.ts'

describe('The profile of a statement', () => {
  const operator = {
    operator_type: 'TABLE_SCAN',
    operator_name: 'READ_PARQUET ',
    operator_timing: 0.25,
    operator_cardinality: 7,
    operator_rows_scanned: 99,
    extra_info: { Filters: 'a>1', 'Filename(s)': ['x', 'y'], 'Estimated Cardinality': '12' },
    children: [],
  }
  const root = { cpu_time: 2.5, query_name: 'x', extra_info: {} }

  it('keeps the known fields of DuckDB’s text and drops unknown ones', () => {
    expect(parseProfile(JSON.stringify({ ...root, children: [operator] }))).toEqual({
      scheduledSeconds: 2.5,
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

  it.each(['', '{"cpu_time": 1.5', '{}', '[]'])('is undefined if its text is %j', (text) => {
    expect(parseProfile(text)).toBeUndefined()
  })

  it.each(['LIMIT', 'STREAMING_LIMIT'])(
    'omits only the top %s, which the engine adds for inline rows, and its time',
    (type) => {
      const limited = { ...operator, operator_type: type, children: [operator] }
      const read = parseProfile(JSON.stringify({ ...root, children: [{ ...limited, children: [limited] }] }))!
      expect(withoutBound(read).children).toEqual(
        parseProfile(JSON.stringify({ ...root, children: [limited] }))!.children,
      )
      expect(withoutBound(read).scheduledSeconds).toBe(2.5 - 0.25)
      expect(withoutBound({ ...read, children: [] }).children).toEqual([])
      const without = parseProfile(JSON.stringify({ ...root, children: [operator] }))!
      expect(withoutBound(without)).toBe(without)
    },
  )
})
