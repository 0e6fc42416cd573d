/**
 * Turns of the event loop for work that holds it: parsing, analysing, taking secrets out of texts. What is ready at once, like
 * the statements of a hundred sockets, would otherwise be worked off in one turn, and a process that is silent for so long is
 * taken for dead.
 *
 *   const turn = loopTurn(sql.length)
 *   if (turn) await turn
 *   parse(sql)
 *
 * Within a turn work is begun until it has had its time; what comes then waits for a later turn, long texts behind each
 * other, with rests in which all else goes on, and short ones not behind them.
 */

/** Of one turn, before what comes waits. */
const TURN_MS = 30
/** A text from here on is long. */
const LONG = 16 * 1024
/** After work that took longer than a turn's time the others have half of that, and at most this. */
const LONGEST_REST_MS = 250

let began: number | undefined
let restUntil = 0
let resting: NodeJS.Timeout | undefined
const short: (() => void)[] = []
const long: (() => void)[] = []

/** @returns undefined when work over so many characters may begin now, else what resolves in its turn */
export function loopTurn(characters: number): Promise<void> | undefined {
  const now = performance.now()
  const isLong = characters >= LONG
  const hasTime = began === undefined || now - began < TURN_MS
  begin(now)
  if (hasTime && !(isLong && (long.length > 0 || now < restUntil))) return undefined
  return new Promise((resolve) => void (isLong ? long : short).push(resolve))
}

function begin(now: number): void {
  if (began !== undefined) return
  began = now
  setImmediate(end)
}

function end(): void {
  const now = performance.now()
  const worked = now - (began ?? now)
  began = undefined
  if (worked >= TURN_MS) restUntil = now + Math.min(worked / 2, LONGEST_REST_MS)
  wake()
}

/** One of each kind: work of either may be any, but for what bounds a single one. */
function wake(): void {
  const now = performance.now()
  const next = [short.shift(), now >= restUntil ? long.shift() : undefined]
  if (next.some((one) => one !== undefined)) begin(now)
  for (const one of next) one?.()
  if (long.length > 0 && began === undefined)
    resting ??= setTimeout(
      () => {
        resting = undefined
        wake()
      },
      Math.max(1, restUntil - now),
    )
}
