import type { AuthenticationMethod } from '../../security/authentication/principal.ts'
import type { Clock } from '../../shared/clock.ts'
import type { SystemJournal } from './system-journal.ts'
import type { QueryId } from '../../shared/ids.ts'

export interface RefusedIdentity {
  /** As the request said; nobody vouches for it. */
  readonly user: string
  readonly method: 'shared_secret' | AuthenticationMethod
  readonly remoteAddress?: string | undefined
}

export interface RefusedAction {
  readonly user: string
  readonly action: string
  readonly object: string
  readonly queryId?: QueryId
  readonly remoteAddress?: string | undefined
}

/** Refusals as events, by user and minute: who tries a million times makes no million events. */
export interface RefusalLog {
  authenticationFailed(refused: RefusedIdentity): void
  accessDenied(refused: RefusedAction): void
  /** Writes what is still counted; none is taken any more. */
  stop(): Promise<void>
}

type Refusal =
  | { readonly type: 'AuthenticationFailed'; readonly data: RefusedIdentity }
  | { readonly type: 'AccessDenied'; readonly data: RefusedAction }

/** Names in one minute at most; what is beyond counts together. */
const MAX_NAMES = 100
const MAX_TEXT = 200
const MINUTE_MS = 60_000

/** The first refusal of a name in a minute is written at once, so that no crash hides it; the others at its end. */
export function createRefusalLog(journal: SystemJournal, clock: Clock): RefusalLog {
  let counted = new Map<string, { readonly refusal: Refusal; more: number }>()
  let minute = minuteOf(clock.now())

  function write(refusal: Refusal, count: number): void {
    const written =
      refusal.type === 'AuthenticationFailed'
        ? journal.record(refusal.type, { ...refusal.data, count, minute })
        : journal.record(refusal.type, { ...refusal.data, count, minute })
    // A log that is lost to this process takes no refusals either; its next writer counts its own.
    written.catch(() => {})
  }

  function flush(): void {
    const ended = counted
    counted = new Map()
    for (const { refusal, more } of ended.values()) if (more > 0) write(refusal, more)
    minute = minuteOf(clock.now())
  }

  function take(refusal: Refusal): void {
    if (minuteOf(clock.now()) !== minute) flush()
    let key = keyOf(refusal)
    let told = refusal
    if (!counted.has(key) && counted.size >= MAX_NAMES) {
      told = { ...refusal, data: { ...refusal.data, user: '(others)' } } as Refusal
      key = `${refusal.type} others`
    }
    const known = counted.get(key)
    if (known) {
      known.more++
      return
    }
    counted.set(key, { refusal: told, more: 0 })
    write(told, 1)
  }

  const timer = setInterval(() => {
    if (minuteOf(clock.now()) !== minute) flush()
  }, 1000)
  timer.unref()

  return {
    authenticationFailed: (data) =>
      take({ type: 'AuthenticationFailed', data: { ...data, user: data.user.slice(0, MAX_TEXT) } }),
    accessDenied: (data) =>
      take({
        type: 'AccessDenied',
        data: { ...data, user: data.user.slice(0, MAX_TEXT), object: data.object.slice(0, MAX_TEXT) },
      }),
    async stop() {
      clearInterval(timer)
      flush()
      await journal.settled()
    },
  }
}

function keyOf({ type, data }: Refusal): string {
  return JSON.stringify(
    type === 'AuthenticationFailed' ? [type, data.user, data.method] : [type, data.user, data.action, data.object],
  )
}

function minuteOf(ms: number): string {
  return new Date(Math.floor(ms / MINUTE_MS) * MINUTE_MS).toISOString()
}
