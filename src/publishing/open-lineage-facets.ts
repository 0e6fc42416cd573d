import { version } from '../shared/version.ts'

export const OPEN_LINEAGE = 'https://openlineage.io/spec/2-0-2/OpenLineage.json'
export const PRODUCER = `urn:quipu:${version}`

/** The facets in use, with the version of the specification that defines their fields. */
const facetVersions = {
  ColumnLineageDatasetFacet: '1-2-0',
  DatasetTypeDatasetFacet: '1-0-1',
  DatasetVersionDatasetFacet: '1-0-1',
  ErrorMessageRunFacet: '1-0-1',
  ExternalQueryRunFacet: '1-0-2',
  JobTypeJobFacet: '2-0-4',
  LifecycleStateChangeDatasetFacet: '1-0-1',
  OutputStatisticsOutputDatasetFacet: '1-0-2',
  ProcessingEngineRunFacet: '1-1-1',
  SchemaDatasetFacet: '1-2-0',
  SQLJobFacet: '1-1-0',
  TagsRunFacet: '1-0-0',
} as const

/** Makes a facet: its fields, with those that the specification requires. */
export function facet(name: keyof typeof facetVersions, fields: object): object {
  return {
    _producer: PRODUCER,
    _schemaURL: `https://openlineage.io/spec/facets/${facetVersions[name]}/${name}.json#/$defs/${name}`,
    ...fields,
  }
}
