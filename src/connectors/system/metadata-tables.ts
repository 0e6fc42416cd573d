import type { SystemColumns } from './information-schema-tables.ts'

/** Schema `metadata` of the catalog `system`. */
export const metadataTables = {
  analyze_properties: {
    catalog_name: 'varchar',
    property_name: 'varchar',
    default_value: 'varchar',
    type: 'varchar',
    description: 'varchar',
  },
  catalogs: {
    catalog_name: 'varchar',
    connector_id: 'varchar',
    connector_name: 'varchar',
  },
  column_properties: {
    catalog_name: 'varchar',
    property_name: 'varchar',
    default_value: 'varchar',
    type: 'varchar',
    description: 'varchar',
  },
  materialized_view_properties: {
    catalog_name: 'varchar',
    property_name: 'varchar',
    default_value: 'varchar',
    type: 'varchar',
    description: 'varchar',
  },
  materialized_views: {
    catalog_name: 'varchar',
    schema_name: 'varchar',
    name: 'varchar',
    storage_catalog: 'varchar',
    storage_schema: 'varchar',
    storage_table: 'varchar',
    freshness: 'varchar',
    last_fresh_time: 'timestamp(9) with time zone',
    comment: 'varchar',
    definition: 'varchar',
  },
  schema_properties: {
    catalog_name: 'varchar',
    property_name: 'varchar',
    default_value: 'varchar',
    type: 'varchar',
    description: 'varchar',
  },
  table_comments: {
    catalog_name: 'varchar',
    schema_name: 'varchar',
    table_name: 'varchar',
    comment: 'varchar',
  },
  table_properties: {
    catalog_name: 'varchar',
    property_name: 'varchar',
    default_value: 'varchar',
    type: 'varchar',
    description: 'varchar',
  },
  /** Not in Trino: what the catalogs know about the sizes of their tables. */
  table_sizes: {
    catalog_name: 'varchar',
    schema_name: 'varchar',
    table_name: 'varchar',
    row_count: 'double',
    bytes: 'double',
  },
} as const satisfies Record<string, SystemColumns>
