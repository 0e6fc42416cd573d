import { expect, it } from 'vitest'
import { isRunByNpm } from '../../src/cli/npm-parent.ts'

it.each([
  ['exec node dist/cli/quipu.js start', true],
  ['tsc -p . && node dist/cli/quipu.js start', true],
  ['quipu start --port 9090', true],
  ['node_modules/.bin/quipu start', true],
  // The script of npx and npm exec.
  ['quipu', true],
  ['nohup quipu start &', false],
  ['vitest run', false],
  ['node start-quipus.js', false],
  [undefined, false],
])('`isRunByNpm` for the script %s returns %s', (script, expected) => {
  expect(isRunByNpm(script === undefined ? {} : { npm_lifecycle_script: script })).toBe(expected)
})
