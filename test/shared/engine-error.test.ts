import { describe, expect, it } from 'vitest'
import { asFailure, EngineError, failureOf, toFailure } from '../../src/shared/engine-error.ts'
import { errorTable, type ErrorName } from '../../src/shared/error-table.ts'
import { howToRetry } from '../../src/shared/quipu-error.ts'

const names = Object.keys(errorTable) as ErrorName[]

describe('An error of the engine', () => {
  it.each(names)('%s keeps its code and type in `EngineError` and in a failure', (name) => {
    const error = new EngineError(name, 'so')
    const { code, type } = errorTable[name]
    expect(error).toMatchObject({ errorCode: code, errorType: type, name: 'EngineError' })
    expect(toFailure(error)).toEqual({ errorName: name, errorCode: code, errorType: type, message: 'so' })
  })

  it('puts its location into its message, as Trino does', () => {
    const location = { lineNumber: 2, columnNumber: 7 }
    const error = new EngineError('COLUMN_NOT_FOUND', 'Column a', { location })
    expect(error.message).toBe('line 2:7: Column a')
    expect(error.toFailure()).toMatchObject({ message: 'line 2:7: Column a', location })
  })

  it('allows no retry unless it says so', () => {
    expect(howToRetry(new EngineError('NOT_FOUND', 'gone'))).toBe('never')
    expect(howToRetry(new EngineError('NO_NODES_AVAILABLE', 'none yet', { retry: 'later' }))).toBe('later')
  })
})

describe('A failure', () => {
  it('does not reveal the text of other thrown values', () => {
    for (const thrown of [new TypeError('secret'), 'secret', undefined]) {
      const failure = toFailure(thrown)
      expect(failure).toMatchObject({ errorName: 'GENERIC_INTERNAL_ERROR', errorType: 'INTERNAL_ERROR' })
      expect(JSON.stringify(failure)).not.toContain('secret')
    }
  })

  it('has a location or no such key, but never an undefined location', () => {
    const failure = failureOf('SYNTAX_ERROR', 'no')
    expect(Object.keys(failure)).not.toContain('location')
    expect(Object.keys(asFailure({ ...failure, location: undefined }))).not.toContain('location')
  })
})
