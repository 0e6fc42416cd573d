import type { Asker } from '../../../connectors/spi/connector.ts'
import type { TaskStats } from '../../../execution/api/task.ts'
import type { Split } from '../../../execution/api/fragment.ts'
import type { Stage } from '../../../planner/query-plan.ts'
import type { Identity } from '../../../security/authorization.ts'
import type { SlotOwner } from '../../../shared/fair-queue.ts'
import type { QueryId, TaskId } from '../../../shared/ids.ts'
import { accessOf } from '../../../sql/access-control.ts'
import { readingFor } from '../../clusters/metadata/current-statement.ts'
import { loadSplits, readsSystem } from '../../dispatch/catalog-metadata.ts'
import type { HeldMemory } from '../../dispatch/statement-memory.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { QueryEventOf, Routed } from '../stream/events.ts'
import type { RemoteAnswers } from '../registry/remote-answers.ts'
import type { PageMemory } from '../results/page-memory.ts'
import { checkPlanSize, plannedData, withTimes, type PlanFacts } from '../stream/planned-data.ts'
import type { QueryAggregate, QueryStep } from '../stream/query-aggregate.ts'
import type { ResponseHeader } from '../session/session-headers.ts'
import type { Admission } from './admission.ts'
import type { Analysis } from './analysis.ts'
import type { Completion } from './completion.ts'
import { leftOutWarning } from './left-out-warning.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { Figures } from './figures.ts'
import type { HeldLimits } from './held-limits.ts'
import type { Recorder } from '../stream/recorder.ts'
import type { OngoingWork } from './ongoing-work.ts'
import type { Waiters } from './waiters.ts'

/** The query that a statement, a stage or a write is carried out for. */
export interface RunContext {
  readonly queryId: QueryId
  readonly user: string
  /** The user that posted it, whichever coordinator continues it. */
  readonly identity: Identity
  /** Milliseconds since the epoch; the value of `now()`. */
  readonly startTimeMillis: number
  readonly aggregate: QueryAggregate
  /** Aborted when the query ends in another way, and when this process stops. */
  readonly signal: AbortSignal
  /** The remaining limits of the query. */
  readonly limits: Pick<HeldLimits, 'forTask' | 'attempts'>

  /** Commands go through the query's own recorder: the first ones are appended together with QueryCreated. */
  readonly record: Recorder['record']
  readonly recordSoon: Recorder['recordSoon']
  readonly holdOn: Recorder['holdOn']
  /**
   * The plan in the form of its event; from now on a POST can be answered with it.
   * @throws EngineError when it is too large
   */
  planned(facts: PlanFacts): QueryCommand
  /** The decision about the route; undefined until it is known, and where no clusters are configured. */
  readonly routed: Routed | undefined
  /** Keeps the decision about the route: the plan and EXPLAIN name it. */
  keepRoute(routed: Routed | undefined): void
  /** QueryFinished; its figures are taken when the step is decided. */
  finish(extra?: Partial<QueryEventOf<'QueryFinished'>['data']>): QueryStep

  readonly listSplits: Analysis['listSplits']
  /**
   * A stage's splits with the current rows of system tables: these are in no event, and are listed again after a
   * restart.
   */
  splitsOf(stage: Stage): Promise<readonly Split[]>
  /** Counts bytes as held. @returns a function that releases them @throws EngineError EXCEEDED_GLOBAL_MEMORY_LIMIT */
  readonly hold: HeldMemory['more']
  /** The traceparent for whatever a stage of the query causes. */
  spanOf(stage: number): string | undefined

  /** Releases the query's slot; resolves when the client sends its next request. */
  leaveUntilFollowed(): Promise<void>
  /** Keeps response headers that the client is to remember; each answer carries them. */
  keepHeaders(headers: readonly ResponseHeader[]): void
  /** Registers work that begins now, so that a cancel reaches it. @returns a function to call when it has ended */
  readonly onWork: OngoingWork['add']
  onStats(taskId: TaskId, stats: TaskStats): void
  /** Registers the answers of the cluster that runs the statement: polls of the client go there. */
  onRemote(answers: RemoteAnswers): void
  /** Keeps pages whose bytes are in memory anyway. */
  readonly pages: PageMemory
}

/** The parts of a query's execution. */
export interface RunContextParts {
  readonly deps: Pick<ExecutionDeps, 'catalogs' | 'clock' | 'delegation' | 'limits' | 'objectsOf' | 'withinSpan'>
  readonly query: Pick<RunContext, 'queryId' | 'user' | 'identity' | 'startTimeMillis' | 'aggregate'>
  readonly recorder: Recorder
  readonly work: OngoingWork
  readonly waiters: Waiters
  readonly admission: Admission
  readonly analysis: Analysis
  readonly figures: Figures
  readonly limits: HeldLimits
  readonly completion: Completion
  readonly held: HeldMemory
  readonly pages: PageMemory
  /** The traceparent for whatever an entity of the query causes: it becomes a child of the entity's span. */
  readonly spanContext: (name: 'query' | 'stage', entity: string) => string | undefined
  readonly keepHeaders: RunContext['keepHeaders']
  readonly keepRemote: (answers: RemoteAnswers) => void
}

export function createRunContext(parts: RunContextParts): RunContext {
  const { deps, query, recorder, work, waiters, admission, analysis, figures, limits, completion, held, pages } = parts
  const { queryId } = query
  let routed: Routed | undefined
  return {
    signal: work.signal,
    ...query,
    limits,
    record: recorder.record,
    recordSoon: recorder.recordSoon,
    holdOn: recorder.holdOn,
    planned(facts) {
      limits.planned()
      const at = new Date(deps.clock.now()).toISOString()
      const data = plannedData(
        withTimes({ routed, fingerprint: analysis.fingerprint, ...facts }, analysis.times),
        at,
        analysis.files,
      )
      held.more(checkPlanSize(data, deps.limits.planBytes))
      waiters.planIsKnown()
      waiters.wake()
      return { type: 'PlanQuery', data }
    },
    get routed() {
      return routed
    },
    keepRoute: (decided) => void (routed = decided),
    finish: (extra) => completion.finishStep(extra),
    listSplits: (rendered) => analysis.listSplits(rendered),
    async splitsOf(stage) {
      if (!readsSystem(deps.catalogs, stage)) return stage.splits
      // The query may list queries, and it is itself in that list.
      recorder.flush()
      await recorder.first
      const asker: Asker = {
        ...askerOf(deps, query.identity, held.owner),
        onLeftOut: (catalog, reason) => completion.warn(leftOutWarning(`Catalog '${catalog}' is left out: ${reason}`)),
      }
      const lists = () => loadSplits(deps.catalogs, stage, asker)
      const load = () => (deps.delegation ? readingFor(work.signal, lists) : lists())
      const splits = await (deps.withinSpan ? deps.withinSpan(parts.spanContext('query', queryId), load) : load())
      work.signal.throwIfAborted()
      return splits
    },
    hold: (bytes) => held.more(bytes),
    spanOf: (stage) => parts.spanContext('stage', `${queryId}.${stage}`),
    async leaveUntilFollowed() {
      // Clients repeat a POST whose answer was lost: before its first GET the statement has no effect and holds no
      // slot.
      limits.planned()
      admission.leave()
      recorder.flush()
      return waiters.following
    },
    keepHeaders: parts.keepHeaders,
    onWork: (begun) => work.add(begun),
    onStats(taskId, stats) {
      figures.progressed(taskId, stats)
      limits.check()
    },
    onRemote(answers) {
      parts.keepRemote(answers)
      waiters.wake()
    },
    pages,
  }
}

/** The user that rows of system tables are for, with the rights that the rules give them. */
function askerOf({ objectsOf }: Pick<ExecutionDeps, 'objectsOf'>, identity: Identity, owner: SlotOwner): Asker {
  const rightsOf = objectsOf(identity)
  const sight = rightsOf && accessOf({ rightsOf, user: identity.user })
  return { ...identity, owner, ...(sight && { sight }) }
}
