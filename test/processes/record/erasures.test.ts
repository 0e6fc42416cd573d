import { expect, it } from 'vitest'
import type { EraseDeps } from '../../../src/erasure/erase.ts'
import { SubjectUnreadable, type ErasureRequest, type StoredErasure } from '../../../src/erasure/erasure-store.ts'
import type { Erasing } from '../../../src/processes/event-log/erasing.ts'
import { ErasureBusy, startErasures, type Erasures } from '../../../src/processes/record/erasures.ts'
import { waitUntil } from '../../support/quipu-process.ts'

const request: ErasureRequest = { kind: 'value', subject: 'hash', mentions: false, by: 'officer' }
const order = { subject: { value: 'eva.lund' }, mentions: false }
const nothing = { queries: 0, records: 0, waiting: [], searched: 0, remains: [] }
const ignore = (): void => {}

function stored(id: string): StoredErasure {
  return {
    id,
    requestedAt: '2026-11-27T10:00:00.000Z',
    endedAt: undefined,
    request,
    progress: undefined,
    working: [],
    waiting: [],
    result: undefined,
  }
}

interface Bed {
  readonly erasures: Erasures
  /** The ids of erasures whose subject was read, in order. */
  readonly begun: string[]
  readonly catchUp: () => void
  /** Stores a request as another process does. */
  readonly store: (id: string) => void
}

/** Starts the erasures of a writer whose earlier one left `earlier`. */
function bedWith(subjectOf: (id: string) => { value: string }): Bed {
  const table = new Map([['earlier', stored('earlier')]])
  const begun: string[] = []
  const store = {
    add: async (id: string) => void table.set(id, stored(id)),
    get: async (id: string) => table.get(id),
    open: async () => [...table.values()].filter(({ result }) => !result),
    subjectOf: async (id: string) => {
      begun.push(id)
      return subjectOf(id)
    },
    begin: async () => {},
    reach: async () => {},
    end: async (id: string) => void table.set(id, { ...stored(id), endedAt: request.subject, result: nothing }),
  }
  const log = { tip: async () => ({ logId: 'log', at: [] }), read: async () => ({ events: [], next: [] }) }
  const logs = { log, before: async () => [] } as unknown as Erasing['logs']
  const deps = {
    logs,
    store,
    writer: { journal: { record: async () => ({}) }, settled: async () => {} },
    isRecorded: async () => false,
    prove: async () => ({ queries: 0, records: 0, locations: [] }),
  } as unknown as EraseDeps
  const erasing = { store, logs, deps: () => deps, close: async () => {} }
  let catchUp = ignore
  const caughtUp = new Promise<void>((resolve) => {
    catchUp = resolve
  })
  const erasures = startErasures({
    erasing: erasing as unknown as Erasing,
    writer: {} as never,
    caughtUp,
    logger: { info: ignore, error: ignore } as never,
    meters: () => ({ count: ignore }) as never,
  })
  return { erasures, begun, catchUp, store: (id) => void table.set(id, stored(id)) }
}

it('a new erasure is refused until the erasure of the earlier writer has ended', async () => {
  const { erasures, begun, catchUp } = bedWith(() => ({ value: 'eva.lund' }))
  await expect(erasures.begin(order, { by: 'officer' })).rejects.toThrow(new ErasureBusy('earlier'))
  catchUp()
  await waitUntil('the earlier erasure has ended', async () => {
    const state = await erasures.find('earlier')
    return state?.kind === 'erasure' && state.erasure.result !== undefined
  })
  await expect.poll(() => erasures.begin(order, { by: 'officer' })).toMatchObject({ kind: 'erasure' })
  expect(begun[0]).toBe('earlier')
  erasures.stop()
})

it('an erasure that the earlier writer stored late is carried out too', async () => {
  const { erasures, catchUp, store } = bedWith(() => ({ value: 'eva.lund' }))
  catchUp()
  const hasEnded = async (id: string): Promise<boolean> => {
    const state = await erasures.find(id)
    return state?.kind === 'erasure' && state.erasure.result !== undefined
  }
  await waitUntil('the earlier erasure has ended', () => hasEnded('earlier'))
  store('late')
  await expect(erasures.begin(order, { by: 'officer' })).rejects.toThrow(new ErasureBusy('late'))
  await waitUntil('the late erasure has ended', () => hasEnded('late'))
  await expect.poll(() => erasures.begin(order, { by: 'officer' })).toMatchObject({ kind: 'erasure' })
  erasures.stop()
})

it('an erasure whose subject cannot be decrypted does not keep others from running', async () => {
  const { erasures, catchUp } = bedWith((id) => {
    if (id === 'earlier') throw new SubjectUnreadable('request it again')
    return { value: 'eva.lund' }
  })
  catchUp()
  await waitUntil('the earlier erasure has failed', async () => {
    const state = await erasures.find('earlier')
    return state?.kind === 'erasure' && state.failure !== undefined
  })
  const { erasure } = await erasures.begin(order, { by: 'officer' })
  await waitUntil('the new erasure has ended', async () => {
    const state = await erasures.find(erasure.id)
    return state?.kind === 'erasure' && state.erasure.result !== undefined
  })
  expect(await erasures.find('earlier')).toMatchObject({ failure: 'request it again' })
  erasures.stop()
})
