import { expect, it } from 'vitest'
import { stem } from '../../../src/duckdb/scripts/stemmer.ts'

it('`stem` handles property names of every object as words', () => {
  expect(['constructor', 'tostring', '__proto__', 'skies'].map(stem)).toEqual([
    'constructor',
    'tostr',
    '__proto__',
    'sky',
  ])
})
