import type { IncomingMessage, ServerResponse } from 'node:http'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { requestOwner } from '../access/request-owner.ts'
import { HttpProblem } from './problem.ts'

export interface ReadGateLimits {
  /** Reads that run at once. */
  readonly running: number
  /** The same for one authenticated user or one network. */
  readonly runningOfOne: number
  /** Reads that wait for their turn. */
  readonly waiting: number
  /** The same for one user or one network. */
  readonly waitingOfOne: number
  /** Milliseconds after which a read whose reader went away, and which no longer makes an answer, counts as ended. */
  readonly lingerMs: number
}

/**
 * Limits reads of history. Anybody can read it, and each read costs much more than sending its request, so few run at
 * once. Users and networks take turns.
 */
export interface ReadGate {
  /**
   * Waits until the read may begin. Its slot is released when its answer is made.
   * @returns false when its reader went away: nothing is to be read
   * @throws HttpProblem 429 when too many wait
   */
  enter(request: IncomingMessage, response: ServerResponse): Promise<boolean>
}

/** One owner may use at most this many waiting slots for each free one, so that a slot is left for a new owner. */
const OF_EACH_FREE = 3

export function createReadGate(limits: ReadGateLimits): ReadGate {
  const running = new Map<string, number>()
  const ownWaiting = new Map<string, number>()
  const waiting = new FairQueue<() => void>()
  let all = 0

  const mayBegin = (address: string): boolean =>
    all < limits.running && (running.get(address) ?? 0) < limits.runningOfOne

  function mayWait(address: string): boolean {
    const own = ownWaiting.get(address) ?? 0
    const free = limits.waiting - waiting.length
    return free > 0 && own < limits.waitingOfOne && own <= OF_EACH_FREE * free
  }

  function begin(address: string): void {
    all++
    add(running, address, 1)
  }

  function end(address: string): void {
    all--
    add(running, address, -1)
    waiting.shift({ address: mayBegin, user: () => true })?.()
  }

  /** @returns false when the reader went away while it waited */
  function queueFor(owner: SlotOwner, response: ServerResponse): Promise<boolean> {
    return new Promise((resolve) => {
      add(ownWaiting, owner.address, 1)
      const over = (began: boolean): void => {
        add(ownWaiting, owner.address, -1)
        response.off('close', leave)
        if (began) begin(owner.address)
        resolve(began)
      }
      const out = waiting.push(owner, () => over(true))
      const leave = (): void => {
        out()
        over(false)
      }
      response.once('close', leave)
    })
  }

  return {
    async enter(request, response) {
      if (response.destroyed) return false
      const owner = requestOwner(request)
      const { address } = owner
      if (mayBegin(address)) begin(address)
      else {
        if (!mayWait(address))
          throw new HttpProblem(429, 'Too many reads of the history are waiting: try again later', {
            'retry-after': '1',
          })
        if (!(await queueFor(owner, response))) return false
      }
      let left = false
      const leave = (): void => {
        if (!left) end(address)
        left = true
      }
      // The answer is made, whether or not the reader has received it. A reader that goes away does not stop a read
      // that has begun.
      response.once('prefinish', leave)
      response.once('close', () => setTimeout(leave, limits.lingerMs).unref())
      return true
    },
  }
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by
  if (count > 0) counts.set(name, count)
  else counts.delete(name)
}
