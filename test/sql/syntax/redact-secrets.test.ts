import { describe, expect, it } from 'vitest'
import { createRandom } from '../../chaos/random.ts'
import { parseStatement } from '../../../src/sql/syntax/parser.ts'
import { StatementText, type PreparedTexts } from '../../../src/sql/parsed-statement.ts'
import {
  redactSecrets,
  redactStatement,
  tablesOfBareInserts,
  type RedactedStatement,
  type RedactionOptions,
} from '../../../src/sql/syntax/redact-secrets.ts'

function redact(sql: string, prepared: PreparedTexts = {}, options: RedactionOptions = {}): RedactedStatement {
  return redactStatement(new StatementText(sql, prepared), options)
}

describe('`redactSecrets` redacts secrets in statements', () => {
  it.each([
    ["SELECT * FROM t WHERE password = 'hunter2'", "SELECT * FROM t WHERE password = '***'"],
    ["SELECT 'hunter2' = password", "SELECT '***' = password"],
    ["SELECT hmac_sha256(x, CAST('hunter2' AS varbinary))", "SELECT hmac_sha256(x, CAST('***' AS varbinary))"],
    ["SELECT 'password' || '=' || 'hunter2'", "SELECT '***' || '***' || '***'"],
    ["SELECT concat('my password=', 'hunter2')", "SELECT concat('***', '***')"],
    ["SELECT format('user=%s&password: %s', x, 'hunter2')", "SELECT format('***', x, '***')"],
    ["SELECT 1 WHERE token IN ('a', 'b') AND name = 'c'", "SELECT 1 WHERE token IN ('***', '***') AND name = 'c'"],
    ["SELECT 1 WHERE db_password LIKE 'a%'", "SELECT 1 WHERE db_password LIKE '***'"],
    [
      "SELECT apiToken = 'x', \"s3.aws-secret-key\" <> X'AB'",
      "SELECT apiToken = '***', \"s3.aws-secret-key\" <> '***'",
    ],
    ["SELECT decrypt(x, secret('y'), 'z')", "SELECT decrypt(x, secret('***'), '***')"],
    ['SELECT pin_token = 12345', "SELECT pin_token = '***'"],
    [
      `CREATE CATALOG c USING postgresql WITH ("connection-url" = 'jdbc:postgresql://bob:pw@h/db', "connection-password" = 'x''y', "connection-user" = 'bob')`,
      `CREATE CATALOG c USING postgresql WITH ("connection-url" = 'jdbc:postgresql://***@h/db', "connection-password" = '***', "connection-user" = 'bob')`,
    ],
    ["SET SESSION lake.api_key = 'abc'", "SET SESSION lake.api_key = '***'"],
    [
      "INSERT INTO users (name, password) VALUES ('bob', 'x')",
      "INSERT INTO users (name, password) VALUES ('***', '***')",
    ],
    ["EXECUTE IMMEDIATE 'SELECT 1 WHERE password = ''x'''", "EXECUTE IMMEDIATE '***'"],
    [`SELECT json_parse('{"password": "x"}')`, "SELECT json_parse('***')"],
    ["SELECT 'Bearer abc.def'", "SELECT '***'"],
    ["SELECT U&'\\0041' AS x, secret = U&'\\0042'", "SELECT U&'\\0041' AS x, secret = '***'"],
    [
      `SELECT CAST(ROW('a', 'hunter2') AS ROW(name varchar, password varchar))`,
      `SELECT CAST(ROW('***', '***') AS ROW(name varchar, password varchar))`,
    ],
    [
      `SELECT CAST(x || 'hunter2' AS array(row("db_password" varchar)))`,
      `SELECT CAST(x || '***' AS array(row("db_password" varchar)))`,
    ],
    [
      `SELECT * FROM JSON_TABLE('["hunter2"]', 'lax $[*]' COLUMNS (NESTED PATH 'lax $' COLUMNS (password varchar PATH 'lax $')))`,
      `SELECT * FROM JSON_TABLE('***', '***' COLUMNS (NESTED PATH '***' COLUMNS (password varchar PATH '***')))`,
    ],
    ["SELECT password 'hunter2'", "SELECT '***'"],
    // A secret in one part of the statement is redacted in all other parts too.
    [
      "SELECT * FROM t WHERE password = 'hunter2' AND name = 'hunter2' AND x = 'has Hunter2 in it' AND y = 'hunter'",
      "SELECT * FROM t WHERE password = '***' AND name = '***' AND x = '***' AND y = 'hunter'",
    ],
    [
      "SELECT if(password = 'x''y', 1, fail('bad x''y')) /* x'y */ -- of x'y",
      "SELECT if(password = '***', 1, fail('***')) /* *** */ -- *** ",
    ],
    ["SELECT 'pw123', 'see https://bob:pw123@host/x'", "SELECT '***', 'see https://***@host/x'"],
    ["SELECT secret = 'hunter2' /* why hunter2? */ -- hunter2", "SELECT secret = '***' /* *** */ -- *** "],
    ['SELECT /* password=hunter2 */ 1', 'SELECT /* password=*** */ 1'],
    ['SELECT /*password=hunter2*/ 1', 'SELECT 1'],
    ['SELECT 1 -- token: abc', 'SELECT 1 -- token: ***'],
  ])('%s', (sql, redacted) => {
    expect(redactSecrets(sql)).toEqual({ sql: redacted, redacted: true })
    expect(() => parseStatement(redacted)).not.toThrow()
  })
})

describe('`redactSecrets` redacts secrets in text that does not parse', () => {
  it.each([
    ["ALTER USER x IDENTIFIED BY 'foo'", "ALTER USER x IDENTIFIED BY '***'"],
    ["{{{ secret => 'x', a => 'b'", "{{{ secret => '***', a => '***'"],
    ["SELECT password 'open hunter2", "SELECT password '***'"],
    ['see https://bob:pw@host/x', 'see https://***@host/x'],
  ])('%s', (sql, redacted) => expect(redactSecrets(sql)).toEqual({ sql: redacted, redacted: true }))
})

describe('`redactSecrets` leaves statements without secrets as they are', () => {
  it.each([
    "SELECT 'name=' || 'hunter2', concat('color: ', 'red')",
    "SELECT 1 FROM nation WHERE nationkey = 3 AND name = 'a'",
    "SELECT count(*) AS tokens, 'abc' FROM t",
    "SELECT password, 'abc' FROM t",
    "SELECT JSON_OBJECT(KEY 'a' VALUE 1)",
    "SELECT partition_key = 'y', orderkey, 'x'",
    "SELECT passenger = 'bob', bypass_count = 5, compass_x = 'n'",
    "SELECT url_extract_host('http://example.com/a@b')",
  ])('%s', (sql) => expect(redactSecrets(sql)).toEqual({ sql, redacted: false }))
})

const M = 'hunter5marker'

/** Statements with a marker near the name of a secret. */
const statements: readonly string[] = [
  `SELECT * FROM t WHERE password = '${M}'`,
  `SELECT * FROM t WHERE t."passWord" <> '${M}'`,
  `SELECT * FROM t WHERE upper(concat('x', password)) = lower('${M}')`,
  `SELECT * FROM t WHERE 'a' || '${M}' || 'b' = t.api_key`,
  `SELECT * FROM t WHERE '${M}' IN (name, password)`,
  `SELECT * FROM t WHERE password BETWEEN 'a' AND '${M}'`,
  `SELECT * FROM t WHERE password IN (SELECT '${M}')`,
  `SELECT * FROM t WHERE password = ANY (VALUES 'a', '${M}')`,
  `SELECT * FROM t WHERE '${M}' = (SELECT max(password) FROM u)`,
  `SELECT * FROM t WHERE (a = 1 OR NOT (password = '${M}')) IS NULL`,
  `SELECT * FROM t WHERE if(a = 1, password, 'z') = '${M}'`,
  `SELECT CASE password WHEN '${M}' THEN 1 ELSE 2 END FROM t`,
  `SELECT CASE WHEN password = '${M}' THEN 'x' ELSE 'y' END FROM t`,
  `SELECT CASE WHEN a = 1 THEN password ELSE '${M}' END FROM t`,
  `SELECT coalesce(password, '${M}') FROM t`,
  `SELECT '${M}' AS password`,
  `SELECT x AS y FROM (VALUES ('bob', '${M}')) AS t(name, password)`,
  `WITH t(name, password) AS (VALUES ('bob', '${M}')) SELECT * FROM t`,
  `WITH s AS (SELECT '${M}' AS p) SELECT * FROM users JOIN s ON users.password = s.p`,
  `SELECT * FROM users, (VALUES '${M}') AS s(p) WHERE users.password = s.p`,
  `SELECT * FROM users CROSS JOIN UNNEST(ARRAY['${M}']) AS s(p) WHERE users.password = s.p`,
  `SELECT password FROM t UNION ALL SELECT '${M}'`,
  `SELECT any_match(tokens, x -> x = '${M}') FROM t`,
  `SELECT max(password) FILTER (WHERE password LIKE '${M}%') OVER (PARTITION BY a) FROM t`,
  `SELECT element_at(m, 'password') = '${M}' FROM t`,
  `SELECT m['password'] = '${M}' FROM t`,
  `SELECT json_extract_scalar(j, '$.credentials.password') = '${M}' FROM t`,
  `SELECT map(ARRAY['user', 'password'], ARRAY['bob', '${M}'])`,
  `SELECT json_object('password' : '${M}')`,
  `SELECT json_value(j, 'lax $.password') = '${M}' FROM t`,
  `SELECT JSON '{"user": "bob", "password": "${M}"}'`,
  `SELECT json_parse('{\\"api_key\\":\\"${M}\\"}')`,
  `SELECT U&'password = ''${M}'''`,
  `SELECT password = U&'${M}\\0041'`,
  `SELECT 'postgresql://bob:${M}@db.example.com/x'`,
  `SELECT 'connect bob:${M}@db.example.com'`,
  `SELECT 'https://example.com/reset?token=${M}&user=bob'`,
  `SELECT 'Authorization: Bearer ${M}'`,
  `SELECT 'curl -H "bearer ${M}"'`,
  `SELECT 'Basic ${M}Zm9v=='`,
  `SELECT 1 AS "password=${M}"`,
  `SELECT 1 /* the password is ${M} */`,
  `SELECT 1 -- password=${M}`,
  `CREATE CATALOG c USING postgresql WITH ("connection-password" = '${M}')`,
  `CREATE CATALOG c USING postgresql WITH ("connection-url" = 'jdbc:postgresql://h/d?user=bob&password=${M}')`,
  `CREATE TABLE t (a int) WITH (secret_key = ARRAY['${M}'])`,
  `CREATE TABLE t AS SELECT '${M}' AS secret`,
  `CREATE TABLE t (a, password) AS SELECT 'x', '${M}'`,
  `CREATE VIEW v AS SELECT * FROM t WHERE password = '${M}'`,
  `SET SESSION lake.api_key = '${M}'`,
  `SET SESSION lake.password = concat('${M}', 'x')`,
  `WITH SESSION lake.password = '${M}' SELECT 1`,
  `CALL c.s.set_password('bob', '${M}')`,
  `CALL c.s.configure(name => 'x', password => '${M}')`,
  `CALL c.s.configure('password', '${M}')`,
  `ALTER TABLE t EXECUTE rotate(secret => '${M}')`,
  `SELECT * FROM TABLE(c.system.query(password => '${M}'))`,
  `INSERT INTO users (name, password) SELECT 'bob', '${M}'`,
  `INSERT INTO passwords VALUES ('bob', '${M}')`,
  `UPDATE users SET password = '${M}' WHERE name = 'x'`,
  `DELETE FROM users WHERE password = '${M}'`,
  `MERGE INTO users u USING t ON u.id = t.id WHEN NOT MATCHED THEN INSERT (id, password) VALUES (1, '${M}')`,
  `PREPARE p FROM SELECT * FROM t WHERE password = '${M}'`,
  `EXECUTE IMMEDIATE 'SELECT * FROM t WHERE password = ''${M}'''`,
  `EXECUTE IMMEDIATE 'SELECT * FROM t WHERE password = ?' USING '${M}'`,
  `EXECUTE hidden USING '${M}'`,
  `EXECUTE unknown USING '${M}'`,
  `EXPLAIN ANALYZE SELECT * FROM t WHERE password = '${M}'`,
  `WITH FUNCTION f(x varchar) RETURNS boolean RETURN if(x = '${M}', true, false) SELECT f(password) FROM t`,
  `WITH FUNCTION f(password varchar) RETURNS boolean RETURN true SELECT f('${M}')`,
]
const broken: readonly string[] = [
  `CREATE USER bob PASSWORD '${M}'`,
  `CREATE USER bob PASSWORD ${M}`,
  `ALTER USER bob IDENTIFIED BY ${M}`,
  `SELECT * FORM t WHERE password = '${M}'`,
  `SELECT * FORM t WHERE '${M}' = lower(password)`,
  `SELECT password = '${M}`,
  `SELECT * FROM t WHERE password = "${M}`,
  `SET PASSWORD TO ${M}`,
  `COPY t FROM 's3://b' CREDENTIALS 'aws_secret_access_key=${M}'`,
]
const prepared = { hidden: 'SELECT * FROM t WHERE lower(password) = lower(?)', plain: 'SELECT ? AS name' }

describe('A literal near the name of a secret', () => {
  it.each(statements)('is redacted, and the redacted statement still parses: %s', (sql) => {
    expect(() => parseStatement(sql)).not.toThrow()
    const taken = redact(sql, prepared)
    expect(taken.sql).not.toContain(M)
    expect(taken.redacted).toBe(true)
    expect([...taken.values, ...taken.names].join(' ')).toContain(M)
    expect(() => parseStatement(taken.sql)).not.toThrow()
    expect(redactSecrets(taken.sql, prepared).sql).toBe(taken.sql)
  })

  it.each(broken)('is redacted in text that does not parse: %s', (sql) => {
    const taken = redact(sql)
    expect(taken.sql).not.toContain(M)
    expect(taken.values.join(' ')).toContain(M)
  })

  it('is redacted in random expressions around the name and the literal', () => {
    const random = createRandom(20_261_121, 'secrets')
    const { pick, chance, whole } = random
    const names = ['password', '"db-password"', 't.api_key', 'accessToken', 'u."client secret"', 'credentials.pw']
    const wraps = [
      (x: string) => `lower(${x})`,
      (x: string) => `CAST(${x} AS varchar(99))`,
      (x: string) => `concat('z', ${x}, name)`,
      (x: string) => `(${x} || 'q')`,
      (x: string) => `coalesce(NULL, ${x})`,
      (x: string) => `(SELECT max(${x}) FROM t)`,
      (x: string) => `/* c */ ${x} -- d\n`,
      (x: string) => `if(1 = 1, ${x}, 'e')`,
      (x: string) => `CASE WHEN a THEN ${x} END`,
      (x: string) => `ROW(${x}, 1)`,
      (x: string) => `ARRAY[${x}]`,
      (x: string) => `TRY(${x})`,
    ]
    const joins = ['=', '<>', '<', 'IS DISTINCT FROM', 'LIKE', '||'].map(
      (op) => (a: string, b: string) => `${a} ${op} ${b}`,
    )
    joins.push((a, b) => `${a} IN (${b}, 'x')`)
    joins.push((a, b) => `${b} NOT IN (1, ${a})`)
    joins.push((a, b) => `f(${a}, ${b})`)
    joins.push((a, b) => `${a} BETWEEN 'a' AND ${b}`)
    const positions = [
      (x: string) => `SELECT * FROM t WHERE a = 1 AND (${x} OR b = 2)`,
      (x: string) => `SELECT ${x} FROM t`,
      (x: string) => `SELECT 1 FROM t JOIN u ON ${x}`,
      (x: string) => `SELECT 1 FROM t GROUP BY a HAVING ${x}`,
      (x: string) => `SELECT 1 FROM t ORDER BY ${x}`,
      (x: string) => `DELETE FROM t WHERE ${x}`,
      (x: string) => `PREPARE q FROM SELECT ${x} FROM t`,
      (x: string) => `CREATE TABLE n AS SELECT ${x} AS c FROM t`,
      (x: string) => `SELECT 1 WHERE EXISTS (SELECT 1 FROM t WHERE ${x})`,
      (x: string) => `SELECT ~ broken ${x}`,
    ]
    const literals = [`'${M}'`, `U&'${M}'`, `'it''s ${M}'`, `VARCHAR '${M}'`]
    for (let n = 0; n < 3000; n++) {
      let [name, literal] = [pick(names), pick(literals)]
      for (let depth = whole(0, 3); depth > 0; depth--) {
        if (chance(0.5)) name = pick(wraps)(name)
        else literal = pick(wraps)(literal)
      }
      const sides: [string, string] = chance(0.5) ? [name, literal] : [literal, name]
      const sql = pick(positions)(pick(joins)(...sides))
      expect(redactSecrets(sql).sql, sql).not.toContain(M)
    }
  })
})

describe('`redactSecrets` leaves figures and unrelated literals as they are', () => {
  it.each([
    "SELECT sum(tokens) / 1000, substr(token, 1, 8) FROM t WHERE day = DATE '2024-01-01' LIMIT 100",
    "SELECT password IS NULL, count(*) FROM t WHERE name = 'bob' GROUP BY 1",
    "SELECT CASE WHEN token IS NULL THEN 'guest' ELSE 'user' END FROM t",
    "SELECT token_count = 5000, password_length = 12, kind = 'token' FROM t",
    "EXECUTE plain USING 'bob'",
    "SELECT 'write to bob@example.com', 'mailto:bob@example.com'",
    'SELECT tokens FROM t WHERE id = 5 -- figures per key',
  ])('%s', (sql) => expect(redactSecrets(sql, prepared)).toEqual({ sql, redacted: false }))
})

describe('A text that is slow to parse', () => {
  it('loses all its literals, and its parameters count as secrets', () => {
    const sql = `SELECT 'harmless', 12 FROM t WHERE token_count > 1 AND x IN (${'1, '.repeat(5000)}1)`
    expect(redact(sql).redacted).toBe(false)
    const taken = redact(sql, {}, { cpuMs: 0 })
    expect(taken.sql).toMatch(/^SELECT '\*\*\*', '\*\*\*' FROM t WHERE token_count > '\*\*\*'/)
    expect(taken.parameters).toBe(true)
  })

  it('is not parsed beyond the limit of CPU time', () => {
    const sql = `SELECT ${'('.repeat(100)}token${')'.repeat(100)} IN (${'1, '.repeat(300_000)}1)`
    const before = process.cpuUsage()
    redact(sql, {}, { cpuMs: 20 })
    const bounded = process.cpuUsage(before).user
    const unbounded = (() => {
      const start = process.cpuUsage()
      redact(sql, {}, { cpuMs: 1e9 })
      return process.cpuUsage(start).user
    })()
    expect(bounded).toBeLessThan(unbounded)
  })
})

describe('An INSERT without a list of columns', () => {
  it.each([
    ['INSERT INTO t VALUES (1)', [['t']]],
    ['EXPLAIN INSERT INTO a."B".t SELECT 1', [['a', 'b', 't']]],
    [
      "EXECUTE IMMEDIATE 'INSERT INTO s.t VALUES (''x'')'",
      [
        ['s', 't'],
        ['of', 'prepared'],
      ],
    ],
    ['PREPARE q FROM INSERT INTO t VALUES (?)', [['t']]],
    ['EXECUTE p', [['of', 'prepared']]],
    ['INSERT INTO t (a) VALUES (1)', []],
    ["SELECT 'insert into t'", []],
    ['INSERT INTO', []],
  ])('%s', (sql, tables) => {
    expect(tablesOfBareInserts(new StatementText(sql, { p: 'INSERT INTO of.prepared VALUES (1)' }))).toEqual(tables)
  })

  it('loses its literals if its table holds secrets, unlike an INSERT with a list', () => {
    const taken = (sql: string, intoSecrets: boolean) => redact(sql, {}, { intoSecrets }).sql
    const insert = "INSERT INTO t VALUES (1, 'hunter2')"
    expect(taken(insert, false)).toBe(insert)
    expect(taken(insert, true)).toBe("INSERT INTO t VALUES ('***', '***')")
    expect(taken("INSERT INTO t (a) VALUES ('hunter2')", true)).toContain('hunter2')
  })
})

describe('Words for secrets in other languages', () => {
  const M = 'hunter2-correct-horse'
  it.each([
    'Passwort',
    'benutzer_passwort',
    'datenbankKennwort',
    'contraseña',
    'CONTRASENA',
    'contrasen\u0303a',
    'mot de passe',
    'mot_de_passe',
    'senha',
    'Senha_Usuario',
    'wachtwoord',
    'lösenord',
    'passord',
    'salasana',
    'hasło',
    'heslo',
    'şifre',
    'пароль',
    'Пароль_пользователя',
    '密码',
    '用户密码',
    '密碼',
    'パスワード',
    'ﾊﾟｽﾜｰﾄﾞ',
    '비밀번호',
    'סיסמה',
  ])('are recognised as names: %s', (name) => {
    for (const sql of [
      `SELECT '${M}' AS "${name}"`,
      `SELECT * FROM t WHERE "${name}" = '${M}'`,
      `INSERT INTO t (id, "${name}") VALUES (1, '${M}')`,
    ])
      expect(redactSecrets(sql)).toEqual({
        sql: sql.replace(`'${M}'`, `'***'`).replace('VALUES (1', `VALUES ('***'`),
        redacted: true,
      })
  })

  it.each([
    `SELECT '{"Passwort": "${M}"}'`,
    `SELECT element_at(x, '密码') = '${M}' FROM t`,
    `SELECT 1 -- пароль: ${M}`,
    `SELECT 'contraseña=${M}'`,
    `SELECT 1 /* 密码=${M} */`,
  ])('are recognised in texts and comments: %s', (sql) => expect(redactSecrets(sql).sql).not.toContain(M))

  it.each(['resenha', 'passagier', 'clave', 'заказ', '密度', 'thousandish', 'wort', 'sandisk', 'カラム'])(
    'are not confused with similar words: %s',
    (name) => {
      const sql = `SELECT * FROM t WHERE "${name}" = 'x-1234'`
      expect(redactSecrets(sql)).toEqual({ sql, redacted: false })
    },
  )
})

describe('A query whose rows go into a table of secrets', () => {
  const taken = (sql: string) => redact(sql, {}, { intoSecrets: true })

  it.each([
    'INSERT INTO t SELECT orderkey FROM orders WHERE orderkey <= 7',
    "INSERT INTO t SELECT a FROM u JOIN v ON u.x = v.y AND v.z = 'open' WHERE a IN (1, 2) GROUP BY a HAVING count(*) > 3 ORDER BY 1 LIMIT 4",
    "INSERT INTO t WITH w AS (SELECT a FROM u WHERE day = DATE '2020-01-01') SELECT a FROM w UNION ALL SELECT b FROM x WHERE b > 9",
    "INSERT INTO t SELECT * FROM (SELECT a FROM u TABLESAMPLE BERNOULLI (10) WHERE name LIKE 'A%') s",
    'CREATE TABLE passwords AS SELECT a FROM u WHERE a < 100',
    'INSERT INTO u (id, password) SELECT id, hash FROM v WHERE id = 7',
  ])('keeps the literals of its conditions: %s', (sql) => {
    expect(taken(sql)).toMatchObject({ sql, redacted: false })
  })

  it.each([
    `INSERT INTO t SELECT 'hunter2', a FROM u WHERE a = 7`,
    `INSERT INTO t SELECT x FROM (VALUES 'hunter2') v(x) WHERE x > 7`,
    `INSERT INTO t SELECT x FROM (SELECT concat(y, 'hunter2') x FROM u WHERE a = 7)`,
    `INSERT INTO t SELECT x FROM u CROSS JOIN UNNEST(ARRAY['hunter2']) v(x) WHERE a = 7`,
    `INSERT INTO t WITH w AS (SELECT 'hunter2' x) SELECT x FROM w WHERE x <> 7`,
    `INSERT INTO t SELECT a FROM u WHERE a = 7 UNION SELECT 'hunter2'`,
    `INSERT INTO t SELECT x FROM u, LATERAL (SELECT 'hunter2' x) WHERE a = 7`,
    `CREATE TABLE t (a, password) AS SELECT 1, 'hunter2' FROM u WHERE a = 7`,
  ])('loses only the literals that become values of its rows: %s', (sql) => {
    expect(taken(sql).sql).not.toContain('hunter2')
    expect(taken(sql).sql).toContain('7')
  })

  it('needs a check of its table only if it writes literals', () => {
    expect(tablesOfBareInserts(new StatementText('INSERT INTO t SELECT a FROM u WHERE a <= 7'))).toEqual([])
    expect(tablesOfBareInserts(new StatementText("INSERT INTO t SELECT a, 'x' FROM u WHERE a <= 7"))).toEqual([['t']])
  })
})
