import { HoldsLoop } from '../../../shared/cpu-budget.ts'
import type { SlotOwner } from '../../../shared/fair-queue.ts'
import type { LimitOwnerOf } from '../../../shared/limit-owner.ts'
import { eventLoopSlice } from '../../../shared/event-loop-slice.ts'
import type { MetadataPort } from '../../../sql/front-end.ts'
import type { FrontEndThreads } from '../../front-end-threads/front-end-threads.ts'
import { charactersOf, LONG_TEXT, LONGEST_HOLD_MS } from '../../front-end-threads/threaded-front-end.ts'
import type { QueryEventOf, QuerySession } from '../stream/events.ts'
import { personOf } from '../session/session-identity.ts'
import { haveSecretColumns, insertsSecrets } from './insert-secrets.ts'
import { rememberQueryType } from '../session/query-group.ts'
import { findSecrets, sealedSubmission, type FoundSecrets, type PostedStatement } from './query-secrets.ts'

type Created = QueryEventOf<'QueryCreated'>['data']

/** Examines statements before they are planned; long ones in a thread. */
export interface PostedTexts {
  /**
   * Prepares a posted statement: its text and session for execution, and the data of it that may be kept.
   * @param rest the other data of QueryCreated
   */
  seal(
    sql: string,
    session: QuerySession,
    rest: Omit<Created, 'sql' | 'redacted' | 'session'>,
  ): Promise<PostedStatement>
  /** Determines the type of a long statement: `groupedStatement` then knows it without parsing. */
  findType(created: Pick<Created, 'sql' | 'session'>): Promise<void> | undefined
}

export interface PostedTextsDeps {
  readonly threads: Pick<FrontEndThreads, 'run'>
  readonly metadata: Pick<MetadataPort, 'table'>
  readonly ownerOf: LimitOwnerOf
  /** Whether any component needs the type of a statement before it is planned. */
  readonly typeIsAsked: () => boolean
}

export function createPostedTexts({ threads, metadata, typeIsAsked, ownerOf }: PostedTextsDeps): PostedTexts {
  async function findHere(sql: string, session: QuerySession, owner: SlotOwner): Promise<FoundSecrets> {
    const slice = eventLoopSlice(sql.length, owner)
    if (slice) await slice
    const looked = insertsSecrets(metadata, sql, session, LONGEST_HOLD_MS)
    const intoSecrets = looked ? await looked : false
    return findSecrets(sql, session, { intoSecrets, holdMs: LONGEST_HOLD_MS })
  }

  async function findApart(sql: string, session: QuerySession, owner: SlotOwner): Promise<FoundSecrets> {
    const task = { kind: 'findSecrets', sql, session, withType: typeIsAsked() } as const
    const { type, ...found } = await threads.run(
      task,
      {
        async later(asked) {
          if (asked.of === 'secretColumns') return haveSecretColumns(metadata, asked.tables, session)
          throw new Error('Whoever looks for secrets asks for nothing else')
        },
      },
      { owner },
    )
    if (task.withType) rememberQueryType(found, type)
    return found
  }

  async function find(sql: string, session: QuerySession, owner: SlotOwner): Promise<FoundSecrets> {
    if (charactersOf(sql, session) >= LONG_TEXT) return findApart(sql, session, owner)
    try {
      return await findHere(sql, session, owner)
    } catch (error) {
      if (error instanceof HoldsLoop) return findApart(sql, session, owner)
      throw error
    }
  }

  return {
    async seal(sql, session, rest) {
      return sealedSubmission(sql, session, rest, await find(sql, session, ownerOf(personOf({ session }))))
    },
    findType(created) {
      const { sql, session } = created
      if (charactersOf(sql, session) < LONG_TEXT) return undefined
      const task = { kind: 'queryType', sql, preparedStatements: session.preparedStatements } as const
      const host = { later: () => Promise.reject(new Error('The kind of a statement depends on nothing else')) }
      return threads
        .run(task, host, { owner: ownerOf(personOf({ session })) })
        .then((type) => rememberQueryType(created, type))
    },
  }
}
