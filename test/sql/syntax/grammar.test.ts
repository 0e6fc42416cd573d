import { describe, expect, it } from 'vitest'
import {
  parseExpressionText,
  parseStatement,
  parseTypeSyntax,
  parseWithParameters,
} from '../../../src/sql/syntax/parser.ts'
import { printExpression, printStatement, printTypeSyntax } from '../../../src/sql/syntax/printer.ts'
import { withoutSpans } from '../../support/sql/without-spans.ts'

const statements: Record<string, readonly string[]> = {
  Query: [
    'TABLE a.b.c',
    'VALUES 1, (2, 3), ROW (4)',
    '(SELECT 1) UNION ALL (SELECT 2) INTERSECT SELECT 3 EXCEPT DISTINCT (VALUES 4) ORDER BY 1 OFFSET 2 ROWS LIMIT 5',
    'SELECT 1 UNION CORRESPONDING BY (a, b) SELECT 2 UNION ALL CORRESPONDING SELECT 3',
    'SELECT 1 OFFSET ? FETCH NEXT ? ROWS WITH TIES',
    'SELECT 1 FETCH FIRST ROW ONLY',
    'SELECT 1 LIMIT ALL',
    'WITH RECURSIVE t(n) AS (VALUES 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t',
    'WITH FUNCTION f(a bigint) RETURNS bigint RETURN a + 1 SELECT f(1)',
    'WITH SESSION a.b = 1, c = true WITH t AS (SELECT 1) TABLE t',
    'WITH session AS (SELECT 1), function (a) AS (SELECT 2) SELECT * FROM session, function',
    "SELECT ALL a, t.*, (r).* AS (x, y), all, 'x' limit, U&'d\\0061t\\+000061', U&'d!0061' UESCAPE '!' FROM t",
    'SELECT DISTINCT a FROM ((SELECT 1) UNION (SELECT 2)) AS t (a), LATERAL (SELECT t.a), UNNEST(x, y) WITH ORDINALITY u',
    'SELECT * FROM (a CROSS JOIN b) JOIN c USING (x, y) NATURAL FULL OUTER JOIN d LEFT JOIN e RIGHT JOIN f ON 1=1 ON 2=2',
    "SELECT * FROM a FOR VERSION AS OF 5 x TABLESAMPLE BERNOULLI (10), b FOR TIMESTAMP AS OF TIMESTAMP '2020-01-01' ",
    'SELECT * FROM t limit, u offset, v AS fetch, w tablesample, x AS match_recognize (a, b)',
    'SELECT * FROM (t AS a) AS b, (t TABLESAMPLE SYSTEM (5)) TABLESAMPLE SYSTEM (10)',
    'SELECT a FROM t WHERE b GROUP BY ALL a, (), (a, b), (a), (a + 1) * 2, ROLLUP (a, (b, c)), CUBE (), GROUPING SETS ((), a, (a, b)) HAVING c',
    'SELECT a, count(*) FROM t GROUP BY AUTO',
    'SELECT auto FROM t GROUP BY auto + 1, (auto)',
    'SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY a), v AS (w ORDER BY b DESC NULLS FIRST)',
    `SELECT rank() OVER (PARTITION BY a, b ORDER BY c ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
       sum(x) OVER (RANGE INTERVAL '1' DAY PRECEDING), sum(x) OVER (GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING),
       lag(x) IGNORE NULLS OVER (rows), first_value(x) FILTER (WHERE y) RESPECT NULLS OVER (ORDER BY 1 ROWS CURRENT ROW)`,
    `SELECT classy OVER w, last FROM t WINDOW w AS (ORDER BY a MEASURES CLASSIFIER() AS classy, RUNNING LAST(A.x) AS last
       ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING AFTER MATCH SKIP TO NEXT ROW SEEK PATTERN (A B+) SUBSET U = (A, B)
       DEFINE A AS true, B AS x > PREV(x))`,
    `SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a ORDER BY b MEASURES FINAL sum(A.x) AS s, count(A.*) AS c, count(*) AS d
       ALL ROWS PER MATCH OMIT EMPTY MATCHES AFTER MATCH SKIP TO FIRST A INITIAL
       PATTERN (^ A* (B | C)+? {- D -} () PERMUTE(A, B | C) E{2} F{1,} G{,3}? H{2,5} (A | B C){,} $)
       SUBSET U = (A, B) DEFINE A AS x > 1) AS m (p, q)`,
    'SELECT * FROM t MATCH_RECOGNIZE (AFTER MATCH SKIP TO LAST B PATTERN (A) DEFINE A AS true), u MATCH_RECOGNIZE (ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP PAST LAST ROW PATTERN (A??) DEFINE A AS true)',
    `SELECT * FROM TABLE(a.f(1, x => 2, TABLE(t) AS u (a) PARTITION BY (a, b) KEEP WHEN EMPTY ORDER BY (c DESC),
       i => TABLE(SELECT 1) PARTITION BY a PRUNE WHEN EMPTY ORDER BY b, d => DESCRIPTOR(a, b bigint), CAST(NULL AS DESCRIPTOR),
       TABLE(v) PARTITION BY () COPARTITION (t, u), (a, b, c)))`,
    `SELECT * FROM JSON_TABLE(x FORMAT JSON ENCODING UTF8, 'lax $' AS p PASSING 1 AS a, y FORMAT JSON AS b
       COLUMNS (n FOR ORDINALITY, a bigint PATH 'lax $.a' DEFAULT 1 ON EMPTY ERROR ON ERROR,
         b varchar FORMAT JSON PATH '$.b' WITH CONDITIONAL ARRAY WRAPPER OMIT QUOTES ON SCALAR STRING EMPTY ARRAY ON EMPTY NULL ON ERROR,
         NESTED PATH 'lax $.c' AS q COLUMNS (c int), NESTED 'lax $.d' COLUMNS (nested int))
       PLAN (p OUTER (q UNION (r INNER s) UNION u)) EMPTY ON ERROR) AS t, JSON_TABLE(y, '$' COLUMNS (a int) PLAN DEFAULT (CROSS, INNER))`,
  ],
  Explain: ['EXPLAIN SELECT 1', 'EXPLAIN (TYPE IO, FORMAT JSON) SELECT 1', 'EXPLAIN ANALYZE t', 'EXPLAIN (SELECT 1)'],
  ExplainAnalyze: ['EXPLAIN ANALYZE SELECT 1', 'EXPLAIN ANALYZE VERBOSE SELECT 1', 'EXPLAIN ANALYZE CALL a.b()'],
  Use: ['USE a', 'USE a."b c"'],
  SetSession: ["SET SESSION a.b = 'x'", 'SET SESSION authorization = 1'],
  ResetSession: ['RESET SESSION a.b', 'RESET SESSION authorization.x'],
  SetSessionAuthorization: ["SET SESSION AUTHORIZATION 'x'", 'SET SESSION AUTHORIZATION bob'],
  ResetSessionAuthorization: ['RESET SESSION AUTHORIZATION'],
  SetTimeZone: [
    'SET TIME ZONE LOCAL',
    "SET TIME ZONE 'UTC'",
    "SET TIME ZONE INTERVAL - '1' HOUR",
    "SET TIME ZONE local || 'x'",
    'SET TIME ZONE (local)',
  ],
  SetPath: ['SET PATH a.b, c'],
  SetRole: ['SET ROLE ALL', 'SET ROLE NONE', 'SET ROLE admin IN lake'],
  ShowCatalogs: ["SHOW CATALOGS LIKE 'a%' ESCAPE '\\'"],
  ShowSchemas: ["SHOW SCHEMAS IN a LIKE 'x'"],
  ShowTables: ["SHOW TABLES FROM a.b LIKE 'x' ESCAPE 'y'"],
  ShowColumns: ["SHOW COLUMNS FROM a.b LIKE 'x'", 'DESCRIBE a.b', 'DESC input', 'DESCRIBE input', 'DESCRIBE output.x'],
  ShowFunctions: ["SHOW FUNCTIONS FROM a.b LIKE 'x'"],
  ShowSession: ["SHOW SESSION LIKE 'x'"],
  ShowCreate: [
    'SHOW CREATE TABLE a',
    'SHOW CREATE VIEW a',
    'SHOW CREATE MATERIALIZED VIEW a',
    'SHOW CREATE SCHEMA a',
    'SHOW CREATE FUNCTION a',
  ],
  ShowStats: ['SHOW STATS FOR a.b', 'SHOW STATS FOR (SELECT 1)'],
  ShowGrants: ['SHOW GRANTS', 'SHOW GRANTS ON TABLE a.b', 'SHOW GRANTS ON a'],
  ShowRoles: ['SHOW ROLES', 'SHOW CURRENT ROLES FROM a'],
  ShowRoleGrants: ['SHOW ROLE GRANTS IN a'],
  Prepare: ['PREPARE p FROM SELECT ? + 1', 'PREPARE p FROM INSERT INTO t VALUES ?'],
  Deallocate: ['DEALLOCATE PREPARE p'],
  Execute: ['EXECUTE p', 'EXECUTE p USING 1, (SELECT 2)', 'EXECUTE immediate'],
  ExecuteImmediate: ["EXECUTE IMMEDIATE 'SELECT ?' USING 1", "EXECUTE IMMEDIATE U&'SELECT \\0031'"],
  DescribeInput: ['DESCRIBE INPUT p'],
  DescribeOutput: ['DESCRIBE OUTPUT p'],
  StartTransaction: [
    'START TRANSACTION',
    'START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY',
    'START TRANSACTION READ WRITE, ISOLATION LEVEL READ UNCOMMITTED',
    'START TRANSACTION ISOLATION LEVEL SERIALIZABLE',
  ],
  Commit: ['COMMIT', 'COMMIT WORK'],
  Rollback: ['ROLLBACK', 'ROLLBACK WORK'],
  Insert: [
    'INSERT INTO a.b (x, y) SELECT 1, 2',
    'INSERT INTO t (SELECT 1)',
    'INSERT INTO t WITH a AS (SELECT 1) TABLE a',
  ],
  Delete: ['DELETE FROM t', 'DELETE FROM t WHERE a = 1'],
  Update: ['UPDATE t SET a = 1, b = DEFAULT_VALUE WHERE c'],
  Merge: [
    `MERGE INTO t AS a USING (SELECT 1) b ON a.x = b.x WHEN MATCHED AND a.y THEN DELETE WHEN MATCHED THEN UPDATE SET y = 1
     WHEN NOT MATCHED AND b.z THEN INSERT (x, y) VALUES (1, 2) WHEN NOT MATCHED THEN INSERT VALUES (3)`,
    'MERGE INTO t a USING u ON true WHEN MATCHED THEN DELETE',
  ],
  TruncateTable: ['TRUNCATE TABLE t'],
  Call: ['CALL a.b()', 'CALL f(1, x => 2)'],
  Analyze: ['ANALYZE t', "ANALYZE t WITH (columns = ARRAY['a'], b = DEFAULT, c = (default))"],
  TableExecute: ["ALTER TABLE t EXECUTE optimize(size => '1MB') WHERE a = 1", 'ALTER TABLE t EXECUTE x'],
  RefreshMaterializedView: ['REFRESH MATERIALIZED VIEW v'],
  CreateCatalog: [
    'CREATE CATALOG IF NOT EXISTS c USING tpch COMMENT \'x\' AUTHORIZATION ROLE admin WITH (a = 1, "b.c" = DEFAULT)',
  ],
  DropCatalog: ['DROP CATALOG IF EXISTS c CASCADE', 'DROP CATALOG c RESTRICT'],
  CreateSchema: ['CREATE SCHEMA IF NOT EXISTS a.b AUTHORIZATION USER bob WITH (location = 1)'],
  DropSchema: ['DROP SCHEMA IF EXISTS a.b CASCADE'],
  RenameSchema: ['ALTER SCHEMA a.b RENAME TO c'],
  CreateTable: [
    `CREATE OR REPLACE TABLE t (a bigint NOT NULL COMMENT 'x' WITH (p = 1), LIKE u INCLUDING PROPERTIES, "b c" ROW(x int)) COMMENT 'y' WITH (q = 2)`,
    'CREATE TABLE IF NOT EXISTS t (LIKE u EXCLUDING PROPERTIES, LIKE v)',
  ],
  CreateTableAsSelect: [
    'CREATE TABLE t AS SELECT 1',
    "CREATE TABLE IF NOT EXISTS t (a, b) COMMENT 'x' WITH (p = 1) AS (SELECT 1, 2) WITH NO DATA",
    'CREATE TABLE t AS ((SELECT 1)) WITH DATA',
    'CREATE TABLE t AS (SELECT 1) UNION (SELECT 2)',
    'CREATE TABLE t AS (WITH a AS (SELECT 1) TABLE a)',
  ],
  DropTable: ['DROP TABLE IF EXISTS a.b'],
  RenameTable: ['ALTER TABLE IF EXISTS a RENAME TO b'],
  SetProperties: ['ALTER TABLE a SET PROPERTIES x = 1, y = DEFAULT', 'ALTER MATERIALIZED VIEW a SET PROPERTIES x = 1'],
  CommentOn: ["COMMENT ON TABLE a IS 'x'", 'COMMENT ON VIEW a IS NULL', "COMMENT ON COLUMN a.b IS ''"],
  AddColumn: [
    'ALTER TABLE a ADD COLUMN IF NOT EXISTS b.c int FIRST',
    'ALTER TABLE IF EXISTS a ADD COLUMN b int AFTER c',
  ],
  RenameColumn: ['ALTER TABLE IF EXISTS a RENAME COLUMN IF EXISTS b.c TO d'],
  DropColumn: ['ALTER TABLE a DROP COLUMN IF EXISTS b.c'],
  SetColumnType: ['ALTER TABLE a ALTER COLUMN b.c SET DATA TYPE ROW(x bigint)'],
  DropNotNullConstraint: ['ALTER TABLE a ALTER COLUMN b DROP NOT NULL'],
  CreateView: [
    "CREATE OR REPLACE VIEW v COMMENT 'x' SECURITY INVOKER AS SELECT 1",
    'CREATE VIEW v SECURITY DEFINER AS TABLE t',
  ],
  DropView: ['DROP VIEW IF EXISTS v'],
  RenameView: ['ALTER VIEW v RENAME TO w'],
  RefreshView: ['ALTER VIEW v REFRESH'],
  CreateMaterializedView: [
    "CREATE MATERIALIZED VIEW IF NOT EXISTS v GRACE PERIOD INTERVAL '2' DAY COMMENT 'x' WITH (p = 1) AS SELECT 1",
    'CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1',
  ],
  DropMaterializedView: ['DROP MATERIALIZED VIEW IF EXISTS v'],
  RenameMaterializedView: ['ALTER MATERIALIZED VIEW IF EXISTS v RENAME TO w'],
  SetAuthorization: [
    'ALTER SCHEMA a SET AUTHORIZATION bob',
    'ALTER TABLE a SET AUTHORIZATION ROLE admin',
    'ALTER VIEW a SET AUTHORIZATION USER bob',
    'ALTER MATERIALIZED VIEW a SET AUTHORIZATION bob',
  ],
  CreateFunction: [
    `CREATE OR REPLACE FUNCTION a.f(x bigint, varchar, double precision, y double) RETURNS varchar(5) LANGUAGE SQL
     NOT DETERMINISTIC CALLED ON NULL INPUT RETURNS NULL ON NULL INPUT SECURITY DEFINER COMMENT 'x'
     BEGIN DECLARE a, b bigint DEFAULT 1; DECLARE c array(int); SET a = b + 1;
       IF a > 1 THEN RETURN 1; ELSEIF b THEN RETURN 2; ELSE RETURN 3; END IF;
       CASE a WHEN 1 THEN RETURN 1; ELSE RETURN 2; END CASE; CASE WHEN a THEN LEAVE top; END CASE;
       top: LOOP ITERATE top; END LOOP; WHILE a < 1 DO SET a = 2; END WHILE; r: REPEAT SET a = 3; UNTIL a > 5 END REPEAT;
       BEGIN END; END`,
    'CREATE FUNCTION f() RETURNS int DETERMINISTIC RETURN 1',
  ],
  DropFunction: ['DROP FUNCTION IF EXISTS a.f(bigint, x varchar)'],
  CreateRole: ['CREATE ROLE r WITH ADMIN CURRENT_USER IN lake', 'CREATE ROLE r WITH ADMIN USER bob'],
  DropRole: ['DROP ROLE r IN lake'],
  GrantRoles: ['GRANT a, b TO USER bob, ROLE r, eve WITH ADMIN OPTION GRANTED BY CURRENT_ROLE IN lake'],
  RevokeRoles: ['REVOKE ADMIN OPTION FOR a FROM bob GRANTED BY eve IN lake', 'REVOKE a FROM ROLE b'],
  Grant: [
    'GRANT SELECT, INSERT, foo ON TABLE a.b TO ROLE r WITH GRANT OPTION',
    'GRANT ALL PRIVILEGES ON SCHEMA a TO bob',
  ],
  Revoke: ['REVOKE GRANT OPTION FOR SELECT ON a FROM bob', 'REVOKE ALL PRIVILEGES ON TABLE a FROM USER bob'],
  Deny: ['DENY DELETE, UPDATE, CREATE ON TABLE a TO bob'],
}

describe('Every kind of statement in the grammar parses, and survives printing', () => {
  const cases = Object.entries(statements).flatMap(([kind, texts]) => texts.map((sql) => [kind, sql] as const))
  it.each(cases)('%s: %s', (kind, sql) => {
    const statement = parseStatement(sql)
    expect(statement.kind).toBe(kind)
    const printed = printStatement(statement)
    expect(withoutSpans(parseStatement(printed))).toEqual(withoutSpans(statement))
    expect(printStatement(parseStatement(printed))).toBe(printed)
  })
})

/** A text and its printed form. The parentheses show how the text was parsed. */
const expressions: readonly (readonly [string, string])[] = [
  ['a or b and not c = d or e', '(a OR (b AND (NOT (c = d))) OR e)'],
  ['(a or b) or c', '((a OR b) OR c)'],
  ['not a is null and b', '((NOT (a IS NULL)) AND b)'],
  ['a + b * -c || d - 1', '((a + (b * -c)) || (d - 1))'],
  ['-a * b', '(-a * b)'],
  ['- - a', '- -a'],
  ['-1', '-1'],
  ['- 1', '-1'],
  ['- -1', '- -1'],
  ['1-1', '(1 - 1)'],
  ['-(1)', '-(1)'],
  ["-a at time zone 'UTC'", "-(a AT TIME ZONE 'UTC')"],
  ["a at time zone interval '1' hour || b", "((a AT TIME ZONE INTERVAL '1' HOUR) || b)"],
  ['a between 1 and 2 and c', '((a BETWEEN 1 AND 2) AND c)'],
  ['a not between 1 and 2', '(NOT (a BETWEEN 1 AND 2))'],
  ['a not in (1, 2)', '(NOT (a IN (1, 2)))'],
  ["a not like 'x' escape '!'", "(NOT (a LIKE 'x' ESCAPE '!'))"],
  ['a is not distinct from b', '(NOT (a IS DISTINCT FROM b))'],
  ['a != b', '(a <> b)'],
  ['a[1].b.c[2]', 'a[1].b.c[2]'],
  ['(-1)[2]', '(-1)[2]'],
  ['(1).x', '(1).x'],
  ['x -> x + 1', '(x) -> (x + 1)'],
  ['() -> 1', '() -> 1'],
  ['f((x, y) -> x, z)', 'f((x, y) -> x, z)'],
  ['(x -> x)', '(x) -> x'],
  ['(a, b)', 'ROW (a, b)'],
  ['row(1)', 'ROW (1)'],
  ['[1, 2]', 'ARRAY[1,2]'],
  ['array[]', 'ARRAY[]'],
  ['(array)[1]', '(array)[1]'],
  ['cast(a as bigint array array[3])', 'CAST(a AS ARRAY(ARRAY(bigint)))'],
  ['try_cast(a as time(3) with time zone)', 'TRY_CAST(a AS time(3) with time zone)'],
  ['position(a in b)', 'strpos(b, a)'],
  ['position(a, b)', 'position(a, b)'],
  ['substring(a from b for c)', 'substring(a, b, c)'],
  ['substring(a, b)', 'substring(a, b)'],
  ['trim(a)', 'trim(BOTH FROM a)'],
  ["trim(leading 'x' from a)", "trim(LEADING 'x' FROM a)"],
  ["trim('x' from a)", "trim(BOTH 'x' FROM a)"],
  ["trim(a, 'x')", "trim(BOTH 'x' FROM a)"],
  ['trim(leading from a)', 'trim(LEADING FROM a)'],
  ['trim(leading)', 'trim(BOTH FROM leading)'],
  ['extract(day_of_week from a)', 'EXTRACT(DAY_OF_WEEK FROM a)'],
  ['normalize(a)', 'NORMALIZE(a, NFC)'],
  ['if(a, b)', 'IF(a, b)'],
  ['"if"(a, b)', 'IF(a, b)'],
  [
    "listagg(distinct a, ',' on overflow truncate '..' without count) within group (order by b) filter (where c)",
    "LISTAGG(DISTINCT a, ',' ON OVERFLOW TRUNCATE '..' WITHOUT COUNT) WITHIN GROUP (ORDER BY b ASC) FILTER (WHERE c)",
  ],
  ['count(distinct a order by b)', 'count(DISTINCT a ORDER BY b ASC)'],
  ['f(all x)', 'f(x)'],
  ['f(all)', 'f((all))'],
  ['running sum(a)', 'RUNNING sum(a)'],
  ['running', 'running'],
  ["date '2020-01-01'", "date '2020-01-01'"],
  ["double precision '1.5'", "DOUBLE '1.5'"],
  ["interval '1' year to month", "INTERVAL '1' YEAR TO MONTH"],
  ["interval + '1' day", "INTERVAL '1' DAY"],
  ["interval - 'x'", "(interval - 'x')"],
  ["x'0a 0B'", "X'0A0B'"],
  ['1_000 + 0xFF + 0o17 + 0b1_0', '(((1_000 + 0xFF) + 0o17) + 0b1_0)'],
  ['1e5 + .5 + 5. + 1.5E-3', '(((1e5 + .5) + 5.) + 1.5E-3)'],
  ['grouping(a, b.c)', 'GROUPING (a, b.c)'],
  ['((select 1))', '((\n   SELECT 1\n)\n)'],
  ['exists (select 1)', '(EXISTS (SELECT 1\n))'],
  ['a in (select 1)', '(a IN (SELECT 1\n))'],
  ['a in ((select 1), 2)', '(a IN ((SELECT 1\n), 2))'],
  ['a > all (select 1)', '(a > ALL (SELECT 1\n))'],
  ['a > all(1)', '(a > all(1))'],
  ['(select 1) + 1', '((SELECT 1\n) + 1)'],
  [
    "json_object('a' : 1, key b value c format json absent on null with unique keys returning varchar format json encoding utf8)",
    "JSON_OBJECT(KEY 'a' VALUE 1, KEY b VALUE c FORMAT JSON ABSENT ON NULL WITH UNIQUE KEYS RETURNING varchar FORMAT JSON ENCODING UTF8)",
  ],
  ['json_object()', 'JSON_OBJECT()'],
  ['json_array(1, a null on null)', 'JSON_ARRAY(1, a NULL ON NULL)'],
  ["json_exists(a, 'lax $' unknown on error)", "JSON_EXISTS(a, 'lax $' UNKNOWN ON ERROR)"],
  [
    "json_value(a, 'lax $' passing b as c returning int null on empty default 5 on error)",
    "JSON_VALUE(a, 'lax $' PASSING b AS c RETURNING int NULL ON EMPTY DEFAULT 5 ON ERROR)",
  ],
  [
    "json_query(a, 'lax $' with wrapper keep quotes empty object on error)",
    "JSON_QUERY(a, 'lax $' WITH UNCONDITIONAL ARRAY WRAPPER KEEP QUOTES ON SCALAR STRING EMPTY OBJECT ON ERROR)",
  ],
  ['current_timestamp(3)', 'CURRENT_TIMESTAMP(3)'],
  ['"a""b".c', '"a""b".c'],
  ["'it''s'", "'it''s'"],
]

describe('Expressions parse with the right precedence, and survive printing', () => {
  it.each(expressions)('%s', (text, printed) => {
    const read = printExpression(parseExpressionText(text))
    expect(read).toBe(printed)
    expect(withoutSpans(parseExpressionText(read))).toEqual(withoutSpans(parseExpressionText(text)))
  })
})

describe('Types parse, and survive printing', () => {
  it.each([
    ['bigint', 'bigint'],
    ['decimal(38, 0)', 'decimal(38, 0)'],
    ['row(a bigint, varchar(5), "b c" double precision)', 'ROW(a bigint, varchar(5), "b c" double)'],
    ['row(row row(x int), time time)', 'ROW(row ROW(x int), time time)'],
    ['row(x array, y array(int), z array<int>)', 'ROW(ARRAY(x), y array(int), z array(int))'],
    ['map<varchar, array<int>>', 'map(varchar, array(int))'],
    ['timestamp(p) without time zone', 'timestamp(p)'],
    ['interval day to second', 'INTERVAL DAY TO SECOND'],
  ])('%s', (text, printed) => {
    expect(printTypeSyntax(parseTypeSyntax(text))).toBe(printed)
    expect(withoutSpans(parseTypeSyntax(printed))).toEqual(withoutSpans(parseTypeSyntax(text)))
  })
})

describe('Parameters of a statement', () => {
  it('are numbered in the order of the text, over the whole statement', () => {
    const { statement, parameterCount } = parseWithParameters('SELECT ?, (SELECT ? FROM t WHERE a IN (?, ?)) LIMIT ?')
    expect(parameterCount).toBe(5)
    expect(JSON.stringify(statement).match(/"index":\d/g)).toEqual([0, 1, 2, 3, 4].map((index) => `"index":${index}`))
  })
})
