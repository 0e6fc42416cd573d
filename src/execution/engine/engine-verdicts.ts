import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { EngineLost, type EngineEvent, type EngineSettings } from './engine.ts'
import { faultOf } from './engine-texts.ts'
import { fileFault, unknownFileFault, type FilesRead } from './file-faults.ts'
import type { Outcome } from './engine-work.ts'

/** The treatment of a statement whose attempt gave no result. */
export interface AttemptVerdict {
  /** The statement's error, unless it is tried again. */
  readonly error: Error
  /** Whether the statement may be tried again, alone in an engine, if this was its first attempt. */
  readonly again?: true
  /** The engine's memory was full: if no other statement runs there, the engine is replaced. */
  readonly emptyEngine?: true
  /** Whether the engine can run no statement any more. */
  readonly killEngine?: true
  readonly event?: EngineEvent
}

/** The facts that a verdict depends on, besides the outcome. */
export interface Attempted {
  /** The statement's id. */
  readonly statement: string
  /** The user that the engine runs as; undefined when that is this process's user. */
  readonly user: number | undefined
  /** The engine's limit, bytes. */
  readonly memoryLimit: number
  /** Called when a text may be about a file. */
  readonly files: () => FilesRead
  /** Whether the work is a question of a connector about these files, not a statement. */
  readonly isQuestion: boolean
  readonly settings: Pick<EngineSettings, 'maxSpillBytes' | 'translateError'>
}

/** DuckDB's text for a file that may not be opened, and for a file in a folder that may not be entered. */
const NOT_OPENED =
  /^IO Error: (Cannot open file "[^]*": Permission denied(\n|$)|No files found that match the pattern )/

/** The verdict for a statement that ended with an error of the engine. */
export function verdictOfError(outcome: Extract<Outcome, { kind: 'error' }>, attempted: Attempted): AttemptVerdict {
  const { text, broken, refused, alone, delivered } = outcome
  const { statement, settings } = attempted
  if (refused) {
    return {
      error: new EngineError('GENERIC_INTERNAL_ERROR', text),
      event: { type: 'refused', statement, message: text },
    }
  }
  const fault = faultOf(text) ?? (broken ? 'broken before' : undefined)
  switch (fault) {
    case undefined:
      return ofFile(text, attempted) ?? { error: translated(text, attempted) }
    case 'memory':
      // Other statements may have taken the memory: only a statement that runs alone certainly took it itself.
      return { error: memoryExceeded(attempted), emptyEngine: true, ...(!alone && !delivered && { again: true }) }
    case 'spill': {
      const limit = `${Math.round(settings.maxSpillBytes / 2 ** 20)}MB`
      return { error: new EngineError('EXCEEDED_SPILL_LIMIT', `Query exceeded local spill limit of ${limit}`) }
    }
    case 'disk':
      return { error: new EngineError('OUT_OF_SPILL_SPACE', 'No space left on the disk of the engine') }
    case 'broken':
      return { error: settings.translateError(text), killEngine: true }
    case 'broken before': {
      const error = new EngineLost('crash', 'The engine was broken by another statement')
      return { error, killEngine: true, ...(!delivered && { again: true }) }
    }
    default:
      return unreachable(fault)
  }
}

/** The verdict for a statement whose engine ended. */
export function verdictOfLoss(outcome: Extract<Outcome, { kind: 'lost' }>, attempted: Attempted): AttemptVerdict {
  const { reason, alone, culprit, delivered } = outcome
  if (reason === 'memory' && alone) return { error: memoryExceeded(attempted) }
  if (reason === 'deadline' && culprit) return { error: timeLimit('Query exceeded the maximum planning time limit') }
  const error = new EngineLost(reason, `The engine ended (${reason}) while the statement ran`)
  return { error, ...(!delivered && { again: true }) }
}

export function timeLimit(message: string): EngineError {
  return new EngineError('EXCEEDED_TIME_LIMIT', message)
}

function ofFile(text: string, attempted: Attempted): AttemptVerdict | undefined {
  const error = fileFault(text, attempted.files())
  return error ? { error } : closedTo(text, attempted)
}

/** The translated error. An unknown text becomes a fault of the files that were read, if it comes from reading them. */
function translated(text: string, { settings, files, isQuestion }: Attempted): Error {
  const error = settings.translateError(text)
  const unknown = error instanceof EngineError && error.errorName === 'GENERIC_INTERNAL_ERROR' && error.cause
  return (unknown ? unknownFileFault(text, files(), isQuestion) : undefined) ?? error
}

/** The verdict for a file that its connector has seen, and that the engine's own user may not open. */
function closedTo(text: string, { user, statement }: Attempted): AttemptVerdict | undefined {
  if (user === undefined || !NOT_OPENED.test(text)) return undefined
  const why = `The engine runs as user ${user}, who may not open a file of the table`
  return {
    error: new EngineError('PERMISSION_DENIED', why),
    event: { type: 'closed', statement, user, message: text },
  }
}

function memoryExceeded({ memoryLimit }: Attempted): EngineError {
  const limit = `${Math.round(memoryLimit / 2 ** 20)}MB`
  return new EngineError('EXCEEDED_LOCAL_MEMORY_LIMIT', `Query exceeded per-node memory limit of ${limit}`)
}
