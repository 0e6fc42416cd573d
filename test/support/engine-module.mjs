// A module of an engine (`EngineModule`) for tests of engines. It has no functions. Its vocabulary also has names that the
// vocabulary of the front end lacks, so that tests reach the walls behind the statement wall.
export async function register() {}

export const vocabulary = {
  functions: new Set(
    (
      'abs concat count hash ilike json_array len length levenshtein max min random range repeat sha256 sum generate_series ' +
      'typeof error struct_pack coalesce row_number over list'
    ).split(' '),
  ),
  tableFunctions: new Set(
    (
      'range generate_series read_csv read_text read_parquet duckdb_settings duckdb_tables duckdb_databases enable_logging ' +
      'enable_profiling'
    ).split(' '),
  ),
  scripted: new Set(),
  macros: new Map(),
}
