import type { QueryId } from '../../../shared/ids.ts'
import type { Catalogs } from '../../../connectors/spi/catalogs.ts'
import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import type { Fingerprint } from '../../../sql/fingerprint.ts'
import type { FrontEndTimes, MetadataPort } from '../../../sql/front-end.ts'
import type { SlotOwner } from '../../../shared/fair-queue.ts'
import { eventLoopSlice } from '../../../shared/event-loop-slice.ts'
import { readingFor } from '../../clusters/metadata/current-statement.ts'
import { catalogNames, createMetadataPort, listSplits } from '../../dispatch/catalog-metadata.ts'
import type { StatementSurvey } from '../../front-end-threads/thread-messages.ts'
import { charactersOf, LONG_TEXT, type ThreadedFrontEnd } from '../../front-end-threads/threaded-front-end.ts'
import { createConnectorCalls, type ConnectorCall, type ConnectorCalls } from '../statistics/connector-calls.ts'
import type { FileDigests } from '../stream/planned-data.ts'
import type { Submission } from '../registry/query-handle.ts'
import type { RightsOf } from '../../../sql/access-control.ts'
import type { SessionContext } from '../../../sql/session.ts'
import { sessionProperty } from '../../../sql/session/session-properties.ts'
import type { Delegation } from './delegation.ts'
import { rightsBeside } from './remote-rights.ts'
import { boundedProperties, type ServerBounds } from './query-limits.ts'
import { sessionContext, type StatementRights } from '../session/session-context.ts'

interface AnalysisDeps extends StatementRights {
  readonly frontEnd: ThreadedFrontEnd
  readonly metadata: MetadataPort
  readonly catalogs: Catalogs
  readonly limits: { readonly server: ServerBounds }
  readonly delegation?: Pick<Delegation, 'catalogs'> | undefined
}

interface SubmittedStatement {
  readonly queryId: QueryId
  readonly submission: Pick<Submission, 'text' | 'session' | 'created' | 'held'>
  readonly startTimeMillis: number
  /** Aborted when the query ends before its time. */
  readonly signal: AbortSignal
}

/** Analyses the statement and keeps the result with its cost: only this process knows them. */
export class Analysis {
  readonly #deps: AnalysisDeps
  readonly #statement: SubmittedStatement
  /** Present for a traced query. */
  readonly #calls: ConnectorCalls | undefined
  #times: FrontEndTimes | undefined
  #files: FileDigests = {}
  #fingerprint: { readonly made: Fingerprint | undefined } | undefined
  #parsedBeforeMs: number | undefined
  #isPlanned = false
  /** The splits of queries that were listed before their route was known. */
  readonly #listed = new WeakMap<Rendered, ReturnType<typeof listSplits>>()
  /** Gives back the memory of the syntax tree. */
  #releaseTree = (): void => {}

  constructor(deps: AnalysisDeps, statement: SubmittedStatement) {
    this.#deps = deps
    this.#statement = statement
    this.#calls = statement.submission.created.sampled ? createConnectorCalls() : undefined
  }

  /** Times of the front end's steps, once they are done. */
  get times(): FrontEndTimes | undefined {
    return this.#times
  }

  /** The time that parsing took, milliseconds, if the text was parsed before the analysis; else 0. */
  get parsedBeforeMs(): number {
    return this.#parsedBeforeMs ?? 0
  }

  /** The shape of the statement, once it is known. */
  get fingerprint(): Fingerprint | undefined {
    return this.#fingerprint?.made
  }

  /** Digests of the files that were in force at the analysis. */
  get files(): FileDigests {
    return this.#files
  }

  /** The calls that the analysis made to connectors. */
  get calls(): readonly ConnectorCall[] {
    return this.#calls?.made ?? []
  }

  /** Parses the statement, and finds the properties of its syntax that decide its route. */
  async survey(): Promise<StatementSurvey> {
    const { submission, signal } = this.#statement
    const { text, held } = submission
    const slice = this.#slice()
    // Awaited here, because the work must follow the slice at once.
    if (slice) await slice
    const session = this.#begin()
    const survey = await this.#deps.frontEnd.survey(text, session, { owner: held.owner, signal })
    this.#fingerprint = { made: survey.fingerprint }
    return survey
  }

  async analyze(): Promise<PlannedStatement> {
    const { frontEnd } = this.#deps
    const { submission, signal } = this.#statement
    const { text, held } = submission
    const { owner } = held
    const slice = this.#slice()
    // Awaited here, because the work must follow the slice at once.
    if (slice) await slice
    const session = this.#begin()
    const planned = await frontEnd.plan(text, session, this.#noted(this.#metadataOf(session), session), {
      owner,
      signal,
      onTimes: (times) => void (this.#times = times),
      // A survey has made it before.
      onFingerprint: this.#fingerprint ? undefined : (made) => void (this.#fingerprint = { made }),
    })
    this.#releaseTree()
    // A write is bound a second time after the client's next request.
    if (planned.kind === 'write' && !this.#isPlanned) this.#keepTree()
    else text.forget()
    this.#isPlanned = true
    return planned
  }

  /**
   * Analyses the statement over the metadata of a cluster and with other rights. Keeps the syntax tree, because the
   * statement may have to be analysed again.
   * @param rightsOf undefined: no rights are checked
   */
  async analyzeElsewhere(metadata: MetadataPort, rightsOf: RightsOf | undefined): Promise<PlannedStatement> {
    const { submission, signal } = this.#statement
    const { text, held } = submission
    const slice = this.#slice()
    // Awaited here, because the work must follow the slice at once.
    if (slice) await slice
    const { rightsOf: own, properties, ...rest } = this.#begin()
    void own
    // Properties that only the cluster knows mean nothing here.
    const known = Object.fromEntries(Object.entries(properties).filter(([name]) => sessionProperty(name)))
    const session: SessionContext = { ...rest, properties: known, ...(rightsOf && { rightsOf }) }
    return this.#deps.frontEnd.plan(text, session, this.#noted(metadata, session), {
      owner: held.owner,
      signal,
      onTimes: (times) => void (this.#times = times),
    })
  }

  /** The catalogs as the user may see them: a cluster may decide about its own catalogs itself. */
  #metadataOf({ user }: SessionContext): MetadataPort {
    const { delegation, metadata, catalogs } = this.#deps
    return delegation ? createMetadataPort(catalogs, user) : metadata
  }

  /** The same metadata. Notes the calls, and continues after each answer in a slice of the event loop. */
  #noted(metadata: MetadataPort, session: SessionContext): MetadataPort {
    const { submission, signal } = this.#statement
    const { text, held } = submission
    const read = this.#deps.delegation ? readFor(metadata, signal) : metadata
    const asked = this.#calls ? this.#calls.noting(read) : read
    const characters = charactersOf(text.sql, session)
    return characters >= LONG_TEXT ? asked : inSlices(asked, characters, held.owner)
  }

  /** The wait for a slice of the event loop; undefined when none is needed, or another thread works on the text. */
  #slice(): Promise<void> | undefined {
    const { text, session, held } = this.#statement.submission
    const characters = charactersOf(text.sql, session)
    return characters >= LONG_TEXT ? undefined : eventLoopSlice(characters, held.owner)
  }

  /** Keeps the digests of the files in force now. @returns the session of the statement */
  #begin(): SessionContext {
    const { queryId, submission, startTimeMillis } = this.#statement
    const { text } = submission
    this.#files = this.#deps.filesInForce()
    // Set only by the first step. Later steps would count the time that the first step took to parse.
    this.#parsedBeforeMs ??= text.parsed?.times.heldMs ?? 0
    const bounds = boundedProperties(this.#deps.limits.server)
    return sessionContext(queryId, submission, startTimeMillis, this.#rights(), bounds)
  }

  /** The access rules; they are not about catalogs of clusters that decide themselves. */
  #rights(): StatementRights {
    const { delegation, objectsOf } = this.#deps
    if (!delegation) return this.#deps
    return {
      ...this.#deps,
      objectsOf(asker) {
        const rightsOf = objectsOf(asker)
        return rightsOf && rightsBeside(rightsOf, (catalog) => delegation.catalogs.decidesItself(catalog))
      },
    }
  }

  /** Counts the syntax tree as memory of the query, or frees it where the limits leave no memory for it. */
  #keepTree(): void {
    const { text, held } = this.#statement.submission
    if (text.parsed?.kind !== 'valid') return
    try {
      this.#releaseTree = held.more(text.parsed.treeBytes)
    } catch {
      text.forget()
    }
  }

  /** Lists the splits that the scans of a query read. A second call for the same query gives the same list. */
  listSplits(query: Rendered): ReturnType<typeof listSplits> {
    const known = this.#listed.get(query)
    if (known) return known
    const list = () => listSplits(this.#deps.catalogs, query)
    const listing = this.#calls ? this.#calls.timed('splits', catalogNames(query), list) : list()
    this.#listed.set(query, listing)
    return listing
  }
}

type Rendered = Parameters<typeof listSplits>[1]

/** The same metadata. Reads of it leave their queue if the statement ends. */
function readFor(port: MetadataPort, signal: AbortSignal): MetadataPort {
  return {
    ...port,
    schemas: (...asked) => readingFor(signal, () => port.schemas(...asked)),
    tables: (...asked) => readingFor(signal, () => port.tables(...asked)),
    table: (...name) => readingFor(signal, () => port.table(...name)),
  }
}

/**
 * Work after a connector's answer blocks the event loop, and many answers arrive at once: each continues in a slice of
 * its own.
 */
function inSlices(port: MetadataPort, characters: number, owner: SlotOwner): MetadataPort {
  async function inSlice<T>(asked: Promise<T>): Promise<T> {
    const answer = await asked
    const slice = eventLoopSlice(characters, owner)
    if (slice) await slice
    return answer
  }
  return {
    catalogs: () => port.catalogs(),
    abilities: (catalog) => port.abilities(catalog),
    schemas: (catalog) => inSlice(port.schemas(catalog)),
    tables: (catalog, schema, named) => inSlice(port.tables(catalog, schema, named)),
    table: (...name) => inSlice(port.table(...name)),
    statistics: (catalog, handle) => inSlice(port.statistics(catalog, handle)),
  }
}
