import { z } from 'zod'
import { unreachable } from '../../shared/unreachable.ts'
import type { DuckDbProfile, EngineFileStats, EngineOutput, EngineResult } from './engine.ts'
import type { EngineChild } from './engine-child.ts'
import type { Outcome, EngineWork } from './engine-work.ts'
import type { EngineFigures, EngineRequest } from './messages.ts'
import { parseProfile, withoutBound } from './profile.ts'

export interface AskedFor {
  readonly id: number
  readonly connection: number
  /** Ask the engine to report that the statement is prepared. */
  readonly announce: boolean
}

/** The request that asks an engine for a statement. */
export function requestOf(
  { asks }: EngineWork,
  child: EngineChild,
  { id, connection, announce }: AskedFor,
): EngineRequest {
  if (asks.kind === 'files') return { type: 'inspect', id, connection, question: asks.question }
  return {
    type: 'run',
    id,
    connection,
    query: asks.query,
    cache: asks.cachePrepared,
    announce,
    ...(asks.profile ? { profile: child.profile(connection) } : {}),
    output: requestedOutput(asks.output, child, id, connection),
  }
}

type RequestedOutput = Extract<EngineRequest, { type: 'run' }>['output']

function requestedOutput(output: EngineOutput, child: EngineChild, id: number, connection: number): RequestedOutput {
  switch (output.kind) {
    case 'inline':
      return { kind: 'inline', maxBytes: output.maxBytes }
    case 'stream':
      return { kind: 'fifo', path: child.fifo(connection) }
    case 'parquet':
      return child.user === undefined
        ? { kind: 'parquet', folder: output.folder, make: false }
        : { kind: 'parquet', folder: child.staging(id), make: true }
    default:
      return unreachable(output)
  }
}

/** The figures of a statement that the parent measured while it ran. */
export type Seen = Pick<EngineResult, 'peakMemoryBytes' | 'spilledBytes' | 'enginePid'>

/**
 * The result of a statement, from its engine's answer. @throws when an engine of this program does not send such an
 * answer
 */
export function resultOf(
  { asks }: EngineWork,
  figures: EngineFigures,
  body: Buffer,
  seen: Seen,
): Extract<Outcome, { kind: 'result' }> {
  const rows = figures.profileBytes > 0 ? body.subarray(0, body.length - figures.profileBytes) : body
  const profile = figures.profileBytes > 0 ? profileOf(asks, body.subarray(rows.length)) : undefined
  const output = asks.kind === 'rows' ? asks.output.kind : 'rows of objects'
  const result: EngineResult = {
    rows: figures.rows,
    ...(output === 'inline' && !figures.overflow ? { inline: rows } : {}),
    ...(figures.overflow ? { overflow: true } : {}),
    ...(output === 'parquet' ? { files: parseFileStats(rows) } : {}),
    ...(profile ? { profile } : {}),
    startedAt: figures.startedAt,
    wallNanos: figures.wallNanos,
    cpuNanos: figures.cpuNanos,
    cpuExact: figures.cpuExact,
    ...seen,
  }
  return { kind: 'result', result, body: rows }
}

function profileOf(asks: EngineWork['asks'], text: Buffer): DuckDbProfile | undefined {
  const profile = parseProfile(text.toString())
  const bounded = asks.kind === 'rows' && asks.output.kind === 'inline' && asks.query.row.kind === 'json'
  return profile && bounded ? withoutBound(profile) : profile
}

const filesSchema = z.array(
  z.object({ path: z.string(), rows: z.number(), bytes: z.number(), columnBytes: z.record(z.string(), z.number()) }),
)

function parseFileStats(body: Buffer): readonly EngineFileStats[] {
  return filesSchema.parse(JSON.parse(body.toString()))
}
