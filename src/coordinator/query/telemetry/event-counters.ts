import type { QueryEventOf } from '../stream/events.ts'
import type { Recorded } from '../../../events/event-log.ts'
import type { Meters } from '../../../telemetry/meters.ts'

/** Counts what a valid event alone shows, whichever process wrote it: ends of writes, pages kept or lost, refusals. */
export function countFact(event: Pick<Recorded, 'type' | 'data'>, meters: Meters): void {
  switch (event.type) {
    case 'WriteCommitted': {
      const { outcome } = event.data as QueryEventOf<'WriteCommitted'>['data']
      return meters.count('writes', { outcome: writeOutcome(outcome) })
    }
    case 'ResultPagesPublished': {
      const { pages } = event.data as QueryEventOf<'ResultPagesPublished'>['data']
      const kept = pages.filter((page) => page.kept === 'log').length
      return kept > 0 ? meters.count('pagesSpooled', { kind: 'result' }, kept) : undefined
    }
    case 'ResultPagesLost': {
      const { tokens } = event.data as QueryEventOf<'ResultPagesLost'>['data']
      return meters.count('pagesLost', { kind: 'result' }, tokens.length)
    }
    case 'AccessDenied': {
      const { action, count } = event.data as { readonly action: string; readonly count: number }
      return meters.count('accessDenied', { action: deniedPermission(action) }, count)
    }
    default:
  }
}

/** How a prepared write ended, as a label of the metric. */
export function writeOutcome(outcome: string): string {
  return WRITE_OUTCOMES[outcome] ?? 'refused'
}

/** A permission of `security/authorization.ts` as a label of the metric. */
export function deniedPermission(action: string): string {
  return ACTIONS[action] ?? action
}

const WRITE_OUTCOMES: Readonly<Record<string, string>> = { committed: 'committed', rolledForward: 'rolled_forward' }
const ACTIONS: Readonly<Record<string, string>> = {
  view: 'view_query',
  results: 'view_query',
  cancel: 'kill',
  viewAll: 'view_query',
  viewNodes: 'view_query',
  setUser: 'impersonate',
  readSystem: 'system_information',
  readFigures: 'system_information',
  writeSystem: 'system_information',
}
