import { describe, expect, it } from 'vitest'
import { parseStatement } from '../../../src/sql/syntax/parser.ts'
import { redactSecrets } from '../../../src/sql/syntax/redact-secrets.ts'

describe('secrets are redacted', () => {
  it.each([
    ["SELECT * FROM t WHERE password = 'hunter2'", "SELECT * FROM t WHERE password = '***'"],
    ["SELECT 'hunter2' = password", "SELECT '***' = password"],
    ["SELECT 1 WHERE token IN ('a', 'b') AND name = 'c'", "SELECT 1 WHERE token IN ('***', '***') AND name = 'c'"],
    ["SELECT 1 WHERE db_password LIKE 'a%'", "SELECT 1 WHERE db_password LIKE '***'"],
    [
      "SELECT apiToken = 'x', \"s3.aws-secret-key\" <> X'AB'",
      "SELECT apiToken = '***', \"s3.aws-secret-key\" <> '***'",
    ],
    ["SELECT decrypt(x, secret('y'), 'z')", "SELECT decrypt(x, secret('***'), 'z')"],
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
    ["SELECT U&'\\0041' AS x, secret = U&'\\0041'", "SELECT U&'\\0041' AS x, secret = '***'"],
    ['SELECT /* password=hunter2 */ 1', 'SELECT /* password=*** */ 1'],
    ['SELECT /*password=hunter2*/ 1', 'SELECT 1'],
    ['SELECT 1 -- token: abc', 'SELECT 1 -- token: ***'],
  ])('%s', (sql, redacted) => {
    expect(redactSecrets(sql)).toEqual({ sql: redacted, redacted: true })
    expect(() => parseStatement(redacted)).not.toThrow()
  })
})

describe('secrets are redacted in text that does not parse', () => {
  it.each([
    ["ALTER USER x IDENTIFIED BY 'foo'", "ALTER USER x IDENTIFIED BY '***'"],
    ["{{{ secret => 'x', a => 'b'", "{{{ secret => '***', a => 'b'"],
    ["SELECT password 'open hunter2", "SELECT password '***'"],
    ['see https://bob:pw@host/x', 'see https://***@host/x'],
  ])('%s', (sql, redacted) => expect(redactSecrets(sql)).toEqual({ sql: redacted, redacted: true }))
})

describe('nothing else is', () => {
  it.each([
    "SELECT 1 FROM nation WHERE nationkey = 3 AND name = 'a'",
    "SELECT count(*) AS tokens, 'abc' FROM t",
    "SELECT password, 'abc' FROM t",
    "SELECT JSON_OBJECT(KEY 'a' VALUE 1)",
    "SELECT partition_key = 'y', orderkey, 'x'",
    "SELECT passenger = 'bob', bypass_count = 5, compass_x = 'n'",
    "SELECT url_extract_host('http://example.com/a@b')",
  ])('%s', (sql) => expect(redactSecrets(sql)).toEqual({ sql, redacted: false }))
})
