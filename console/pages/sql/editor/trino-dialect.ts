import { SQLDialect } from '@codemirror/lang-sql'

/** Words of Trino's SQL that the editor colors and completes. */
export const KEYWORDS =
  'add all alter analyze and any array as asc at authorization between by call cascade case cast catalogs column columns comment commit constraint count create cross cube current current_date current_time current_timestamp current_user data date day deallocate define delete desc describe distinct drop else end escape except execute exists explain extract false fetch filter first following for format formatted from full functions grant group grouping groups having hour if ignore in inner insert intersect interval into is join json last lateral left like limit listagg localtime localtimestamp logical map match match_recognize matched materialized measures merge minute month natural next no not null nulls nullif offset on only or order ordinality outer over partition partitions path pattern per position preceding prepare properties range recursive refresh rename replace reset respect revoke right rollback rollup row rows schema schemas second select session set sets show some start stats table tables tablesample temporary text then time timestamp to trailing transaction trim true try_cast truncate type uescape unbounded union unnest update use user using values verbose view when where window with within without work write year zone'

const TYPES =
  'bigint boolean char date decimal double hyperloglog integer interval ipaddress json real row smallint time timestamp tinyint uuid varbinary varchar'

/** Trino's SQL: `"` quotes names, strings have no backslashes. */
export const trinoDialect = SQLDialect.define({ keywords: KEYWORDS, types: TYPES, identifierQuotes: '"' })
