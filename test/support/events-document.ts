import { z } from 'zod'
import { clusterEventSchemas, clusterEventVersions } from '../../src/coordinator/clusters/events.ts'
import { isClusterEventType } from '../../src/coordinator/clusters/decode-event.ts'
import { nodeEventSchemas } from '../../src/coordinator/nodes/events.ts'
import * as query from '../../src/coordinator/query/stream/events.ts'
import { isSystemEventType } from '../../src/coordinator/system/decode-event.ts'
import { systemEventSchemas, systemEventVersions } from '../../src/coordinator/system/events.ts'
import { cloudEventType } from '../../src/events/envelope.ts'
import { fragmentSchema, outputColumnSchema, scanSchema, splitSchema } from '../../src/execution/api/fragment.ts'
import * as task from '../../src/execution/api/task.ts'

/** Parts that several events share, or that are too long for a row. */
const shapes = {
  Session: query.querySessionSchema,
  Column: query.resultColumnSchema,
  TableAccess: query.tableAccessSchema,
  PlannedStage: query.plannedStageSchema,
  Fragment: fragmentSchema,
  Scan: scanSchema,
  OutputColumn: outputColumnSchema,
  Split: splitSchema,
  PlanOutline: query.planOutlineSchema,
  StageTimes: query.stageTimesSchema,
  PublishedPage: query.publishedPageSchema,
  QueryTotals: query.queryTotalsSchema,
  TaskStats: task.taskStatsSchema,
  PipelineStats: task.pipelineStatsSchema,
  OperatorStats: task.operatorStatsSchema,
  DriverStats: task.driverStatsSchema,
  Failure: task.failureSchema,
  ErrorName: task.errorNameSchema,
  Warning: query.warningSchema,
  SessionChange: query.sessionChangeSchema,
  Routed: query.routedSchema,
} as const

const streams = [
  {
    title: 'Stream of a query',
    about: 'Its name is the query id. It also has the events of the stages and tasks of the query, in one total order.',
    events: query.queryEventSchemas,
  },
  {
    title: 'Stream of a node',
    about: '`node/{nodeId}`: a worker, as the writer sees it.',
    events: nodeEventSchemas,
  },
  {
    title: 'Stream of a cluster',
    about: '`cluster/{name}`: a cluster that answers delegated statements, as the coordinator that writes sees it.',
    events: clusterEventSchemas,
  },
  { title: 'Stream `system`', about: 'Events about the whole system.', events: systemEventSchemas },
] as const

const PREFACE = `# Events

Every change of a query, stage, task, node or cluster is one of these events in an append-only log. [The event log](event-log.md)
explains which process may write it and when an event counts. \`npm run docs:events\` makes this page from the schemas in
\`src/coordinator/{query/stream,nodes,clusters,system}/events.ts\`; \`test/events-document.test.ts\` fails if the page is out of date.

Events are stored and delivered as CloudEvents 1.0 (\`GET /v1/query/{queryId}/events\`, \`GET /v1/events\`, \`quipu tail --json\`).
Besides its \`data\`, each event has:

| field | meaning |
|---|---|
| \`id\`, \`subject\` | stream and sequence, \`20261121_192137_00003_00001/2\`; the stream |
| \`type\` | the CloudEvents type of the tables below, with the version of its data |
| \`time\` | ISO 8601 UTC; never decreases within the log |
| \`sequence\` | 1, 2, 3 … within the stream, without gaps |
| \`epoch\` | epoch of the coordinator that wrote the event |
| \`traceparent\` | W3C trace context of the operation that made the event |
| \`digest\` | SHA-256 of the data as the log has it: with the log in Kafka, encrypted |
| \`prevhash\`, \`hash\` | hash of the previous event of the stream; SHA-256(prevhash ‖ header ‖ digest) |

Durations are integers in nanoseconds (\`…Nanos\`), sizes in bytes (\`…Bytes\`), times ISO 8601 UTC. An unknown value is absent,
never null. A stored event is never edited. Readers ignore unknown fields, so fields may be added.

Data that only a successor needs is never shown to users: the fragments of a plan, and the files that its splits read. Secrets are
removed from an event before it is stored ([observability](observability.md#secrets)). A plan of a statement with secrets has digests
of its fragments instead of the fragments.
`

interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly enum?: readonly string[]
  readonly const?: string
  readonly items?: JsonSchema
  readonly oneOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: JsonSchema | boolean
}

/** Makes the text of `docs/events.md`. */
export function eventsDocument(): string {
  const schemas = jsonSchemas()
  const parts = streams.map(({ title, about, events }) => {
    const names = Object.keys(events)
    return [
      `## ${title}\n`,
      `${about}\n`,
      '| event | CloudEvents type | when |',
      '|---|---|---|',
      ...names.map((name) => `| [${name}](#${name.toLowerCase()}) | \`${cloudType(name)}\` | ${when(name, schemas)} |`),
      '',
      ...names.map((name) => `### ${name}\n\n${fields(schemas[name]!)}\n`),
    ].join('\n')
  })
  const shared = Object.keys(shapes).map((name) => `### ${name}\n\n${fields(schemas[name]!)}\n`)
  return [PREFACE, ...parts, '## Shapes\n', ...shared].join('\n')
}

function jsonSchemas(): Readonly<Record<string, JsonSchema>> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(shapes)) registry.add(schema, { id })
  for (const { events } of streams) for (const [id, schema] of Object.entries(events)) registry.add(schema, { id })
  return z.toJSONSchema(registry, { uri: (id) => id, io: 'input' }).schemas as Record<string, JsonSchema>
}

function cloudType(name: string): string {
  if (query.isQueryEventType(name)) return cloudEventType(name, query.queryEventVersions[name])
  if (isClusterEventType(name)) return cloudEventType(name, clusterEventVersions[name])
  return cloudEventType(name, isSystemEventType(name) ? systemEventVersions[name] : 1)
}

function when(name: string, schemas: Readonly<Record<string, JsonSchema>>): string {
  const description = schemas[name]!.description
  if (description === undefined) throw new Error(`${name} has no description`)
  return description
}

function fields(schema: JsonSchema): string {
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ')
  if (schema.oneOf) return schema.oneOf.map((one) => `${one.description}:\n\n${fields(one)}`).join('\n\n')
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {}).map(
    ([name, field]) =>
      `| \`${name}\` | ${typeText(field)}${required.has(name) ? '' : ', optional'} | ${field.description ?? ''} |`,
  )
  return rows.length === 0 ? 'Nothing.' : ['| field | type | |', '|---|---|---|', ...rows].join('\n')
}

function typeText(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return `[${schema.$ref}](#${schema.$ref.toLowerCase()})`
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(' / ')
  if (schema.const !== undefined) return `\`${schema.const}\``
  if (schema.format === 'date-time') return 'time'
  switch (schema.type) {
    case 'array':
      return schema.items ? `list of ${typeText(schema.items)}` : 'list'
    case 'object':
      if (schema.properties) {
        const required = new Set(schema.required)
        const parts = Object.entries(schema.properties).map(
          ([name, field]) => `${name}${required.has(name) ? '' : '?'}: ${typeText(field)}`,
        )
        return `{ ${parts.join(', ')} }`
      }
      return typeof schema.additionalProperties === 'object' && Object.keys(schema.additionalProperties).length > 0
        ? `map of ${typeText(schema.additionalProperties)}`
        : 'object'
    case undefined:
      return 'any JSON'
    default:
      return schema.type
  }
}
