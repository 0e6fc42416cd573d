import { evolveAct, type ActEvent, type KnownAct } from '../../coordinator/acts/act-state.ts'
import { isSystemEventType, systemEventData } from '../../coordinator/system/decode-event.ts'
import { systemEventVersions } from '../../coordinator/system/events.ts'
import type { QueryRows } from '../../events/projection.ts'
import { ACT_EVENTS } from './last-event.ts'

/** The first event of each act, and its last event if there are more. */
const ACTS = `from ${ACT_EVENTS} where a.kind = 'ActStarted'`

const LAST = 'p.kind as last_kind, p.at as last_at, p.details as last'

/** Reads acts, the newest first, without the ids of their queries. @param actId only this act */
export async function readActs(query: QueryRows, limit: number, actId?: string): Promise<KnownAct[]> {
  const rows = await query(
    `select a.at, jsonb_set(a.details, '{queries}', '[]') as started, ${LAST} ${ACTS}
     and ($2::text is null or (left(a.details->>'actId', 64) = left($2, 64) and a.details->>'actId' = $2))
     order by a.at desc, a.sequence desc limit $1`,
    [limit, actId ?? null],
  )
  return rows.map(actOf)
}

/** Reads the acts that have not ended, the oldest first; wait for a barrier first. */
export async function readOpenActs(query: QueryRows): Promise<KnownAct[]> {
  const rows = await query(
    `select a.at, a.details as started, ${LAST} ${ACTS} and p.kind is distinct from 'ActEnded' order by a.at, a.sequence`,
    [],
  )
  return rows.map(actOf)
}

function actOf(row: Record<string, unknown>): KnownAct {
  const started = evolveAct({ kind: 'NONE' }, eventOf('ActStarted', row['at'], row['started']))
  const { last_kind: kind } = row
  const act = typeof kind === 'string' ? evolveAct(started, eventOf(kind, row['last_at'], row['last'])) : started
  if (act.kind === 'NONE') throw new Error('an act begins with ActStarted')
  return act
}

function eventOf(kind: string, at: unknown, details: unknown): ActEvent {
  if (!isSystemEventType(kind)) throw new Error(`${kind} is no event of the system`)
  const data = systemEventData(kind, systemEventVersions[kind], details)
  return { type: kind, time: (at as Date).toISOString(), data } as ActEvent
}
