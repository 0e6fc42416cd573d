import type { AuthenticationMethod } from '../../security/authentication/principal.ts'
import type { Clock } from '../../shared/clock.ts'
import type { SystemJournal } from './system-journal.ts'
import type { QueryId } from '../../shared/ids.ts'
import { unreachable } from '../../shared/unreachable.ts'

export interface RefusedIdentity {
  /** The user that the request named; it is not verified. */
  readonly user: string
  /** Some of the names, where one event stands for many names that do not exist here. */
  readonly examples?: readonly string[]
  readonly method: 'shared_secret' | AuthenticationMethod
  readonly remoteAddress?: string | undefined
}

export interface LogIn {
  readonly user: string
  readonly principal: string
  readonly method: AuthenticationMethod
  readonly groups: readonly string[]
  readonly remoteAddress?: string | undefined
}

export interface RefusedAction {
  readonly user: string
  /** The user that logged in, where they act as `user`. */
  readonly originalUser?: string | undefined
  readonly action: string
  readonly object: string
  readonly queryId?: QueryId | undefined
  readonly remoteAddress?: string | undefined
}

/** Records refusals and log-ins as events, by user and minute: a million attempts do not make a million events. */
export interface RefusalLog {
  authenticationFailed(refused: RefusedIdentity): void
  accessDenied(refused: RefusedAction): void
  loggedIn(logIn: LogIn): void
  /** Counts a sighting that another coordinator saw this many times. */
  sighted(sighting: Sighting, count: number): void
  /** Writes the remaining counts; nothing is accepted after that. */
  stop(): Promise<void>
}

/** The log of the process that writes the events. */
export interface WrittenRefusals extends RefusalLog {
  /** Resolves when everything that was counted so far is recorded. */
  flushed(): Promise<void>
}

/** An attempt of a user that is recorded. */
export type Sighting =
  | { readonly type: 'AuthenticationFailed'; readonly data: RefusedIdentity }
  | { readonly type: 'AccessDenied'; readonly data: RefusedAction }
  | { readonly type: 'LoggedIn'; readonly data: LogIn }
type SightingType = Sighting['type']

/** The most names of each type in one minute; further names are counted together. */
const MAX_NAMES: Readonly<Record<SightingType, number>> = {
  // An attacker may try all existing users.
  AuthenticationFailed: 10_000,
  AccessDenied: 100,
  // All users may log in within the same minute in the morning.
  LoggedIn: 10_000,
}
/** The prefix of the pseudonym under which a name that does not exist here is recorded. */
export const STRANGER = 'unknown-'
/**
 * Stands for names that do not exist here: the first of a minute is recorded at once, the others together at its end.
 * So made-up names cannot hide a real user among them.
 */
const STRANGERS = `${STRANGER}others`
const MAX_EXAMPLES = 10
/** The most refused objects of one user in a minute. Further ones count as one object, and hide no other user's. */
const MAX_OBJECTS = 10
/** The same for all clients without credentials. */
const MAX_OBJECTS_OF_NOBODY = 3
const NOBODY = 'anonymous'
const OTHERS = '(others)'
const MAX_GROUPS = 1_000
const MAX_TEXT = 200
const MINUTE_MS = 60_000

/**
 * Makes the log. The first sighting of a name in a minute is written at once, so that no crash hides it; the others at
 * the end of the minute.
 */
export function createRefusalLog(journal: SightingJournal, clock: Clock): WrittenRefusals {
  let counted = emptyCounts()
  let minute = minuteOf(clock.now())

  function write(sighting: Sighting, count: number): void {
    // A log that this process has lost takes no refusals either; the next writer counts its own.
    recordSighting(journal, sighting, count, minute).catch(() => {})
  }

  function flush(): void {
    const ended = counted
    counted = emptyCounts()
    for (const ofType of Object.values(ended))
      for (const { sighting, more, examples } of ofType.names.values())
        if (more > 0) write(withExamples(sighting, examples), more)
    minute = minuteOf(clock.now())
  }

  function take(sighting: Sighting, count: number): void {
    if (minuteOf(clock.now()) !== minute) flush()
    const { type } = sighting
    const ofType = counted[type]
    let sent = sighting
    let key = sightingKey(sent)
    if (
      !ofType.names.has(key) &&
      sent.type === 'AccessDenied' &&
      ofType.objectsOf(sent.data) >= mostObjectsOf(sent.data)
    ) {
      sent = { type: 'AccessDenied', data: ofOtherObjects(sent.data) }
      key = sightingKey(sent)
    }
    const isOneOfMany =
      isStranger(sent) && ofType.hasStranger && (sent.data.user === STRANGERS || !ofType.names.has(key))
    if (isOneOfMany) {
      sent = asStrangers(sent)
      key = sightingKey(sent)
    }
    if (!ofType.names.has(key) && ofType.isFullFor(sent)) {
      sent = ofOthers(sent)
      key = `${type} others`
    }
    const known = ofType.names.get(key) ?? ofType.add(key, sent)
    if (isOneOfMany) {
      known.more += count
      if (known.examples.size < MAX_EXAMPLES && sighting.data.user !== STRANGERS) known.examples.add(sighting.data.user)
    } else if (known.isNew) {
      known.isNew = false
      write(sent, count)
    } else known.more += count
  }

  const timer = setInterval(() => {
    if (minuteOf(clock.now()) !== minute) flush()
  }, 1000)
  timer.unref()

  async function flushed(): Promise<void> {
    flush()
    await journal.settled()
  }

  return {
    flushed,
    authenticationFailed: (data) => take(bounded({ type: 'AuthenticationFailed', data }), 1),
    accessDenied: (data) => take(bounded({ type: 'AccessDenied', data }), 1),
    loggedIn: (data) => take(bounded({ type: 'LoggedIn', data }), 1),
    sighted: (sighting, count) => take(bounded(sighting), count),
    async stop() {
      clearInterval(timer)
      await flushed()
    },
  }
}

/** The sighting with its texts cut to the length that an event may have. */
export function bounded(sighting: Sighting): Sighting {
  const user = sighting.data.user.slice(0, MAX_TEXT)
  switch (sighting.type) {
    case 'AuthenticationFailed':
      return { ...sighting, data: { ...sighting.data, user } }
    case 'AccessDenied': {
      const { originalUser, object } = sighting.data
      const first = originalUser === undefined ? {} : { originalUser: originalUser.slice(0, MAX_TEXT) }
      return { ...sighting, data: { ...sighting.data, user, ...first, object: object.slice(0, MAX_TEXT) } }
    }
    case 'LoggedIn': {
      const { principal, groups } = sighting.data
      const few = groups.slice(0, MAX_GROUPS).map((group) => group.slice(0, MAX_TEXT))
      return { ...sighting, data: { ...sighting.data, user, principal: principal.slice(0, MAX_TEXT), groups: few } }
    }
    default:
      return unreachable(sighting)
  }
}

/** The journal in which sightings are written. */
export type SightingJournal = Pick<SystemJournal, 'record' | 'settled'>

function recordSighting(
  journal: SightingJournal,
  { type, data }: Sighting,
  count: number,
  minute: string,
): Promise<unknown> {
  switch (type) {
    case 'AuthenticationFailed': {
      const { examples, ...refused } = data
      return journal.record(type, { ...refused, ...(examples && { examples: [...examples] }), count, minute })
    }
    case 'AccessDenied':
      return journal.record(type, { ...data, count, minute })
    case 'LoggedIn':
      return journal.record(type, { ...data, groups: [...data.groups], count, minute })
  }
}

export function isStranger({ type, data }: Sighting): boolean {
  return type === 'AuthenticationFailed' && data.user.startsWith(STRANGER)
}

/** The sighting under the common name for names that do not exist here. */
export function asStrangers(sighting: Sighting): Sighting {
  return { ...sighting, data: { ...sighting.data, user: STRANGERS } } as Sighting
}

function withExamples(sighting: Sighting, examples: ReadonlySet<string>): Sighting {
  if (sighting.type !== 'AuthenticationFailed' || examples.size === 0) return sighting
  return { ...sighting, data: { ...sighting.data, examples: [...examples] } }
}

function mostObjectsOf({ user }: RefusedAction): number {
  return user === NOBODY ? MAX_OBJECTS_OF_NOBODY : MAX_OBJECTS
}

/** A refusal of one object too many. The name of the user that logged in is kept. */
function ofOtherObjects({ user, originalUser, action, remoteAddress }: RefusedAction): RefusedAction {
  const userFields = originalUser === undefined ? { user } : { user: OTHERS, originalUser }
  return { ...userFields, action, object: OTHERS, remoteAddress }
}

/** A sighting under the common name for too many names. */
export function ofOthers(sighting: Sighting): Sighting {
  if (sighting.type !== 'AccessDenied') return { ...sighting, data: { ...sighting.data, user: OTHERS } } as Sighting
  const { action, remoteAddress } = sighting.data
  return { type: 'AccessDenied', data: { user: OTHERS, action, object: OTHERS, remoteAddress } }
}

interface CountedName {
  readonly sighting: Sighting
  /** Whether nothing of it was written yet. */
  isNew: boolean
  /** The count to write at the end of the minute. */
  more: number
  readonly examples: Set<string>
}

/**
 * The sightings of one type in one minute. Counters are kept up to date, so that checking the bounds needs no search
 * even in a flood of refusals.
 */
class Counted {
  readonly names = new Map<string, CountedName>()
  hasStranger = false
  /** The number of refused objects, by the user that logged in. */
  readonly #objects = new Map<string, number>()

  add(key: string, sighting: Sighting): CountedName {
    const name: CountedName = { sighting, more: 0, isNew: true, examples: new Set() }
    this.names.set(key, name)
    if (isStranger(sighting)) this.hasStranger = true
    if (sighting.type !== 'AccessDenied') return name
    const person = personOf(sighting.data)
    this.#objects.set(person, (this.#objects.get(person) ?? 0) + 1)
    return name
  }

  /** How many objects the same user was refused so far. */
  objectsOf(refused: RefusedAction): number {
    return this.#objects.get(personOf(refused)) ?? 0
  }

  isFullFor(sighting: Sighting): boolean {
    return this.names.size >= MAX_NAMES[sighting.type]
  }
}

function personOf({ user, originalUser = user }: RefusedAction): string {
  return originalUser
}

function emptyCounts(): Readonly<Record<SightingType, Counted>> {
  return { AuthenticationFailed: new Counted(), AccessDenied: new Counted(), LoggedIn: new Counted() }
}

/** The key of sightings that are counted together. */
export function sightingKey({ type, data }: Sighting): string {
  switch (type) {
    case 'AuthenticationFailed':
      return JSON.stringify([data.user, data.method])
    case 'AccessDenied':
      return JSON.stringify([data.user, data.originalUser, data.action, data.object, data.queryId])
    case 'LoggedIn':
      return JSON.stringify([data.user, data.principal, data.method, data.remoteAddress])
  }
}

function minuteOf(ms: number): string {
  return new Date(Math.floor(ms / MINUTE_MS) * MINUTE_MS).toISOString()
}
