import { describe, expect, it } from 'vitest'
import { tableFormat, valueText } from '../../src/cli/table-text.ts'

describe('A table for the terminal', () => {
  it('aligns numbers right and other values left, by their width in a terminal', () => {
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

  it('escapes control characters in values', () => {
    expect(valueText('a\u001b[2Jb\nc\u009b')).toBe('a\\u001b[2Jb\\nc\\u009b')
  })
})
