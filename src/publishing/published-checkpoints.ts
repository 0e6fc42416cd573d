import { checkpointFromJson, checkpointToJson, LogUnavailable, type Checkpoint } from '../events/event-log.ts'
import type { QueryRows } from '../events/projection.ts'
import { eventsBelow } from '../events/projection-store.ts'

/** How far each publisher has come, by name. */
export interface PublishedCheckpoints {
  /**
   * @param begin checkpoint that is stored and returned if nothing of its log was published yet
   * @throws LogUnavailable while the database is away
   */
  load(name: string, begin: Checkpoint): Promise<Checkpoint>
  /** Saves a checkpoint; never goes back. @throws LogUnavailable */
  save(name: string, checkpoint: Checkpoint): Promise<void>
}

const SAVE = `insert into quipu_log.published (name, log_id, checkpoint, events) values ($1, $2, $3, $4)
  on conflict (name, log_id) do update
  set checkpoint = excluded.checkpoint, events = excluded.events, saved_at = clock_timestamp()
  where published.events < excluded.events`

/** @param query on any connection to the database of the read models */
export function publishedCheckpoints(query: QueryRows): PublishedCheckpoints {
  const ask: QueryRows = async (text, values) => {
    try {
      return await query(text, values)
    } catch (cause) {
      throw new LogUnavailable('The checkpoint of the published events cannot be read or stored', { cause })
    }
  }
  const save = async (name: string, checkpoint: Checkpoint): Promise<void> => {
    await ask(SAVE, [name, checkpoint.logId, checkpointToJson(checkpoint), eventsBelow(checkpoint)])
  }
  return {
    async load(name, begin) {
      const [row] = await ask('select checkpoint from quipu_log.published where name = $1 and log_id = $2', [
        name,
        begin.logId,
      ])
      if (row) return checkpointFromJson(String(row['checkpoint']))
      await save(name, begin)
      return begin
    },
    save,
  }
}
