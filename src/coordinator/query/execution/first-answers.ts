import { settlesWithin } from '../../../shared/deadline.ts'
import type { HoldBytes } from '../../clusters/relay/counted-bytes.ts'
import type { RemoteAnswer, RemoteTail, RemoteUri } from '../../clusters/relay/relay-port.ts'
import { readFirst } from '../../clusters/relay/read-first.ts'
import type { SingleFetch } from '../../clusters/relay/single-fetch.ts'

/** How long answers without rows are fetched before the client asks for them, milliseconds. */
const EMPTY_MS = 500
/** How long the answers behind the first rows are awaited, milliseconds. The client gets the rows after that. */
const BEHIND_ROWS_MS = 25

export interface FirstAnswersDeps {
  readonly requests: Pick<SingleFetch<{ readonly token: number; readonly uri: RemoteUri }>, 'takeAhead'>
  /** Called with each answer that was fetched, and with the members behind its rows. */
  readonly onAnswer: (answer: RemoteAnswer, tail: RemoteTail) => void
  readonly hold: HoldBytes
}

/** The answer to the client's first request, and the page of the second one. */
interface HeldAnswer {
  readonly answer: RemoteAnswer
  readonly rows: Buffer | undefined
  readonly tail: RemoteTail
  readonly next: RemoteUri
}

/**
 * The first answers of a read, fetched before the client asks for them. A short statement has several answers without
 * rows, and each request of a client takes time.
 *
 *     queued ─► queued ─► executing ─► rows ─► no rows ─► no rows ─► last
 *     └──── never sent ───────────┘    held    └─ never sent ──┘     left for the client's second request
 *
 * The cluster forgets an answer when the next one is requested. If this process is killed before the client has the
 * held answer, the read runs again.
 */
export class FirstAnswers {
  readonly #deps: FirstAnswersDeps
  readonly #done: Promise<void>
  #held: HeldAnswer | undefined
  #release = (): void => {}

  constructor(deps: FirstAnswersDeps, firstUri: RemoteUri) {
    this.#deps = deps
    this.#done = this.#fetch(firstUri)
    // Reported to the client's request.
    this.#done.catch(() => {})
  }

  /** The answer to the client's first request; undefined if the client must fetch it. */
  get held(): HeldAnswer | undefined {
    return this.#held
  }

  /** Whether the answers are there within the time. After that, `held` stays. */
  areThere(waitMs: number): Promise<boolean> {
    return settlesWithin(this.#done, waitMs)
  }

  /** Frees the held answer: the client has it. */
  forget(): void {
    this.#held = undefined
    this.#release()
  }

  async #fetch(firstUri: RemoteUri): Promise<void> {
    let until = performance.now() + EMPTY_MS
    for (let uri = firstUri; ;) {
      const page = { token: this.#held ? 1 : 0, uri }
      const accepts = this.#held?.rows ? hasNoRows : isSmall
      // An answer that is not accepted, or comes late or not at all, is left for the client.
      const answer = await this.#deps.requests.takeAhead(page, until - performance.now(), accepts)
      const next = answer?.head.nextUri
      if (!answer || next === undefined) return
      const read = await readFirst(answer, Infinity)
      if (read.kind === 'larger') throw new Error('rows without a limit are whole')
      const { rows, tail } = read
      if (rows) until = performance.now() + BEHIND_ROWS_MS
      // Without memory the rows are left: the cluster still has them.
      if (rows && !this.#isHeld(rows.length)) return
      this.#held = this.#held?.rows ? { ...this.#held, next } : { answer, rows, tail, next }
      this.#deps.onAnswer(answer, tail)
      uri = next
    }
  }

  #isHeld(bytes: number): boolean {
    try {
      this.#release = this.#deps.hold(bytes)
      return true
    } catch {
      return false
    }
  }
}

/** Whether another answer follows, and this one has no rows or few, and changes nothing of the client's session. */
function isSmall({ head, headers, data, isWhole }: RemoteAnswer): boolean {
  return head.nextUri !== undefined && headers.length === 0 && (!data || isWhole)
}

function hasNoRows(answer: RemoteAnswer): boolean {
  return isSmall(answer) && !answer.data
}
