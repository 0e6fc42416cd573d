// usage: node write-manifest.mjs <folder> <scale>: reads the footers of <folder>/*.parquet, writes manifest.json beside them.
import { DuckDBInstance } from '@duckdb/node-api'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [folder, scale] = process.argv.slice(2)
const connection = await (await DuckDBInstance.create(':memory:')).connect()
const tables = {}
for (const file of readdirSync(folder).sort()) {
  if (!file.endsWith('.parquet')) continue
  const table = file.replace(/\.parquet$/, '')
  const result = await connection.runAndReadAll(
    `SELECT row_group_id, row_group_num_rows AS rows, path_in_schema AS name, total_compressed_size AS bytes
     FROM parquet_metadata('${join(folder, file).replaceAll("'", "''")}') ORDER BY row_group_id, column_id`,
  )
  const rowGroups = []
  for (const { row_group_id, rows, name, bytes } of result.getRowObjects()) {
    const group = (rowGroups[Number(row_group_id)] ??= { rows: Number(rows), columnBytes: {} })
    group.columnBytes[name.replace(/^[a-z]+_/, '')] = Number(bytes)
  }
  tables[table] = [{ file, size: statSync(join(folder, file)).size, rowGroups }]
}
writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify({ scale: Number(scale), tables })}\n`)
