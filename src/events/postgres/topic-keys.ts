import type pg from 'pg'
import { KeyRing } from '../data-keys/key-ring.ts'
import { KeyTable } from '../data-keys/key-table.ts'
import type { StreamCipher } from '../record-store.ts'

/** A log in Postgres has no file of keys: the keys are in the same database as its records. */
const NO_FILE = ''
/** The database has just answered, so a long wait is safe. */
const OPEN_WAIT_MS = 60_000

/** Keys of a log that was converted from a topic: they decrypt its records. New records are not encrypted. */
export interface TopicKeys extends StreamCipher {
  forget(names: Iterable<string>): Promise<void>
  close(): void
}

/** Loads the keys. @returns undefined when the database has no keys of a topic */
export async function openTopicKeys(pool: pg.Pool): Promise<TopicKeys | undefined> {
  const { rows } = await pool.query<{ there: boolean }>('select exists (select from quipu_log.key_blocks) as there')
  if (!rows[0]!.there) return undefined
  const ring = new KeyRing({
    table: new KeyTable(pool, undefined),
    file: NO_FILE,
    keepsFile: false,
    log: undefined,
    encrypts: () => false,
    openWaitMs: OPEN_WAIT_MS,
  })
  await ring.open()
  return ring
}
