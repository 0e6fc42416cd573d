import { FairQueue, type SlotOwner } from './fair-queue.ts'
import { EventLoopSlices } from './event-loop-slices.ts'

/*
 * Slices of the event loop for work on texts that holds the loop: parsing, analysing, removing secrets. Otherwise one
 * pass of the loop would do all ready work, such as the statements of a hundred sockets, and a process that is silent
 * for so long is taken for dead.
 *
 *   const slice = eventLoopSlice(sql.length, owner)
 *   if (slice) await slice
 *   parse(sql)
 *
 * Long texts wait for each other, with pauses for all other work in between. Short texts do not wait for long ones.
 */

/** How long one slice takes before further work waits. */
const SLICE_MS = 10
/** A text of this length or more is long. */
const LONG = 16 * 1024
/** After a long text that took longer than this, other work gets half of its time, but at most the value below. */
const TIRING_MS = 30
const LONGEST_REST_MS = 1_500

const short = new EventLoopSlices(SLICE_MS)
const long = new FairQueue<() => void>()
let isAtWork = false
let restUntil = 0

/**
 * @returns undefined if work on this number of characters may begin now; else a promise that resolves when the owner is
 * next
 */
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

/** Marks long work as running until the next pass of the loop. */
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
