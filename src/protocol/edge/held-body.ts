import type { IncomingMessage } from 'node:http'
import type { StatementMemory } from '../../coordinator/dispatch/statement-memory.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { SlotOwner } from '../../shared/fair-queue.ts'
import { discardBody, readBody } from './request-body.ts'

export interface HeldBodyOptions {
  readonly maxBytes: number
  readonly memory: Pick<StatementMemory, 'hold'>
  /** Whose memory it counts to. */
  readonly owner: SlotOwner
}

/** A request's body, which counts for as long as it is held. */
export interface HeldBody {
  /** Hands the body over: this holds it no more, although it counts on. */
  take(): Buffer
  /** It counts no more; later calls do nothing. */
  release(): void
}

/** Of a body of unknown length, held while it comes. */
const BODY_STEP_BYTES = 64 * 1024

function announcedBytes({ headers }: IncomingMessage): number {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return headers['transfer-encoding'] === undefined ? 0 : BODY_STEP_BYTES
}

/**
 * Reads a body that counts before it is read: the length that it announces, or what has come of it and a step ahead.
 * @throws EngineError TOO_MANY_REQUESTS_FAILED when there is no room for it; then it has been read to its end, and is gone
 * @throws HttpProblem as `readBody` does
 */
export async function readHeldBody(
  request: IncomingMessage,
  { maxBytes, memory, owner }: HeldBodyOptions,
): Promise<HeldBody> {
  const announced = announcedBytes(request)
  try {
    // What is refused for its length is not read.
    const held = memory.hold(owner, announced > maxBytes ? 0 : announced)
    try {
      let body = await readBody(request, maxBytes, (bytes) => {
        if (bytes > held.bytes) held.more(BODY_STEP_BYTES)
      })
      return {
        take() {
          const taken = body
          body = Buffer.alloc(0)
          return taken
        },
        release: () => held.release(),
      }
    } catch (error) {
      held.release()
      throw error
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    // A client reads no answer before it has sent all.
    await discardBody(request, maxBytes)
    throw new EngineError('TOO_MANY_REQUESTS_FAILED', error.message)
  }
}
