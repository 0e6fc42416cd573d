import pg from 'pg'
import type { QueryEventType } from '../../src/coordinator/query/events.ts'
import { waitUntil } from './quipu-process.ts'

/** A Postgres event log in which appends with an event of some types fail, until they are let through. */
export interface BlockedAppends {
  /** From now on; those of other types go through, also of those that were blocked before. */
  block(...types: QueryEventType[]): Promise<void>
  /** Resolves once an append was turned away. */
  reached(): Promise<void>
  /** Appends go through again. */
  letThrough(): Promise<void>
  close(): Promise<void>
}

/**
 * The log keeps trying what it could not append: the coordinator stands right before an event, for as long as a test
 * needs to end it there.
 */
export async function createBlockedAppends(database: string): Promise<BlockedAppends> {
  const client = new pg.Client(database)
  await client.connect()
  // A sequence, since what a failed statement writes elsewhere is taken back with it.
  await client.query(`create sequence public.turned_away`)
  await client.query(`create table public.blocked (type text)`)
  await client.query(`
    create function public.turn_away() returns trigger language plpgsql as $$
    begin
      if exists (select from public.blocked where position('"type":"' || type || '"' in new.data) > 0) then
        perform nextval('public.turned_away');
        raise exception 'turned away';
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
    reached: () =>
      waitUntil(
        'an append is turned away',
        async () => (await client.query(`select is_called from public.turned_away`)).rows[0]?.is_called === true,
        60_000,
      ),
    letThrough: async () => void (await client.query('delete from public.blocked')),
    close: () => client.end(),
  }
}
