import { HoldsLoop } from '../../../shared/cpu-budget.ts'
import type { SlotOwner } from '../../../shared/fair-queue.ts'
import type { LimitOwnerOf } from '../../../shared/limit-owner.ts'
import { eventLoopSlice } from '../../../shared/event-loop-slice.ts'
import type { MetadataPort, QueryType } from '../../../sql/front-end.ts'
import { StatementText } from '../../../sql/parsed-statement.ts'
import { checkPreparedTexts } from '../../../sql/planning-limits.ts'
import type { FrontEndThreads } from '../../front-end-threads/front-end-threads.ts'
import { charactersOf, LONG_TEXT, LONGEST_HOLD_MS } from '../../front-end-threads/threaded-front-end.ts'
import type { QueryEventOf, QuerySession } from '../stream/events.ts'
import { personOf } from '../session/session-identity.ts'
import { haveSecretColumns, insertsSecrets } from './insert-secrets.ts'
import { findSecrets, sealedSubmission, type FoundSecrets, type PostedStatement } from './query-secrets.ts'

type Created = QueryEventOf<'QueryCreated'>['data']

/** Examines statements before they are planned; long ones in a thread. */
export interface PostedTexts {
  /**
   * Parses all prepared statements of a session, whether or not the statement uses them.
   * @throws EngineError SYNTAX_ERROR, EXCEEDED_TIME_LIMIT
   */
  checkPrepared(session: QuerySession): Promise<void>
  /**
   * Prepares a posted statement: its text and session for execution, and the data of it that may be kept.
   * @param rest the other data of QueryCreated
   */
  seal(
    sql: string,
    session: QuerySession,
    rest: Omit<Created, 'sql' | 'redacted' | 'session'>,
  ): Promise<PostedStatement>
  /** Finds the type of a long statement that another coordinator recorded, so that this thread need not parse it. */
  findType(statement: Pick<PostedStatement, 'text' | 'session' | 'type'>): Promise<void> | undefined
}

export interface PostedTextsDeps {
  readonly threads: Pick<FrontEndThreads, 'run'>
  readonly metadata: Pick<MetadataPort, 'table'>
  readonly ownerOf: LimitOwnerOf
  /** Whether any component needs the type of a statement before it is planned. */
  readonly typeIsAsked: () => boolean
}

interface Found {
  readonly secrets: FoundSecrets
  /** The type of the recorded statement, if a thread has found it. */
  readonly typed?: { readonly type: QueryType | undefined }
}

export function createPostedTexts({ threads, metadata, typeIsAsked, ownerOf }: PostedTextsDeps): PostedTexts {
  async function findHere(text: StatementText, session: QuerySession, owner: SlotOwner): Promise<Found> {
    const slice = eventLoopSlice(text.sql.length, owner)
    if (slice) await slice
    const looked = insertsSecrets(metadata, text, session, LONGEST_HOLD_MS)
    const intoSecrets = looked ? await looked : false
    return { secrets: findSecrets(text, session, { intoSecrets, holdMs: LONGEST_HOLD_MS }) }
  }

  async function findApart({ sql }: StatementText, session: QuerySession, owner: SlotOwner): Promise<Found> {
    const task = { kind: 'findSecrets', sql, session, withType: typeIsAsked() } as const
    const { type, ...secrets } = await threads.run(
      task,
      {
        async later(asked) {
          if (asked.of === 'secretColumns') return haveSecretColumns(metadata, asked.tables, session)
          throw new Error('Whoever looks for secrets asks for nothing else')
        },
      },
      { owner },
    )
    return task.withType ? { secrets, typed: { type } } : { secrets }
  }

  async function find(text: StatementText, session: QuerySession, owner: SlotOwner): Promise<Found> {
    if (charactersOf(text.sql, session) >= LONG_TEXT) return findApart(text, session, owner)
    try {
      return await findHere(text, session, owner)
    } catch (error) {
      if (error instanceof HoldsLoop) return findApart(text, session, owner)
      throw error
    }
  }

  return {
    async checkPrepared(session) {
      const { preparedStatements } = session
      const characters = charactersOf('', session)
      if (characters === 0) return
      const owner = ownerOf(personOf({ session }))
      if (characters < LONG_TEXT) {
        const slice = eventLoopSlice(characters, owner)
        if (slice) await slice
        try {
          return checkPreparedTexts(preparedStatements, { holdMs: LONGEST_HOLD_MS })
        } catch (error) {
          if (!(error instanceof HoldsLoop)) throw error
        }
      }
      const host = { later: () => Promise.reject(new Error('The syntax of a text depends on nothing else')) }
      await threads.run({ kind: 'checkPrepared', preparedStatements }, host, { owner })
    },
    async seal(sql, session, rest) {
      const text = new StatementText(sql, session.preparedStatements)
      const { secrets, typed } = await find(text, session, ownerOf(personOf({ session })))
      const sealed = sealedSubmission(text, session, rest, secrets)
      if (typed) sealed.type.remember(typed.type)
      return sealed
    },
    findType({ text: { sql }, session, type }) {
      if (charactersOf(sql, session) < LONG_TEXT) return undefined
      const task = { kind: 'queryType', sql, preparedStatements: session.preparedStatements } as const
      const host = { later: () => Promise.reject(new Error('The kind of a statement depends on nothing else')) }
      return threads.run(task, host, { owner: ownerOf(personOf({ session })) }).then((found) => type.remember(found))
    },
  }
}
