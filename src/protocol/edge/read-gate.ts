import type { IncomingMessage, ServerResponse } from 'node:http'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { requestOwner } from '../access/request-owner.ts'
import { HttpProblem } from './problem.ts'

export interface ReadGateLimits {
  /** Reads at once. */
  readonly running: number
  /** Of one user who is known, or of one network. */
  readonly runningOfOne: number
  /** Reads that wait for their turn. */
  readonly waiting: number
  /** Of one user, or network. */
  readonly waitingOfOne: number
  /** A read whose reader went away, and that makes no answer any more, is over after so many milliseconds. */
  readonly lingerMs: number
}

/** History is read by anybody, and each read costs more than its asking: so few at once, in turns of users and networks. */
export interface ReadGate {
  /**
   * Resolves when the read may begin; its place is given back when its answer is made.
   * @returns false when its reader went away: there is nothing to read for
   * @throws HttpProblem 429 when too many wait
   */
  enter(request: IncomingMessage, response: ServerResponse): Promise<boolean>
}

/** Nobody has more places to wait than so many for each that is free: one is left for who is new. */
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

  /** @returns false when the reader went away before its turn */
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
          throw new HttpProblem(429, 'Too many reads of history wait for their turn', { 'retry-after': '1' })
        if (!(await queueFor(owner, response))) return false
      }
      let left = false
      const leave = (): void => {
        if (!left) end(address)
        left = true
      }
      // Made, whether or not its reader has taken it yet. A reader that goes away ends no read that has begun.
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
