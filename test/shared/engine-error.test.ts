import { describe, expect, it } from 'vitest'
import { asFailure, EngineError, failureOf, toFailure } from '../../src/shared/engine-error.ts'
import { errorTable, type ErrorName } from '../../src/shared/error-table.ts'
import { howToRetry } from '../../src/shared/quipu-error.ts'

const names = Object.keys(errorTable) as ErrorName[]

describe('an error of the engine', () => {
  it.each(names)('%s has its code and type wherever it is told', (name) => {
    const error = new EngineError(name, 'so')
    const { code, type } = errorTable[name]
    expect(error).toMatchObject({ errorCode: code, errorType: type, name: 'EngineError' })
    expect(toFailure(error)).toEqual({ errorName: name, errorCode: code, errorType: type, message: 'so' })
  })

  it('says its place in its message, as Trino does', () => {
    const location = { lineNumber: 2, columnNumber: 7 }
    const error = new EngineError('COLUMN_NOT_FOUND', 'Column a', { location })
    expect(error.message).toBe('line 2:7: Column a')
    expect(error.toFailure()).toMatchObject({ message: 'line 2:7: Column a', location })
  })

  it('is not tried again unless it says so', () => {
    expect(howToRetry(new EngineError('NOT_FOUND', 'gone'))).toBe('never')
    expect(howToRetry(new EngineError('NO_NODES_AVAILABLE', 'none yet', { retry: 'later' }))).toBe('later')
  })
})

describe('a failure', () => {
  it('of anything else that is thrown tells nothing of its text', () => {
    for (const thrown of [new TypeError('secret'), 'secret', undefined]) {
      const failure = toFailure(thrown)
      expect(failure).toMatchObject({ errorName: 'GENERIC_INTERNAL_ERROR', errorType: 'INTERNAL_ERROR' })
      expect(JSON.stringify(failure)).not.toContain('secret')
    }
  })

  it('has a location or has none, never an undefined one', () => {
    const failure = failureOf('SYNTAX_ERROR', 'no')
    expect(Object.keys(failure)).not.toContain('location')
    expect(Object.keys(asFailure({ ...failure, location: undefined }))).not.toContain('location')
  })
})
