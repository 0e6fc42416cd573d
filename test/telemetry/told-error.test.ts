import { describe, expect, it } from 'vitest'
import { toldError, toldErrorText, withoutData } from '../../src/telemetry/told-error.ts'

describe('what the log tells of an error', () => {
  it.each([
    [`Could not convert string 'hunter5' to INT32`, `Could not convert string '…' to INT32`],
    [`duplicate key "hunter""5" and ''`, `duplicate key "…" and ''`],
    [`Parser Error: near x\n\nLINE 1: SELECT 'hunter5'\n        ^`, 'Parser Error: near x'],
  ])('has no data: %s', (text, told) => expect(withoutData(text)).toBe(told))

  it('is its type, code, words and places, and those of its causes', () => {
    const cause = Object.assign(new SyntaxError(`"hunter5" is not valid JSON`), { detail: 'hunter5' })
    const told = toldError(Object.assign(new Error(`no 'hunter5'`, { cause }), { code: '22P02', where: 'hunter5' }))
    expect(told).toMatchObject({ type: 'Error', code: '22P02', message: `no '…'`, cause: { type: 'SyntaxError' } })
    expect(told.stack).toContain('told-error.test')
    expect(JSON.stringify(told)).not.toContain('hunter5')
    expect(toldErrorText(cause)).not.toContain('hunter5')
    expect(toldError(`'hunter5'`)).toEqual({ type: 'string', message: `'…'` })
  })
})
