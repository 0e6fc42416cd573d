import { describe, expect, it } from 'vitest'
import { serverOfFile } from '../support/server-of-file.ts'
import { run, trinoHeaders, type StatementJson } from '../support/statement-client.ts'

const server = serverOfFile('error')
const headers = { ...trinoHeaders, 'x-trino-catalog': 'memory', 'x-trino-schema': 'default' }

/** The rows of a query, the update type of any other statement, or the name and message of the error. */
async function answer(sql: string): Promise<unknown> {
  const { rows, error, last } = await run(server.url, sql, headers)
  if (error) return `${error.errorName}: ${error.message}`
  return (last.json as StatementJson).updateType ?? rows
}

const REFUSED: readonly (readonly [sql: string, error: string])[] = [
  ["FOR TIMESTAMP AS OF '2022-01-01'", 'TYPE_MISMATCH: line 1:17: Type varchar(10) invalid. Temporal pointers must be of type Timestamp, Timestamp with Time Zone, or Date.'], // prettier-ignore
  ['FOR TIMESTAMP AS OF NULL', 'INVALID_ARGUMENTS: line 1:17: Pointer value cannot be NULL'],
  ['FOR VERSION AS OF CAST(NULL AS varchar)', 'INVALID_ARGUMENTS: line 1:17: Pointer value cannot be NULL'],
  ["FOR TIMESTAMP AS OF DATE '2999-01-01'", "INVALID_ARGUMENTS: line 1:17: Pointer value '2999-01-01' is not in the past"], // prettier-ignore
  ["FOR TIMESTAMP AS OF TIMESTAMP '2999-01-01 01:02:03.1200 Asia/Kathmandu'", "INVALID_ARGUMENTS: line 1:17: Pointer value '2999-01-01 01:02:03.1200 Asia/Kathmandu' is not in the past"], // prettier-ignore
  ["FOR TIMESTAMP AS OF TIMESTAMP '1970-01-01 00:00:00 UTC'", 'INVALID_ARGUMENTS: No version history table default.t at or before 1970-01-01T00:00:00Z'], // prettier-ignore
  ["FOR TIMESTAMP AS OF DATE '2020-01-01' + INTERVAL '300000' YEAR", 'INVALID_ARGUMENTS: line 1:55: The date is out of range'], // prettier-ignore
  ["FOR TIMESTAMP AS OF now() + INTERVAL '2147483647' MONTH", 'INVALID_ARGUMENTS: line 1:43: The date is out of range'], // prettier-ignore
  ["FOR TIMESTAMP AS OF DATE '290000-01-01'", "INVALID_ARGUMENTS: line 1:17: Pointer value 'day 105200797' is not in the past"], // prettier-ignore
  ['FOR VERSION AS OF 99', 'INVALID_ARGUMENTS: Iceberg snapshot ID does not exists: 99'],
  ["FOR VERSION AS OF 'main'", 'INVALID_ARGUMENTS: Cannot find snapshot with reference name: main'],
  ["FOR VERSION AS OF DATE '2022-01-01'", 'NOT_SUPPORTED: Unsupported type for table version: date'],
  ['FOR VERSION AS OF CAST(random() AS bigint)', 'EXPRESSION_NOT_CONSTANT: line 1:35: The version of a table must be a constant: literals, casts, now() and intervals'], // prettier-ignore
]

const EXPIRE = "catalog 'memory' table procedure 'EXPIRE_SNAPSHOTS' property 'retention_threshold'"
const PROCEDURES: readonly (readonly [procedure: string, error: string])[] = [
  ["expire_snapshots(retention_threshold => '33s')", 'INVALID_PROCEDURE_ARGUMENT: Retention specified (33.00s) is shorter than the minimum retention configured in the system (7.00d). Minimum retention can be changed with expireSnapshotsMinRetention in the file of the catalog'], // prettier-ignore
  ["expire_snapshots(retention_threshold => '33')", `INVALID_PROCEDURE_ARGUMENT: Unable to set ${EXPIRE} to ['33']: duration is not a valid data duration string: 33`], // prettier-ignore
  ['expire_snapshots(retention_threshold => 7)', `INVALID_PROCEDURE_ARGUMENT: Invalid value for ${EXPIRE}: Cannot convert [7] to varchar`], // prettier-ignore
  ['expire_snapshots(retention_threshold => NULL)', `INVALID_PROCEDURE_ARGUMENT: Invalid null value for ${EXPIRE} from [null]`], // prettier-ignore
  ['expire_snapshots(retain_last => 5)', "INVALID_PROCEDURE_ARGUMENT: Catalog 'memory' table procedure 'EXPIRE_SNAPSHOTS' property 'retain_last' does not exist"], // prettier-ignore
  ["expire_snapshots('7d', retention_threshold => '7d')", 'INVALID_ARGUMENTS: line 1:1: Named and positional arguments cannot be mixed'], // prettier-ignore
  ["expire_snapshots('7d', '8d')", 'INVALID_ARGUMENTS: line 1:1: Too many positional arguments'],
  ["expire_snapshots(retention_threshold => '7d', retention_threshold => '7d')", 'DUPLICATE_PROPERTY: line 1:1: Duplicate named argument: retention_threshold'], // prettier-ignore
  ["expire_snapshots('7d') WHERE a = 1", 'NOT_SUPPORTED: WHERE not supported for procedure EXPIRE_SNAPSHOTS'],
  ["optimize(file_size_threshold => '33s')", "INVALID_PROCEDURE_ARGUMENT: Unable to set catalog 'memory' table procedure 'OPTIMIZE' property 'file_size_threshold' to ['33s']: size is not a valid data size string: 33s"], // prettier-ignore
  ["optimize(retention_threshold => '7d')", "INVALID_PROCEDURE_ARGUMENT: Catalog 'memory' table procedure 'OPTIMIZE' property 'retention_threshold' does not exist"], // prettier-ignore
  ['remove_orphan_files', 'PROCEDURE_NOT_FOUND: Table procedure not registered: REMOVE_ORPHAN_FILES'],
]

describe('Versions of a table', () => {
  it('are read by number and by time, with the columns that the table had then', { timeout: 240_000 }, async () => {
    await answer('CREATE TABLE t (a bigint, b varchar)')
    await answer("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    expect(await answer("UPDATE t SET b = b || '2' WHERE a = 2")).toBe('UPDATE')
    const [[between]] = (await answer('SELECT CAST(now() AS varchar)')) as [[string]]
    await answer('DELETE FROM t WHERE a = 1')
    await answer('ALTER TABLE t DROP COLUMN b')
    expect(await answer('SELECT * FROM t')).toEqual([[2]])
    expect(await answer('SELECT * FROM t FOR VERSION AS OF 1')).toEqual([])
    expect(await answer('SELECT * FROM t FOR VERSION AS OF 2 ORDER BY 1')).toEqual([[1, 'x'], [2, 'y']]) // prettier-ignore
    expect(await answer(`SELECT b FROM t FOR TIMESTAMP AS OF TIMESTAMP '${between}' AS u WHERE u.a = 2`)).toEqual([['y2']]) // prettier-ignore
    expect(await answer("EXECUTE IMMEDIATE 'SELECT count(*) FROM t FOR VERSION AS OF ?' USING BIGINT '3'")).toEqual([[2]]) // prettier-ignore
    expect(
      await answer('SELECT o.a, o.b, n.a FROM t FOR VERSION AS OF 2 o LEFT JOIN t n ON n.a = o.a ORDER BY 1'),
    ).toEqual([[1, 'x', null], [2, 'y', 2]]) // prettier-ignore
    expect(await answer('SELECT snapshot_id, parent_id, is_current_ancestor FROM "t$history" ORDER BY 1')).toEqual(
      [1, 2, 3, 4, 5].map((id) => [id, id === 1 ? null : id - 1, true]),
    )
    expect(await answer('SELECT operation, summary[\'total-records\'] FROM "t$snapshots" ORDER BY snapshot_id')).toEqual([['append', '0'], ['append', '2'], ['overwrite', '2'], ['delete', '1'], ['replace', '1']]) // prettier-ignore
    expect(await answer('SELECT count(*) FROM "t$snapshots" s JOIN system.runtime.queries q ON q.query_id = s.summary[\'trino_query_id\']')).toEqual([[5]]) // prettier-ignore
    expect(await answer('DESCRIBE "t$history"')).toHaveLength(4)
    expect(await answer('EXPLAIN SELECT * FROM t FOR VERSION AS OF 2')).toEqual([
      [expect.stringContaining('table = memory:default:t@2')],
    ])
  })

  it('can be read by a view that names a version, and by CREATE TABLE AS', { timeout: 240_000 }, async () => {
    await answer('CREATE VIEW first AS SELECT * FROM t FOR VERSION AS OF 2')
    expect(await answer('SELECT count(*), max(b) FROM first')).toEqual([[2, 'y']])
    expect(await answer('CREATE TABLE copy AS SELECT * FROM t FOR VERSION AS OF 3')).toBe('CREATE TABLE')
    expect(await answer('SELECT b FROM copy ORDER BY 1')).toEqual([['x'], ['y2']])
    // As in Trino, a view and a name of WITH have no versions: the clause has no effect.
    expect(await answer('SELECT count(*) FROM first FOR VERSION AS OF 99')).toEqual([[2]])
    expect(await answer('WITH w AS (SELECT 1 x) SELECT * FROM w FOR VERSION AS OF 99')).toEqual([[1]])
  })

  it('are recorded with the statement that reads them', { timeout: 240_000 }, async () => {
    const { last } = await run(server.url, 'SELECT a FROM t FOR VERSION AS OF 2', headers)
    const events = await fetch(`${server.url}/v1/query/${last.json.id}/events`).then((response) => response.text())
    expect(events).toMatch(/"table":"t"[^}]*"snapshot":"[^"]+ 2"/)
  })

  it('are ended by EXECUTE expire_snapshots, with the checks of Trino', { timeout: 240_000 }, async () => {
    const last = async () => (await answer('SELECT max(snapshot_id) FROM "t$history"')) as [[number]]
    const [[before]] = await last()
    for (const given of ['', " (retention_threshold => '7d')", "('168h')"])
      expect(await answer(`ALTER TABLE t EXECUTE expire_snapshots${given}`), given).toBe('ALTER TABLE EXECUTE')
    // The versions of today are younger than a week, and each statement makes one version.
    expect(await last()).toEqual([[before + 3]])
    expect(await answer('SELECT count(*) FROM t FOR VERSION AS OF 2')).toEqual([[2]])
    for (const [procedure, error] of PROCEDURES)
      expect(await answer(`ALTER TABLE t EXECUTE ${procedure}`), procedure).toBe(error)
    const given = `EXECUTE IMMEDIATE 'ALTER TABLE t EXECUTE expire_snapshots(?)' USING`
    expect(await answer(`${given} '33s'`)).toBe(PROCEDURES[0]![1])
    expect(await answer(`${given} '3' || 's'`)).toContain('NOT_SUPPORTED: A table procedure takes only literals')
    expect(await last()).toEqual([[before + 3]])
    const { rows, last: end } = await run(server.url, 'ALTER TABLE t EXECUTE EXPIRE_SNAPSHOTS', headers)
    expect([rows, end.json.columns]).toMatchObject([[], [{ name: 'rows', type: 'bigint' }]])
    expect((end.json as StatementJson).updateCount).toBeUndefined()
    const events = await fetch(`${server.url}/v1/query/${end.json.id}/events`).then((response) => response.text())
    expect(events).toMatch(/"operation":"expireVersions"/)
    expect(await answer("ALTER TABLE t EXECUTE optimize(file_size_threshold => '1kB')")).toBe('ALTER TABLE EXECUTE')
  })

  it('are refused in the words of Trino where there are none', { timeout: 240_000 }, async () => {
    for (const [period, error] of REFUSED) expect(await answer(`SELECT * FROM t ${period}`), period).toBe(error)
    const other = 'NOT_SUPPORTED: line 1:32: This connector does not support versioned tables'
    expect(await answer('SELECT * FROM tpch.tiny.nation FOR VERSION AS OF 1')).toBe(other)
    expect(await answer('SELECT * FROM "t$history" FOR VERSION AS OF 1')).toContain('NOT_SUPPORTED')
    expect(await answer('SELECT * FROM information_schema.tables FOR VERSION AS OF 1')).toContain('NOT_SUPPORTED')
    expect(await answer('SELECT * FROM "nation$history"')).toContain('TABLE_NOT_FOUND')
  })
})
