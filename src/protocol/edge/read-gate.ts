import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientNetwork } from './client-connection.ts'
import { HttpProblem } from './problem.ts'

export interface ReadGateLimits {
  /** Reads at once. */
  readonly running: number
  /** Of one address. */
  readonly runningPerAddress: number
  /** Reads that wait for their turn. */
  readonly waiting: number
  /** Of one address. */
  readonly waitingPerAddress: number
  /** A read whose reader went away, and that makes no answer any more, is over after so many milliseconds. */
  readonly lingerMs: number
}

/** History is read by anybody, and each read costs more than its asking: so few at once, in the order of their coming. */
export interface ReadGate {
  /**
   * Resolves when the read may begin; its place is given back when its answer is made.
   * @returns false when its reader went away: there is nothing to read for
   * @throws HttpProblem 429 when too many wait
   */
  enter(request: IncomingMessage, response: ServerResponse): Promise<boolean>
}

interface Waiting {
  readonly address: string
  readonly begin: () => void
}

export function createReadGate(limits: ReadGateLimits): ReadGate {
  const running = new Map<string, number>()
  const waiting: Waiting[] = []
  let all = 0

  const mayBegin = (address: string): boolean =>
    all < limits.running && (running.get(address) ?? 0) < limits.runningPerAddress

  function begin(address: string): void {
    all++
    running.set(address, (running.get(address) ?? 0) + 1)
  }

  function end(address: string): void {
    all--
    const left = (running.get(address) ?? 1) - 1
    if (left === 0) running.delete(address)
    else running.set(address, left)
    const next = waiting.findIndex((one) => mayBegin(one.address))
    if (next >= 0) waiting.splice(next, 1)[0]!.begin()
  }

  /** @returns false when the reader went away before its turn */
  function turn(address: string, response: ServerResponse): Promise<boolean> {
    return new Promise((resolve) => {
      const one: Waiting = {
        address,
        begin: () => {
          response.off('close', leave)
          begin(address)
          resolve(true)
        },
      }
      const leave = (): void => {
        waiting.splice(waiting.indexOf(one), 1)
        resolve(false)
      }
      waiting.push(one)
      response.once('close', leave)
    })
  }

  return {
    async enter(request, response) {
      if (response.destroyed) return false
      const address = clientNetwork(request)
      if (mayBegin(address)) begin(address)
      else {
        const own = waiting.filter((one) => one.address === address).length
        if (waiting.length >= limits.waiting || own >= limits.waitingPerAddress)
          throw new HttpProblem(429, 'Too many reads of history wait for their turn', { 'retry-after': '1' })
        if (!(await turn(address, response))) return false
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
