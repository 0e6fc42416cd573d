import { hash } from 'node:crypto'
import type { PlanNode } from '../../../planner/planned-statement.ts'
import { makePlan, resultStage, type QueryPlan, type Stage } from '../../../planner/query-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { ROOT_STAGE } from '../../../shared/ids.ts'
import type { Fingerprint } from '../../../sql/fingerprint.ts'
import type { FrontEndTimes, Lineage, LineageSource, ResultColumn, Warning } from '../../../sql/front-end.ts'
import type { QueryEventOf } from './events.ts'

type Planned = QueryEventOf<'QueryPlanned'>['data']

/** The findings of planning; the rest of QueryPlanned is derived from them. */
export interface PlanFacts {
  readonly queryType: string
  /** Absent for a statement that runs no stage. */
  readonly plan?: QueryPlan | undefined
  readonly columns: readonly ResultColumn[]
  readonly tables: Planned['tables']
  readonly views?: Planned['views']
  /** Parsing, analysis and rendering together, where they are not measured separately. */
  readonly analysisNanos: number
  readonly planningNanos: number
  readonly parseNanos?: number
  readonly updateType?: string
  readonly warnings?: readonly Warning[]
  readonly ordered?: boolean
  readonly outline?: PlanNode
  readonly write?: Planned['write']
  readonly routed?: Planned['routed']
  readonly fingerprint?: Fingerprint | undefined
  readonly lineage?: Planned['lineage'] | undefined
  /** The properties that the statement sets for itself. */
  readonly properties?: Readonly<Record<string, string>> | undefined
}

/** Digests of the access-control files, by the purpose of each file. */
export type FileDigests = Readonly<Record<string, string>>

/**
 * Makes the data of QueryPlanned.
 * @param at when the stages are scheduled, ISO UTC
 * @param files in force at the analysis
 */
export function plannedData(facts: PlanFacts, at: string, files: FileDigests = {}): Planned {
  const { views = [], updateType, outline, write, routed, properties, fingerprint, lineage } = facts
  return {
    queryType: facts.queryType,
    route: facts.plan?.route ?? 'coordinator',
    columns: facts.columns.map((column) => ({ ...column, lineage: [...column.lineage] })),
    tables: facts.tables,
    ...(views.length > 0 && { views }),
    stages: (facts.plan?.stages ?? []).map((stage) => ({
      id: stage.id,
      distribution: stage.distribution,
      inputs: [...stage.inputs],
      splits: [...stage.splits],
      scheduledAt: at,
      ...(stage.fragment
        ? {
            fragment: stage.fragment,
            fragmentDigest: hash('sha256', JSON.stringify(stage.fragment)),
          }
        : {}),
    })),
    ordered: facts.ordered ?? false,
    parseNanos: facts.parseNanos ?? 0,
    analysisNanos: facts.analysisNanos,
    planningNanos: facts.planningNanos,
    warnings: [...(facts.warnings ?? [])],
    executionStartedAt: at,
    ...(updateType === undefined ? {} : { updateType }),
    ...(outline === undefined ? {} : { outline }),
    ...(write === undefined ? {} : { write }),
    ...(routed === undefined ? {} : { routed }),
    ...(properties === undefined ? {} : { sessionProperties: { ...properties } }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(lineage === undefined ? {} : { lineage }),
    ...(Object.keys(files).length === 0 ? {} : { files }),
  }
}

/** A plan with more sources than this has no lineage: a thousand columns may each have a thousand sources. */
const MOST_SOURCES = 10_000

/** The lineage to record for rows that are written. */
export function writtenLineage(lineage: Lineage, columns: readonly Pick<ResultColumn, 'name'>[]): Planned['lineage'] {
  return recordedLineage(lineage, columns, () => true)
}

/** The lineage to record for a result, whose columns name their plain sources themselves. */
export function resultLineage(lineage: Lineage, columns: readonly Pick<ResultColumn, 'name'>[]): Planned['lineage'] {
  const asItIs = ({ direct, indirect, masked }: LineageSource): boolean =>
    direct === 'IDENTITY' && indirect.length === 0 && !masked
  return recordedLineage(lineage, columns, (sources) => !sources.every(asItIs))
}

function recordedLineage(
  { columns: of, rows }: Lineage,
  columns: readonly Pick<ResultColumn, 'name'>[],
  isNamed: (sources: readonly LineageSource[]) => boolean,
): Planned['lineage'] {
  if (of.reduce((sum, sources) => sum + sources.length, rows.length) > MOST_SOURCES) return undefined
  const named = of.flatMap((sources, position) =>
    isNamed(sources) ? [{ position, name: columns[position]!.name, sources: sources.map(recordedSource) }] : [],
  )
  return named.length + rows.length === 0 ? undefined : { columns: named, rows: rows.map(recordedSource) }
}

function recordedSource({ source, direct, indirect, masked }: LineageSource) {
  return { source, ...(direct && { direct }), indirect: [...indirect], ...(masked && { masked }) }
}

/**
 * Checks the size of a plan, which becomes one event and is sent to a worker: neither may grow without bounds.
 * @throws EngineError QUERY_EXCEEDED_COMPILER_LIMIT when the statement is too long once it is rendered,
 * EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY when it reads too many files
 * @returns its size as text, bytes
 */
export function checkPlanSize(plan: Planned, maxBytes: number): number {
  const bytes = jsonBytes(plan)
  if (bytes <= maxBytes) return bytes
  const splits = plan.stages.flatMap((stage) => stage.splits)
  const ofSplits = jsonBytes(splits)
  if (ofSplits > bytes / 2)
    throw new EngineError(
      'EXCEEDED_TASK_DESCRIPTOR_STORAGE_CAPACITY',
      `The list of the ${splits.length} files that the statement reads takes ${ofSplits} bytes; ` +
        `the plan of a statement may take ${maxBytes}: read fewer files, or make them larger`,
    )
  throw new EngineError(
    'QUERY_EXCEEDED_COMPILER_LIMIT',
    `The plan of the statement takes ${bytes} bytes of at most ${maxBytes}: make the statement shorter`,
  )
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** Replaces the analysis time with separate times for parsing and analysis; rendering counts as planning. */
export function withTimes(facts: PlanFacts, times: FrontEndTimes | undefined): PlanFacts {
  if (!times) return facts
  const parseNanos = Math.round(times.parseMs * 1e6)
  const renderNanos = Math.round(times.renderMs * 1e6)
  return {
    ...facts,
    parseNanos,
    analysisNanos: Math.max(0, facts.analysisNanos - parseNanos - renderNanos),
    planningNanos: facts.planningNanos + renderNanos,
  }
}

/** The plan that an event records; undefined for a statement without stages. */
export function recordedPlan({ queryType, route, stages }: Planned): QueryPlan | undefined {
  const result = resultStage(stages)
  if (!result) return undefined
  return makePlan(route, stages.map(recordedStage), resultOf(queryType, result))
}

/** Where the rows of the statement go. No field says so: it follows from the statement. */
function resultOf(queryType: string, result: Planned['stages'][number]): 'client' | 'table' | 'none' {
  if ((result.fragment?.write ?? result.withheld?.target) !== undefined) return 'table'
  return queryType === 'EXPLAIN' && result.id !== ROOT_STAGE ? 'none' : 'client'
}

function recordedStage(stage: Planned['stages'][number]): Omit<Stage, 'output'> {
  const { id, distribution, inputs, splits, fragment, withheld } = stage
  return { id, distribution, inputs, splits, ...(fragment && { fragment }), ...(withheld && { withheld }) }
}
