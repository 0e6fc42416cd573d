import type { ViewDefinition, WriteTarget } from '../../../connectors/spi/table-writer.ts'
import type { Failure } from '../../../shared/engine-error.ts'
import { fingerprintOfShape, type Fingerprint } from '../../../sql/fingerprint.ts'
import type { QueryType } from '../../../sql/front-end.ts'
import { StatementText } from '../../../sql/parsed-statement.ts'
import { queryTypeOf } from '../../../sql/statements/query-type.ts'
import { redactSecrets, redactStatement, type RedactionOptions } from '../../../sql/syntax/redact-secrets.ts'
import { holdsSecret, isSecretName, withoutUserInfo } from '../../../sql/syntax/secret-names.ts'
import { createSecretValues, REDACTED } from '../../../sql/syntax/secret-values.ts'
import { RecordedType } from '../session/recorded-type.ts'
import type { PlanOutline, QueryEvent, QueryEventOf, QuerySession } from '../stream/events.ts'

type Created = QueryEventOf<'QueryCreated'>['data']
type Planned = QueryEventOf<'QueryPlanned'>['data']
type PlannedStage = Planned['stages'][number]

/** Removes a query's secrets from everything that is recorded or shown of it: every event passes through here. */
export interface QuerySecrets {
  seal(event: QueryEvent): QueryEvent
}

/** A statement as it was posted, and the part of it that may be shown: `sealedSubmission` makes it. */
export interface PostedStatement {
  /** As typed: this text is run. */
  readonly text: StatementText
  /** As sent: the statement runs with it. */
  readonly session: QuerySession
  readonly secrets: QuerySecrets
  /** The data of QueryCreated, without secrets. */
  readonly created: QueryEventOf<'QueryCreated'>['data']
  readonly type: RecordedType
}

const NO_SECRETS: QuerySecrets = { seal: (event) => event }

/** The secrets of a statement and of what was sent with it. Plain data, so that a thread may find them. */
export interface FoundSecrets {
  /** The statement without the secrets. */
  readonly sql: string
  readonly redacted: boolean
  /** The session without the secrets. */
  readonly session: QuerySession
  /** Texts of literals, comments and properties that are secrets: they must not appear anywhere else either. */
  readonly values: readonly string[]
  /** Quoted names that hold a secret. */
  readonly names: readonly string[]
}

/**
 * @param text as typed
 * @param session as sent; its prepared statements are those of the text
 */
export function findSecrets(
  text: StatementText,
  session: QuerySession,
  options: Pick<RedactionOptions, 'intoSecrets' | 'holdMs'> = {},
): FoundSecrets {
  const statement = redactStatement(text, options)
  const values = [...statement.values]
  const shown = sealedSession(text, session, values, options)
  const runsPrepared = /execute|describe/i.test(text.sql)
  const redacted = statement.redacted || (runsPrepared && shown.preparedStatements !== session.preparedStatements)
  return { sql: statement.sql, redacted, session: shown, values, names: statement.names }
}

/** The type of a statement by what is recorded of it. Parses the recorded text, if that is another one. */
export function recordedTypeOf(text: StatementText, found: FoundSecrets): QueryType | undefined {
  return queryTypeOf(found.redacted ? new StatementText(found.sql, found.session.preparedStatements) : text)
}

/**
 * Prepares a posted statement: its text and session for execution, and the data of it that may be kept.
 * @param text as typed
 * @param session as sent; its prepared statements are those of the text
 * @param rest the other data of QueryCreated
 */
export function sealedSubmission(
  text: StatementText,
  session: QuerySession,
  rest: Omit<Created, 'sql' | 'redacted' | 'session'>,
  found: FoundSecrets = findSecrets(text, session),
): PostedStatement {
  const { redacted, names } = found
  const values = [...found.values]
  const { tracestate, ...others } = rest
  // A tracestate that holds a secret is dropped whole: a part of it is useless to a tracer.
  const kept = tracestate === undefined || sealedText(tracestate, values) !== tracestate ? {} : { tracestate }
  const created: Created = { ...others, ...kept, sql: found.sql, redacted, session: found.session }
  const secrets = !redacted && values.length === 0 ? NO_SECRETS : secretsOf(redacted, values, names)
  return { text, session, created, secrets, type: new RecordedType(() => recordedTypeOf(text, found)) }
}

/** A statement that another process began: this process knows only that it has secrets, not which. */
export function recordedSubmission(created: Created): PostedStatement {
  const secrets = created.redacted ? secretsOf(true, [], []) : NO_SECRETS
  const { sql, session } = created
  const text = new StatementText(sql, session.preparedStatements)
  return { text, session, created, secrets, type: new RecordedType(() => queryTypeOf(text)) }
}

/** Whether this is the recorded rest of a change whose text had secrets. Then the change cannot be made any more. */
export function isRedacted(created: Created, change: WriteTarget['change']): boolean {
  return created.redacted && JSON.stringify(change).includes(REDACTED)
}

function sealedSession(
  { prepared }: StatementText,
  session: QuerySession,
  values: string[],
  options: RedactionOptions,
): QuerySession {
  const { preparedStatements } = session
  const texts = sealedTexts(session, values)
  const sealed = { ...session, ...texts }
  for (const field of ['properties', 'roles', 'resourceEstimates'] as const)
    sealed[field] = mapValues(session[field], (value, name) => {
      if (!isSecretName(name)) return sealedText(value, values)
      values.push(value)
      return REDACTED
    })
  sealed.preparedStatements = mapValues(preparedStatements, (_sql, name) => {
    const taken = redactStatement(prepared.texts.get(name)!, options)
    for (const value of [...taken.values, ...taken.names]) values.push(value)
    return taken.sql
  })
  for (const field of ['clientTags', 'capabilities', 'groups'] as const)
    sealed[field] = session[field].map((one) => sealedText(one, values))
  return sealed
}

/** Removes secrets from the texts of a session that a client may fill with anything. */
function sealedTexts(session: QuerySession, values: string[]): Partial<QuerySession> {
  const { source, path, clientInfo, traceToken, userAgent, language } = session
  const sealed: Partial<QuerySession> = {}
  for (const [name, text] of Object.entries({ source, path, clientInfo, traceToken, userAgent, language }))
    if (text !== undefined) Object.assign(sealed, { [name]: sealedText(text, values) })
  return sealed
}

function sealedText(text: string, values: string[]): string {
  if (!holdsSecret(text)) return withoutUserInfo(text, values)
  values.push(text)
  return REDACTED
}

/** Maps the values of a record; returns the same object when nothing changes. */
function mapValues(
  record: Readonly<Record<string, string>>,
  map: (value: string, name: string) => string,
): Record<string, string> {
  let changed = false
  const mapped = Object.fromEntries(
    Object.entries(record).map(([name, value]) => {
      const now = map(value, name)
      changed ||= now !== value
      return [name, now]
    }),
  )
  return changed ? mapped : (record as Record<string, string>)
}

function secretsOf(withheld: boolean, found: readonly string[], foundNames: readonly string[]): QuerySecrets {
  const names = new Set(foundNames.map((name) => name.toLowerCase()))
  const values = createSecretValues([...found, ...foundNames])
  const clean = (text: string): string => values.redactedIn(text)
  const cleanAll = (texts: readonly string[]): string[] => texts.map(clean)

  function failure<T extends Pick<Failure, 'errorName' | 'message'>>(failed: T): T {
    const message = clean(failed.message)
    // The engine quotes values in its messages, and it may have derived a value from the secret.
    const ofValues = withheld && !aboutNames.test(failed.errorName)
    return { ...failed, message: ofValues ? message.replace(/'[^']*'|"[^"]*"/g, `'${REDACTED}'`) : message }
  }

  function outline(node: PlanOutline): PlanOutline {
    const details = Object.fromEntries(Object.entries(node.details).map(([name, value]) => [name, clean(value)]))
    return { name: node.name, details, layout: cleanAll(node.layout), children: node.children.map(outline) }
  }

  function stage(planned: PlannedStage): PlannedStage {
    const { fragment, ...rest } = planned
    if (!fragment) return planned
    if (!withheld && !values.holdsOne(textsOf(fragment))) return planned
    const { streams, write } = fragment
    const target = write && { ...write.target, ...sealedChange(write.target, clean) }
    return {
      ...rest,
      splits: planned.splits.map(({ scan, catalog }) => ({ scan, catalog, data: {} })),
      withheld: { streams, ...(target && { target }) },
    }
  }

  const named = (name: string): string => (names.has(name.toLowerCase()) ? REDACTED : name)

  function plan(data: Planned): Planned {
    return {
      ...data,
      columns: data.columns.map((column) => ({ ...column, name: named(column.name) })),
      tables: data.tables.map(({ paths, ...table }) => ({
        ...table,
        columns: table.columns.map(named),
        ...(paths && {
          paths: paths.map(({ views, columns }) => ({ views: cleanAll(views), columns: columns.map(named) })),
        }),
      })),
      ...(data.views && {
        views: data.views.map((view) => ({ ...view, columns: view.columns.map(named), via: cleanAll(view.via) })),
      }),
      stages: data.stages.map(stage),
      warnings: warnings(data.warnings),
      ...(data.outline && { outline: outline(data.outline) }),
      ...(data.fingerprint && { fingerprint: fingerprint(data.fingerprint) }),
      ...(data.lineage && { lineage: lineage(data.lineage) }),
    }
  }

  const lineage = ({ columns, rows }: NonNullable<Planned['lineage']>): NonNullable<Planned['lineage']> => ({
    columns: columns.map((column) => ({ ...column, name: named(column.name) })),
    rows,
  })

  /** Names that are secrets are part of the shape, and a hash would let a reader test guesses. */
  const fingerprint = (made: Fingerprint): Fingerprint => {
    const query = clean(made.query)
    return query === made.query ? made : fingerprintOfShape(query)
  }

  const warnings = (raised: Planned['warnings']): Planned['warnings'] =>
    raised.map((one) => ({ ...one, message: clean(one.message) }))

  return {
    seal(event): QueryEvent {
      switch (event.type) {
        case 'QueryPlanned':
          return { ...event, data: plan(event.data) }
        case 'TaskFailed':
        case 'QueryFailed':
          return { ...event, data: { ...event.data, failure: failure(event.data.failure) } } as QueryEvent
        case 'TaskCreated':
        case 'TaskRetried':
        case 'ResultPagesLost':
        case 'QueryQueued':
          return { ...event, data: cleanReasons(event.data, clean) } as QueryEvent
        case 'QueryFinished': {
          const { responseHeaders } = event.data
          const headers = responseHeaders.map(({ header, value }) => ({ header, value: sealedHeader(value, clean) }))
          return {
            ...event,
            data: { ...event.data, responseHeaders: headers, warnings: warnings(event.data.warnings) },
          }
        }
        case 'WritePrepared':
          if (!withheld) return event
          return {
            ...event,
            data: { ...event.data, prepared: { ...event.data.prepared, ...sealedChange(event.data.prepared, clean) } },
          }
        // Made from sealed data already, or only from figures and places.
        case 'QueryCreated':
        case 'QueryHeld':
        case 'QueryReleased':
        case 'QueryAdmitted':
        case 'TaskCanceled':
        case 'TaskFinished':
        case 'QueryProgressed':
        case 'ResultPagesPublished':
        case 'ResultsDelivered':
        case 'WriteCommitted':
        case 'QueryRecovered':
          return event
        default:
          return event satisfies never
      }
    },
  }
}

/** Errors whose messages name tables, columns, functions and types, but no values. */
const aboutNames =
  /NOT_FOUND$|EXISTS$|^SYNTAX_ERROR$|^TYPE_MISMATCH$|^NOT_SUPPORTED$|^AMBIGUOUS|^MISSING|^EXPRESSION_NOT|^USER_CANCELED$|KILLED$|PREEMPTED$|RESTARTED$|^REMOTE|^NO_NODES|^EXCEEDED|^ABANDONED|^TRANSACTION_CONFLICT$/

function cleanReasons<T extends object>(data: T, clean: (text: string) => string): T {
  const texts = Object.entries(data).filter(([name]) => name === 'reason' || name === 'retryReason')
  return { ...data, ...Object.fromEntries(texts.map(([name, text]) => [name, clean(String(text))])) }
}

/** In characters. A longer text with a secret in it is removed whole: parsing it here would block the event loop. */
const LONGEST_VIEW = 64 * 1024

type Changed = Pick<WriteTarget, 'change' | 'columns'>

/** Removes secrets from the text of a view and from comments. Names and files are the catalog's, and stay. */
function sealedChange({ change, columns: stored }: Changed, clean: (text: string) => string): Changed {
  switch (change.kind) {
    case 'createView':
      return { change: { ...change, definition: sealedView(change.definition, clean) }, columns: stored }
    case 'createMaterializedView':
      return { change: { ...change, definition: sealedView(change.definition, clean) }, columns: stored }
    case 'createTable': {
      const comment = change.comment === undefined ? {} : { comment: clean(change.comment) }
      const columns = change.columns.map((column) => commented(column, clean))
      return { change: { ...change, columns, ...comment }, columns: stored.map((column) => commented(column, clean)) }
    }
    case 'comment':
      return { change: change.text === undefined ? change : { ...change, text: clean(change.text) }, columns: stored }
    case 'alterColumns': {
      const { alteration } = change
      if (alteration.kind !== 'add') return { change, columns: stored }
      const column = commented(alteration.column, clean)
      return { change: { ...change, alteration: { ...alteration, column } }, columns: stored }
    }
    default:
      return { change, columns: stored }
  }
}

function sealedView<D extends ViewDefinition>(definition: D, clean: (text: string) => string): D {
  const { sql, comment, columns } = definition
  return {
    ...definition,
    sql: sql.length > LONGEST_VIEW ? REDACTED : clean(redactSecrets(sql).sql),
    columns: columns.map((column) => commented(column, clean)),
    ...(comment !== undefined && { comment: clean(comment) }),
  }
}

function commented<T extends { readonly comment?: string | undefined }>(column: T, clean: (text: string) => string): T {
  return column.comment === undefined ? column : { ...column, comment: clean(column.comment) }
}

/** Cleans a header value of the form `name=urlencoded`, as clients read it. */
function sealedHeader(value: string, clean: (text: string) => string): string {
  const at = value.indexOf('=')
  const [name, text] = at < 0 ? ['', value] : [value.slice(0, at + 1), value.slice(at + 1)]
  const decoded = decodedForm(text)
  const cleaned = clean(decoded)
  return cleaned === decoded ? value : name + encodeURIComponent(cleaned)
}

function decodedForm(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

/** The texts inside a value, unescaped (not as JSON writes them). */
function textsOf(value: unknown): string {
  const texts: string[] = []
  JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === 'string') texts.push(one)
    return one
  })
  return texts.join('\n')
}
