/** Columns of a table, by name, in order; types as Trino writes them. */
export type SystemColumns = Readonly<Record<string, string>>

/** Columns that a statement may name but `SELECT *` leaves out, in Trino's order behind the others. */
export const hiddenInformationColumns: Readonly<Record<string, readonly string[]>> = {
  columns: ['comment', 'extra_info', 'column_comment'],
  tables: ['table_comment'],
}

/** The tables of `information_schema`, which every catalog has. */
export const informationSchemaTables = {
  applicable_roles: {
    grantee: 'varchar',
    grantee_type: 'varchar',
    role_name: 'varchar',
    is_grantable: 'varchar',
  },
  columns: {
    table_catalog: 'varchar',
    table_schema: 'varchar',
    table_name: 'varchar',
    column_name: 'varchar',
    ordinal_position: 'bigint',
    column_default: 'varchar',
    is_nullable: 'varchar',
    data_type: 'varchar',
    comment: 'varchar',
    extra_info: 'varchar',
    column_comment: 'varchar',
  },
  enabled_roles: {
    role_name: 'varchar',
  },
  roles: {
    role_name: 'varchar',
  },
  schemata: {
    catalog_name: 'varchar',
    schema_name: 'varchar',
  },
  table_privileges: {
    grantor: 'varchar',
    grantor_type: 'varchar',
    grantee: 'varchar',
    grantee_type: 'varchar',
    table_catalog: 'varchar',
    table_schema: 'varchar',
    table_name: 'varchar',
    privilege_type: 'varchar',
    is_grantable: 'varchar',
    with_hierarchy: 'varchar',
  },
  tables: {
    table_catalog: 'varchar',
    table_schema: 'varchar',
    table_name: 'varchar',
    table_type: 'varchar',
    table_comment: 'varchar',
  },
  views: {
    table_catalog: 'varchar',
    table_schema: 'varchar',
    table_name: 'varchar',
    view_definition: 'varchar',
  },
} as const satisfies Record<string, SystemColumns>
