import { expect, it } from 'vitest'
import { splitFlags } from '../../src/cli/command-flags.ts'

const options = { query: { type: 'string' }, json: { type: 'boolean' } } as const

it.each<[string, readonly string[], object, readonly string[]]>([
  ['its own flags', ['--query', 'q', '--json'], { query: 'q', json: true }, []],
  ['a value behind an equals sign', ['--query=q', '--port=1'], { query: 'q' }, ['--port=1']],
  ['settings before, between and behind', ['--port', '1', '--query', 'q', '--log-level', 'error'], { query: 'q' }, ['--port', '1', '--log-level', 'error']], // prettier-ignore
  ['the value of a setting that is named as a flag', ['--data-dir', 'query'], {}, ['--data-dir', 'query']],
  ['a flag without its value', ['--query'], { query: true }, []],
  ['the last of two', ['--query', 'a', '--query', 'b'], { query: 'b' }, []],
])('`splitFlags` separates the flags of a command from settings: %s', (_what, argv, flags, settings) => {
  const split = splitFlags(argv, options)
  expect(split.flags).toMatchObject(flags)
  expect(Object.keys(split.flags).filter((name) => name in options)).toEqual(Object.keys(flags))
  expect(split.settings).toEqual(settings)
})
