import { expect, it } from 'vitest'
import { stem } from '../../../src/duckdb/scripts/stemmer.ts'

it('takes names that every object has for words', () => {
  expect(['constructor', 'tostring', '__proto__', 'skies'].map(stem)).toEqual([
    'constructor',
    'tostr',
    '__proto__',
    'sky',
  ])
})
