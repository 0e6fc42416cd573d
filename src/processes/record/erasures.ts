import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Administrator } from '../../coordinator/system/forget-query.ts'
import { checkOrder } from '../../erasure/check-order.ts'
import { carryOut, type EraseDeps } from '../../erasure/erase.ts'
import type { ErasureOrder, StoredErasure } from '../../erasure/erasure-store.ts'
import { previewErasure, type Preview } from '../../erasure/preview.ts'
import { searchFor } from '../../erasure/subject.ts'
import { Fenced } from '../../events/event-log.ts'
import { QuipuError, Signal } from '../../shared/quipu-error.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { Erasing, ErasingWriter } from '../event-log/erasing.ts'

/** A preview, in the memory of this process. */
export interface PreviewState {
  readonly kind: 'preview'
  readonly id: string
  readonly requestedAt: string
  readonly found: Preview | undefined
  readonly failure: string | undefined
}

/** An erasure, as the table has it. */
export interface ErasureState {
  readonly kind: 'erasure'
  readonly erasure: StoredErasure
  /** Why the last attempt failed; the coordinator tries again. */
  readonly failure: string | undefined
}

/** Erasures and their previews at the coordinator that writes the log. One runs at a time. */
export interface Erasures {
  /** @throws ErasureBusy while a preview runs, EngineError as `begin` */
  preview(order: ErasureOrder): PreviewState
  /**
   * Begins an erasure. It is carried out even if this process ends.
   * @throws ErasureBusy while another one runs, EngineError for an order that `checkOrder` refuses
   */
  begin(order: ErasureOrder, administrator: Administrator): Promise<ErasureState>
  /** @returns undefined for an unknown id */
  find(id: string): Promise<PreviewState | ErasureState | undefined>
  stop(): void
}

/** An erasure or a preview runs already; `id` is its id. */
export class ErasureBusy extends Signal {
  readonly id: string

  constructor(id: string) {
    super(`Erasure ${id} runs`)
    this.id = id
  }
}

class Stopped extends Signal {}

export interface ErasuresDeps {
  readonly erasing: Erasing
  readonly writer: ErasingWriter
  /** Resolves when the read models hold everything that was recorded before this epoch. */
  readonly caughtUp: Promise<void>
  readonly logger: Logger
  readonly meters: () => Meters
}

const MOST_PREVIEWS = 20
const TRY_AGAIN_MS = 2000
const LONGEST_WAIT_MS = 60_000

export function startErasures(deps: ErasuresDeps): Erasures {
  const { erasing, logger } = deps
  const { store } = erasing
  const previews = new Map<string, PreviewState>()
  let stopped = false
  let previewing: string | undefined
  let running: string | undefined
  /** The last failure of an erasure, by its id. */
  const failures = new Map<string, string>()
  const onStep = (): void => {
    if (stopped) throw new Stopped('The coordinator stops')
  }
  const eraseDeps: EraseDeps = erasing.deps({ ...deps.writer, onStep })

  /** Tries until the erasure ends. After an error that would repeat, only the next writer tries again. */
  async function run(id: string): Promise<void> {
    running = id
    for (let waitMs = TRY_AGAIN_MS; !stopped; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        const { queries, records, remains } = await carryOut(eraseDeps, id)
        failures.delete(id)
        deps.meters().count('erasures', { result: remains.length === 0 ? 'complete' : 'remains' })
        logger.info(
          'erasure.done',
          { erasure: id, queries, records, locations: remains.length },
          'An erasure has ended; its event says where data remains',
        )
        break
      } catch (error) {
        if (stopped || error instanceof Stopped || error instanceof Fenced) return
        failures.set(id, (error as Error).message)
        deps.meters().count('erasures', { result: 'failed' })
        logger.error('erasure.trouble', { erasure: id, err: error }, 'An erasure failed; it is tried again')
        if (error instanceof QuipuError && error.retry === 'never') break
      }
      await sleep(waitMs, undefined, { ref: false })
    }
    if (running === id) running = undefined
  }

  let resuming = false

  /** Continues the erasures that an earlier writer began. Does nothing if such a call still runs. */
  async function resume(): Promise<void> {
    if (resuming) return
    resuming = true
    try {
      await deps.caughtUp
      for (const { id } of await store.open()) if (running !== id && !failures.has(id)) await run(id)
    } catch (error) {
      if (!stopped) logger.error('erasure.trouble', { err: error }, 'Erasures of an earlier writer were not continued')
    } finally {
      resuming = false
    }
  }
  void resume()

  async function runPreview(id: string, { subject, mentions }: ErasureOrder): Promise<void> {
    const before = previews.get(id)!
    try {
      const found = await previewErasure(erasing.logs, { search: searchFor(subject), mentions }, onStep)
      previews.set(id, { ...before, found })
    } catch (error) {
      previews.set(id, { ...before, failure: (error as Error).message })
    } finally {
      previewing = undefined
    }
  }

  return {
    preview(order) {
      checkOrder(order)
      if (previewing !== undefined) throw new ErasureBusy(previewing)
      const id = randomUUID()
      previewing = id
      const state: PreviewState = {
        kind: 'preview',
        id,
        requestedAt: new Date().toISOString(),
        found: undefined,
        failure: undefined,
      }
      previews.set(id, state)
      const [oldest] = previews.size > MOST_PREVIEWS ? previews.keys() : []
      if (oldest !== undefined) previews.delete(oldest)
      void runPreview(id, order)
      return state
    },
    async begin(order, administrator) {
      checkOrder(order)
      if (running !== undefined) throw new ErasureBusy(running)
      const id = randomUUID()
      running = id
      try {
        // An erasure of an earlier writer that this one has not continued yet. That writer may have stored it late.
        const [earlier] = (await store.open()).filter((one) => !failures.has(one.id))
        if (earlier) {
          void resume()
          throw new ErasureBusy(earlier.id)
        }
        await store.add(id, order, administrator)
      } catch (error) {
        if (running === id) running = undefined
        throw error
      }
      void run(id)
      return { kind: 'erasure', erasure: (await store.get(id))!, failure: undefined }
    },
    async find(id) {
      const preview = previews.get(id)
      if (preview) return preview
      const erasure = await store.get(id)
      return erasure && { kind: 'erasure', erasure, failure: failures.get(id) }
    },
    stop() {
      stopped = true
      void erasing.close()
    },
  }
}
