import { facet } from './open-lineage-facets.ts'
import type { QueryFacts } from './query-facts.ts'

interface Dataset {
  readonly namespace: string
  /** `catalog.schema.table`, the form in which others name tables of Trino. */
  readonly name: string
  readonly facets: Readonly<Record<string, object>>
}
export type InputDataset = Dataset
export interface OutputDataset extends Dataset {
  readonly outputFacets?: Readonly<Record<string, object>>
}

export interface Datasets {
  readonly inputs: readonly InputDataset[]
  readonly outputs: readonly OutputDataset[]
}

type Planned = NonNullable<QueryFacts['planned']>
type Prepared = NonNullable<QueryFacts['prepared']>
type Source = NonNullable<Planned['lineage']>['rows'][number]

/** The tables that a statement reads, once it is planned, and those that it changed, once it has finished. */
export function datasetsOf(facts: QueryFacts, namespace: string, eventType: string): Datasets {
  const { planned } = facts
  if (eventType === 'START' || planned === undefined) return { inputs: [], outputs: [] }
  const fields = fieldsBySource(planned)
  const inputs = new Map<string, InputDataset>()
  for (const { catalog, schema, table, columns, mode, snapshot } of planned.tables)
    if (mode === 'READ') {
      const name = nameOf(catalog, schema, table)
      const before = inputs.get(name)?.facets
      inputs.set(name, {
        namespace,
        name,
        facets: {
          ...before,
          ...schemaFacet(columns.map((column) => ({ name: column }))),
          ...(snapshot !== undefined && { version: facet('DatasetVersionDatasetFacet', { datasetVersion: snapshot }) }),
        },
      })
    }
  // CREATE VIEW reads no tables, but the view is made of tables.
  for (const { dataset } of fields.values())
    if (!inputs.has(dataset)) inputs.set(dataset, { namespace, name: dataset, facets: {} })
  return { inputs: [...inputs.values()], outputs: eventType === 'COMPLETE' ? outputsOf(facts, namespace, fields) : [] }
}

function nameOf(catalog: string, schema: string, table: string): string {
  return `${catalog}.${schema}.${table}`
}

interface Field {
  readonly dataset: string
  readonly field: string
}

/** Columns that the lineage mentions, by their text there: the parts of a name may contain dots. */
function fieldsBySource({ tables, lineage }: Planned): ReadonlyMap<string, Field> {
  const known = new Map<string, Field>()
  for (const { catalog, schema, table, columns, mode } of tables)
    if (mode === 'READ') {
      const dataset = nameOf(catalog, schema, table)
      for (const field of columns) known.set(`${dataset}.${field}`, { dataset, field })
    }
  const named = new Map<string, Field>()
  for (const { source } of [...(lineage?.rows ?? []), ...(lineage?.columns ?? []).flatMap(({ sources }) => sources)])
    named.set(source, known.get(source) ?? cut(source))
  return named
}

function cut(source: string): Field {
  const dot = source.lastIndexOf('.')
  return { dataset: source.slice(0, dot), field: source.slice(dot + 1) }
}

/** The changed tables. None if nothing changed, as with IF NOT EXISTS and an existing table. */
function outputsOf(
  { planned, prepared, committed }: QueryFacts,
  namespace: string,
  fields: ReadonlyMap<string, Field>,
): readonly OutputDataset[] {
  if (prepared?.table === undefined || committed === undefined || committed.outcome === 'impossible') return []
  const lifecycle = LIFECYCLE[prepared.operation]
  const hasRows = planned?.queryType === 'INSERT'
  return [
    {
      namespace,
      name: nameOf(prepared.catalog, prepared.schema, prepared.table),
      facets: {
        ...schemaFacet(prepared.columns),
        ...columnLineage(planned?.lineage, namespace, fields),
        ...(lifecycle && {
          lifecycleStateChange: facet('LifecycleStateChangeDatasetFacet', { lifecycleStateChange: lifecycle }),
        }),
        ...(prepared.operation.endsWith('View') && {
          datasetType: facet('DatasetTypeDatasetFacet', {
            datasetType: 'VIEW',
            ...(prepared.operation.endsWith('MaterializedView') && { subType: 'MATERIALIZED' }),
          }),
        }),
        ...(committed.version !== undefined &&
          lifecycle !== 'DROP' && {
            version: facet('DatasetVersionDatasetFacet', { datasetVersion: String(committed.version) }),
          }),
      },
      ...(hasRows && { outputFacets: statistics(prepared) }),
    },
  ]
}

const LIFECYCLE: Readonly<Record<string, 'CREATE' | 'DROP' | 'OVERWRITE' | undefined>> = {
  createTable: 'CREATE',
  createView: 'CREATE',
  createMaterializedView: 'CREATE',
  refreshMaterializedView: 'OVERWRITE',
  dropTable: 'DROP',
  dropView: 'DROP',
  dropMaterializedView: 'DROP',
}

function schemaFacet(fields: readonly { readonly name: string; readonly type?: string }[]) {
  return fields.length > 0 && { schema: facet('SchemaDatasetFacet', { fields }) }
}

function statistics({ rows, bytes }: Prepared): Readonly<Record<string, object>> {
  return { outputStatistics: facet('OutputStatisticsOutputDatasetFacet', { rowCount: rows, size: bytes }) }
}

function columnLineage(lineage: Planned['lineage'], namespace: string, fields: ReadonlyMap<string, Field>) {
  if (lineage === undefined) return {}
  const inputField = ({ source, direct, indirect, masked }: Source) => {
    const { dataset, field } = fields.get(source)!
    const how = (type: 'DIRECT' | 'INDIRECT', subtype: string) => ({ type, subtype, masking: masked === true })
    return {
      namespace,
      name: dataset,
      field,
      transformations: [
        ...(direct === undefined ? [] : [how('DIRECT', direct)]),
        ...indirect.map((one) => how('INDIRECT', one)),
      ],
    }
  }
  return {
    columnLineage: facet('ColumnLineageDatasetFacet', {
      fields: Object.fromEntries(
        lineage.columns.map(({ name, sources }) => [name, { inputFields: sources.map(inputField) }]),
      ),
      dataset: lineage.rows.map(inputField),
    }),
  }
}
