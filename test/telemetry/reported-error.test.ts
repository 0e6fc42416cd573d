import { describe, expect, it, vi } from 'vitest'
import { translateAndLog } from '../../src/processes/worker/translate-and-log.ts'
import { EngineError } from '../../src/shared/engine-error.ts'
import type { Logger } from '../../src/telemetry/logger.ts'
import { reportedError, reportedErrorText, withoutData } from '../../src/telemetry/reported-error.ts'

describe("The log's record of an error", () => {
  it.each([
    [`Could not convert string 'hunter5' to INT32`, `Could not convert string '…' to INT32`],
    [`duplicate key "hunter""5" and ''`, `duplicate key "…" and ''`],
    [`Cannot cast 'it's hunter5 yes' to 'x'`, `Cannot cast '…'`],
    [`no "a" of 'hunter'five' in \`x\``, 'no "…" of \'…\' in `…`'],
    [`Parser Error: near x\n\nLINE 1: SELECT 'hunter5'\n        ^`, 'Parser Error: near x'],
  ])('contains no data: %s', (text, reported) => expect(withoutData(text)).toBe(reported))

  it('contains only the name of an error that a user causes, since its message may hold values', () => {
    const reported = reportedError(
      new Error('x', { cause: new EngineError('INVALID_CAST_ARGUMENT', 'Not a date: hunter5') }),
    )
    expect(reported.cause).toMatchObject({ type: 'EngineError', message: 'INVALID_CAST_ARGUMENT' })
    expect(reportedError(new EngineError('NO_NODES_AVAILABLE', 'No worker')).message).toBe('No worker')
  })

  it.each([
    ['Conversion Error: Unimplemented value hunter5', 'Conversion Error'],
    ['Invalid Input Error: hunter5', 'Invalid Input Error'],
    ['hunter5', 'An error of an unknown kind'],
    ['\u0001GENERIC_INTERNAL_ERROR: hunter5', 'An error of an unknown kind'],
    [`Binder Error: no function of "hunter5" here`, 'Binder Error: no function of "…" here'],
    ['INTERNAL Error: index 3 of a vector of 2', 'INTERNAL Error: index 3 of a vector of 2'],
  ])('contains errors of the engine without values: %j', (text, engineError) => {
    const error = vi.fn()
    const { errorName } = translateAndLog({ error } as unknown as Logger)(text)
    expect(errorName).toBe('GENERIC_INTERNAL_ERROR')
    expect(error).toHaveBeenCalledWith('task.trouble', { engineError }, 'The engine failed to run a statement')
  })

  it('contains type, code, message and stack, also of its causes', () => {
    const cause = Object.assign(new SyntaxError(`"hunter5" is not valid JSON`), { detail: 'hunter5' })
    const reported = reportedError(
      Object.assign(new Error(`no 'hunter5'`, { cause }), { code: '22P02', where: 'hunter5' }),
    )
    expect(reported).toMatchObject({ type: 'Error', code: '22P02', message: `no '…'`, cause: { type: 'SyntaxError' } })
    expect(reported.stack).toContain('reported-error.test')
    expect(JSON.stringify(reported)).not.toContain('hunter5')
    expect(reportedErrorText(cause)).not.toContain('hunter5')
    expect(reportedError(`'hunter5'`)).toEqual({ type: 'string', message: `'…'` })
  })

  it('has no stack if another process did not answer', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
    for (const error of [refused, new TypeError('fetch failed', { cause: refused })]) {
      const reported = reportedError(error)
      expect(reported.stack).toBeUndefined()
      expect(JSON.stringify(reported)).not.toContain('at ')
      expect(reportedErrorText(error)).toContain(error.message)
    }
  })
})
