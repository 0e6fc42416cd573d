import { describe, expect, it } from 'vitest'
import { tableFormat, valueText } from '../../src/cli/table-text.ts'

describe('a table for the terminal', () => {
  it('aligns numbers to the right, all else to the left, by what a terminal shows', () => {
    const columns = [
      { name: 'n', type: 'bigint' },
      { name: 'name', type: 'varchar(10)' },
      { name: 'list', type: 'array(integer)' },
    ]
    const rows = [
      [1, 'ALGERIA', [1, 2]],
      [100, '日本', null],
      [-5, 'é', []],
    ]
    const format = tableFormat(columns, rows)
    expect([format.header(), ...rows.map((row) => format.row(row))].join('\n')).toBe(
      [
        '  n | name    | list',
        '----+---------+------',
        '  1 | ALGERIA | [1,2]',
        '100 | 日本    | NULL',
        ' -5 | é       | []',
      ].join('\n'),
    )
  })

  it('does not let a value steer the terminal', () => {
    expect(valueText('a\u001b[2Jb\nc\u009b')).toBe('a\\u001b[2Jb\\nc\\u009b')
  })
})
