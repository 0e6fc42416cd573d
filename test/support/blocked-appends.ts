import pg from 'pg'
import type { QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { waitUntil } from './quipu-process.ts'

/** A Postgres event log in which appends of some event types fail until they are released. */
export interface BlockedAppends {
  /** Blocks these event types from now on, and no other types. */
  block(...types: QueryEventType[]): Promise<void>
  /** Like `block`, but appends wait, and become valid on release, even if their writer has gone. */
  hold(type: QueryEventType): Promise<void>
  /** Resolves once an append was refused or waits. */
  reached(): Promise<void>
  /** Releases all appends. */
  letThrough(): Promise<void>
  close(): Promise<void>
}

/** The lock for which held appends wait. */
const GATE = 4711

/**
 * The log retries a failed append, so the coordinator stays right before an event for as long as a test needs to kill it
 * there.
 */
export async function createBlockedAppends(database: string): Promise<BlockedAppends> {
  const client = new pg.Client(database)
  await client.connect()
  // A sequence, because all other writes of a failed statement are rolled back.
  await client.query(`create sequence public.turned_away`)
  await client.query(`create table public.blocked (type text, held boolean not null default false)`)
  await client.query(`
    create function public.turn_away() returns trigger language plpgsql as $$
    declare held_back boolean;
    begin
      select held into held_back from public.blocked where position('"type":"' || type || '"' in new.data) > 0;
      if found then
        perform nextval('public.turned_away');
        if not held_back then raise exception 'turned away'; end if;
        perform pg_advisory_xact_lock_shared(${GATE});
      end if;
      return new;
    end $$`)
  await client.query(
    `create trigger turn_away before insert on quipu_log.events for each row execute function public.turn_away()`,
  )
  return {
    async block(...types) {
      await client.query(`alter sequence public.turned_away restart`)
      await client.query(
        'with before as (delete from public.blocked) insert into public.blocked select unnest($1::text[])',
        [types],
      )
    },
    async hold(type) {
      await client.query(`select pg_advisory_lock(${GATE})`)
      await client.query(`alter sequence public.turned_away restart`)
      await client.query('with before as (delete from public.blocked) insert into public.blocked values ($1, true)', [
        type,
      ])
    },
    reached: () =>
      waitUntil(
        'an append is turned away',
        async () => (await client.query(`select is_called from public.turned_away`)).rows[0]?.is_called === true,
        60_000,
      ),
    async letThrough() {
      await client.query('delete from public.blocked')
      await client.query('select pg_advisory_unlock_all()')
    },
    close: () => client.end(),
  }
}
