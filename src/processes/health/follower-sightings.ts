import {
  asStrangers,
  bounded,
  isStranger,
  ofOthers,
  sightingKey,
  type RefusalLog,
  type Sighting,
} from '../../coordinator/system/refusal-log.ts'
import { rememberedSchema, type SightingReport } from '../../protocol/relay/sighting-report.ts'
import type { FailureCounts, FailureKey } from '../../security/authentication/failed-log-ins.ts'
import type { Logger } from '../../telemetry/logger.ts'

/** Where a coordinator reports failures that another coordinator must count too. */
export interface FailuresElsewhere {
  failed(keys: readonly FailureKey[]): void
  forgiven(pair: FailureKey): void
}

/**
 * Reports what a following coordinator has seen: in its own log lines at once, and soon after to the writer of the log.
 */
export interface FollowerSightings {
  readonly refusals: RefusalLog
  readonly failures: FailuresElsewhere
}

export interface FollowerSightingsDeps {
  readonly logger: Logger
  /** @returns the writer's answer; undefined if it accepted nothing */
  readonly post: (report: SightingReport) => Promise<unknown>
  /** Takes what the writer remembers about the failures that it got. */
  readonly mergeFailures: (remembered: FailureCounts) => void
}

const SEND_AFTER_MS = 250
const AGAIN_AFTER_MS = 1_000
/** Limits while there is no writer. Beyond them, names are merged into one, and failures are counted only here. */
const MOST_NAMES = 1_000
const MOST_KEYS = 10_000
/** Beyond this number, unknown names are reported only as a count. */
const MOST_STRANGERS = 10
const MOST_IN_REPORT = 500
const LAST_WAIT_MS = 1_000

/** Reports sightings without blocking. A report without an answer is sent again, so it may count twice. */
export function createFollowerSightings({ logger, post, mergeFailures }: FollowerSightingsDeps): FollowerSightings {
  const named = new Map<string, { readonly sighting: Sighting; count: number }>()
  const failed = new Map<FailureKey, number>()
  const forgiven = new Set<FailureKey>()
  /** Unknown names since everything was last sent. */
  let strangers = 0
  let sending: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  function see(sighting: Sighting, count: number): void {
    let key = sightingKey(sighting)
    let sent = sighting
    if (!named.has(key) && isStranger(sighting)) {
      // Names that a client invents must not use up the room for names of users.
      strangers = named.size === 0 ? 1 : strangers + 1
      if (strangers > MOST_STRANGERS) sent = asStrangers(sighting)
      key = sightingKey(sent)
    }
    if (!named.has(key) && named.size >= MOST_NAMES) {
      sent = ofOthers(sighting)
      key = `${sighting.type} others`
    }
    const known = named.get(key)
    if (known) known.count += count
    else named.set(key, { sighting: sent, count })
    sendSoon(SEND_AFTER_MS)
  }

  function count(key: FailureKey, times: number): void {
    if (failed.has(key) || failed.size < MOST_KEYS) failed.set(key, (failed.get(key) ?? 0) + times)
  }

  function sendSoon(afterMs: number): void {
    if (timer !== undefined || sending) return
    timer = setTimeout(() => void send(), afterMs)
    timer.unref()
  }

  function send(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    return (sending ??= sendOne().finally(() => {
      sending = undefined
    }))
  }

  async function sendOne(): Promise<void> {
    const report: SightingReport = {
      sightings: takeSome(named).map(([, one]) => one),
      failures: takeSome(failed),
      forgiven: takeSome(new Map([...forgiven].map((key) => [key, true]))).map(([key]) => key),
    }
    for (const key of report.forgiven) forgiven.delete(key)
    const { data } = rememberedSchema.safeParse(await post(report).catch(() => undefined))
    if (data) mergeFailures(data.remembered)
    else {
      for (const { sighting, count: times } of report.sightings) see(sighting, times)
      for (const [key, times] of report.failures) count(key, times)
      for (const key of report.forgiven) forgiven.add(key)
    }
    setImmediate(() => named.size + failed.size + forgiven.size > 0 && sendSoon(data ? 0 : AGAIN_AFTER_MS))
  }

  return {
    failures: {
      failed(keys) {
        for (const key of keys) count(key, 1)
        sendSoon(SEND_AFTER_MS)
      },
      forgiven(pair) {
        failed.delete(pair)
        if (forgiven.size < MOST_KEYS) forgiven.add(pair)
        sendSoon(SEND_AFTER_MS)
      },
    },
    refusals: {
      authenticationFailed(data) {
        logger.warn('request.refused', { ...data }, 'An identity was refused')
        see(bounded({ type: 'AuthenticationFailed', data }), 1)
      },
      accessDenied(data) {
        logger.warn('request.refused', { ...data }, 'An action was refused')
        see(bounded({ type: 'AccessDenied', data }), 1)
      },
      loggedIn(data) {
        logger.info('log_in', { ...data }, 'A user logged in')
        see(bounded({ type: 'LoggedIn', data }), 1)
      },
      sighted: see,
      async stop() {
        await sending
        const last = named.size + failed.size > 0 ? send() : undefined
        await Promise.race([last, new Promise((resolve) => setTimeout(resolve, LAST_WAIT_MS).unref())])
        clearTimeout(timer)
      },
    },
  }
}

/** Removes the first entries from the map and returns them. */
function takeSome<K, V>(from: Map<K, V>): [K, V][] {
  const some = [...from].slice(0, MOST_IN_REPORT)
  for (const [key] of some) from.delete(key)
  return some
}
