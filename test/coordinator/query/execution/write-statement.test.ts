import { describe, expect, it } from 'vitest'
import type { ConnectorWriter, PreparedWrite } from '../../../../src/connectors/spi/table-writer.ts'
import type { Connector } from '../../../../src/connectors/spi/connector.ts'
import { resumeWrite, type WriteDeps } from '../../../../src/coordinator/query/execution/write-statement.ts'
import { Suspended } from '../../../../src/coordinator/query/execution/suspended.ts'
import { createWriteGuard } from '../../../../src/coordinator/query/execution/write-guard.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'
import { parseNodeId } from '../../../../src/shared/ids.ts'
import { sampleData } from '../../../support/query-events.ts'
import { createStageBed } from '../../../support/stage-bed.ts'

const { WritePrepared, QueryPlanned } = sampleData

/** A prepared write. Its connector throws these errors for the first commits, and then commits version 7. */
async function decided(...answers: readonly Error[]) {
  const bed = await createStageBed()
  await bed.aggregate.execute([{ type: 'PrepareWrite', data: WritePrepared }])
  const left = [...answers]
  const commits: PreparedWrite[] = []
  const logged: unknown[] = []
  const writer: Partial<ConnectorWriter> = {
    async commit(prepared) {
      commits.push(prepared)
      const refused = left.shift()
      if (refused) throw refused
      return { version: 7, changed: true }
    },
  }
  const deps: WriteDeps = {
    ...bed.deps,
    catalogs: { names: () => ['lake'], get: () => ({ writer }) as Connector },
    guard: createWriteGuard(),
    nodeId: parseNodeId('coordinator'),
    selfUrl: 'http://c',
    onInternalError: (_queryId, error) => void logged.push(error),
  }
  return { ...bed, commits, logged, carryOut: () => resumeWrite(deps, bed.run, QueryPlanned) }
}

describe('A prepared write', () => {
  it('is committed again after errors that may pass, until it succeeds', async () => {
    const passing = [
      Object.assign(new Error('no space'), { code: 'ENOSPC' }),
      new EngineError('PERMISSION_DENIED', 'not its user', { retry: 'later' }),
      new EngineError('AMBIGUOUS_NAME', 'two folders', { retry: 'later' }),
    ]
    const write = await decided(...passing)
    await write.carryOut()
    expect(write.commits).toEqual(Array(4).fill(WritePrepared.prepared))
    expect(write.logged).toEqual(passing)
    expect(write.events()).toEqual(['WritePrepared', 'WriteCommitted', 'TaskFinished', 'ResultPagesPublished'])
    const { intended } = write.aggregate
    expect(intended).toMatchObject({ committed: { outcome: 'rolledForward', version: 7 } })
  })

  it.each(['TRANSACTION_CONFLICT', 'NOT_SUPPORTED', 'PERMISSION_DENIED'] as const)(
    'becomes impossible after one commit when the error is not retriable: %s',
    async (name) => {
      const write = await decided(new EngineError(name, 'made from outside'))
      await expect(write.carryOut()).rejects.toMatchObject({ errorName: name, message: 'made from outside' })
      expect(write.commits).toHaveLength(1)
      expect(write.events()).toEqual(['WritePrepared', 'WriteCommitted'])
      expect(write.aggregate.intended).toMatchObject({ committed: { outcome: 'impossible' } })
    },
  )

  it('is not committed again once the query is stopped', async () => {
    const write = await decided(new Error('away'), new Error('away'))
    const ended = write.carryOut()
    write.work.suspend()
    await expect(ended).rejects.toBeInstanceOf(Suspended)
    expect(write.commits).toHaveLength(1)
    expect(write.events()).toEqual(['WritePrepared'])
  })
})
