/** SQL for the events of acts. A reader selects `ActStarted` from `a`. */
export const ACT_EVENTS = withLastEvent(['ActProgressed', 'ActEnded'], 'actId')

/** SQL for the events of replays. A reader selects `ReplayStarted` from `a`. Both events must be of the same user. */
export const REPLAY_EVENTS = withLastEvent(['ReplayProgressed', 'ReplayEnded'], 'replayId', 'by')

/**
 * Writes the SQL for `audit_log a` with the last event `p` about the same thing: its time, kind and details. They are
 * NULL without such an event.
 * @param kinds kinds of the events that follow the first event
 * @param id field with the id; the index on it has its first 64 characters
 * @param fields further fields that both events must share
 */
function withLastEvent(kinds: readonly string[], id: string, ...fields: readonly string[]): string {
  const same = [id, ...fields].map((field) => `and l.details->>'${field}' = a.details->>'${field}'`)
  return `audit_log a left join lateral (
      select l.at, l.kind, l.details from audit_log l
      where l.kind in (${kinds.map((kind) => `'${kind}'`).join(', ')})
        and left(l.details->>'${id}', 64) = left(a.details->>'${id}', 64) ${same.join(' ')}
      order by l.sequence desc limit 1) p on true`
}
