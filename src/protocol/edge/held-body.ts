import type { IncomingMessage } from 'node:http'
import type { StatementMemory } from '../../coordinator/dispatch/statement-memory.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { SlotOwner } from '../../shared/fair-queue.ts'
import { discardBody, readBody } from './request-body.ts'

export interface HeldBodyOptions {
  readonly maxBytes: number
  readonly memory: Pick<StatementMemory, 'hold'>
  /** The owner that the memory is counted for. */
  readonly owner: SlotOwner
}

/** A request's body, whose memory is counted as long as it is held. */
export interface HeldBody {
  /** Hands the body over: this object no longer holds it, but its memory still counts. */
  take(): Buffer
  /** Stops counting the memory; later calls do nothing. */
  release(): void
}

/** Bytes that are reserved at a time for a body of unknown length. */
const BODY_STEP_BYTES = 64 * 1024

function announcedBytes({ headers }: IncomingMessage): number {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return headers['transfer-encoding'] === undefined ? 0 : BODY_STEP_BYTES
}

/**
 * Reads a body whose memory is reserved before it is read: the length that it announces, or the bytes received and one
 * step ahead.
 * @throws EngineError TOO_MANY_REQUESTS_FAILED when there is no memory for it; the body has then been read to its end
 * and discarded
 * @throws HttpProblem as `readBody` does
 */
export async function readHeldBody(
  request: IncomingMessage,
  { maxBytes, memory, owner }: HeldBodyOptions,
): Promise<HeldBody> {
  const announced = announcedBytes(request)
  try {
    // A body that is refused for its length is not read.
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
    // A client reads no answer before it has sent everything.
    await discardBody(request, maxBytes)
    throw new EngineError('TOO_MANY_REQUESTS_FAILED', error.message)
  }
}
