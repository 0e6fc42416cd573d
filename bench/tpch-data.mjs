// TPC-H data as a lake: one folder a table, Parquet, columns named as in Trino's tpch catalog, decimals as they are.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'

const CACHE = join(homedir(), '.cache', 'quipu')
const PREFIXES = {
  customer: 'c_',
  lineitem: 'l_',
  nation: 'n_',
  orders: 'o_',
  part: 'p_',
  partsupp: 'ps_',
  region: 'r_',
  supplier: 's_',
}
export const tpchTables = Object.keys(PREFIXES)

/** The folder of a lake with the schema `tpch` at a scale; made once and kept. Needs Python with venv. */
export async function tpchLake(scale) {
  const folder = join(CACHE, 'tpch', `lake-${scale}`)
  if (existsSync(folder)) return folder
  const raw = join(CACHE, 'tpch', `raw-${scale}-${process.pid}`)
  const making = join(CACHE, 'tpch', `making-${scale}-${process.pid}`)
  const venv = join(CACHE, 'tpchgen')
  mkdirSync(raw, { recursive: true })
  if (!existsSync(join(venv, 'bin', 'tpchgen-cli'))) {
    execFileSync('python3', ['-m', 'venv', venv])
    execFileSync(join(venv, 'bin', 'pip'), ['install', '-q', 'tpchgen-cli==4.0.0'])
  }
  execFileSync(join(venv, 'bin', 'tpchgen-cli'), [
    'parquet',
    '--scale-factor',
    String(scale),
    '--output-dir',
    raw,
    '--overwrite',
  ])
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  for (const [table, prefix] of Object.entries(PREFIXES)) {
    const target = join(making, 'tpch', table)
    mkdirSync(target, { recursive: true })
    const source = `read_parquet('${join(raw, `${table}.parquet`)}')`
    const described = await (await connection.run(`DESCRIBE SELECT * FROM ${source}`)).getRowObjects()
    const columns = described.map(({ column_name: name }) => `"${name}" AS "${String(name).slice(prefix.length)}"`)
    await connection.run(
      `COPY (SELECT ${columns.join(', ')} FROM ${source}) TO '${join(target, 'data.parquet')}' (FORMAT parquet)`,
    )
  }
  connection.closeSync()
  rmSync(raw, { recursive: true })
  if (!existsSync(folder)) renameSync(making, folder)
  return folder
}

/** Views of plain DuckDB over the same files. */
export function tpchViews(folder) {
  return tpchTables.map(
    (table) => `CREATE VIEW ${table} AS SELECT * FROM read_parquet('${join(folder, 'tpch', table, '*.parquet')}')`,
  )
}
