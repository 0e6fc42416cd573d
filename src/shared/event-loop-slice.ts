import { FairQueue, type SlotOwner } from './fair-queue.ts'
import { EventLoopSlices } from './event-loop-slices.ts'

/*
 * Turns of the event loop for work over texts that holds it: parsing, analysing, taking secrets out of them. What is ready at
 * once, like the statements of a hundred sockets, would otherwise be worked off in one turn, and a process that is silent for
 * so long is taken for dead.
 *
 *   const turn = eventLoopSlice(sql.length, owner)
 *   if (turn) await turn
 *   parse(sql)
 *
 * Long texts wait behind each other, with rests in which all else goes on, and short ones not behind them.
 */

/** Of one turn, before what comes waits. */
const TURN_MS = 10
/** A text from here on is long. */
const LONG = 16 * 1024
/** After a long one that took longer than this the others have half of its time, and at most the other: of one that ran out of it. */
const TIRING_MS = 30
const LONGEST_REST_MS = 1_500

const short = new EventLoopSlices(TURN_MS)
const long = new FairQueue<() => void>()
let isAtWork = false
let restUntil = 0

/** @returns undefined when work over so many characters may begin now, else what resolves in its owner's turn */
export function eventLoopSlice(characters: number, owner: SlotOwner): Promise<void> | undefined {
  if (characters >= LONG) return longSlice(owner)
  let begun = false
  let wake = (): void => void (begun = true)
  short.take(owner, () => wake())
  return begun ? undefined : new Promise((resolve) => (wake = resolve))
}

function longSlice(owner: SlotOwner): Promise<void> | undefined {
  if (!isAtWork && long.length === 0 && performance.now() >= restUntil) {
    work()
    return undefined
  }
  return new Promise((resolve) => {
    const isFirst = long.length === 0
    long.push(owner, resolve)
    if (isFirst && !isAtWork) next()
  })
}

/** Who has the turn works until the loop comes round. */
function work(): void {
  const began = performance.now()
  isAtWork = true
  setImmediate(() => {
    isAtWork = false
    const now = performance.now()
    if (now - began >= TIRING_MS) restUntil = now + Math.min((now - began) / 2, LONGEST_REST_MS)
    next()
  })
}

function next(): void {
  if (long.length === 0) return
  const left = restUntil - performance.now()
  if (left > 0) return void setTimeout(next, Math.max(1, left))
  const begin = long.shift()!
  work()
  begin()
}
