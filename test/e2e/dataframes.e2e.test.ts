import { describe, expect, it } from 'vitest'
import { withLake } from '../support/lake-catalog.ts'
import { pythonDataTools } from '../support/real-clients.ts'
import { serverOfFile } from '../support/server-of-file.ts'

const server = serverOfFile('error', withLake)
const python = await pythonDataTools()

const PREPARE = `
import sys, json, datetime, decimal
import pandas as pd
import sqlalchemy as sa
from sqlalchemy import MetaData, Table, Column, Integer, BigInteger, String, Numeric, Date, create_engine, inspect, select, insert, update, delete, func
host = sys.argv[1].split('://')[1]
catalog = sys.argv[2]
engine = create_engine(f'trino://py@{host}/{catalog}/default')
`

const REFLECTION = `
meta = MetaData()
orders = Table('orders', meta, Column('id', BigInteger, nullable=False), Column('note', String(20)),
  Column('amount', Numeric(12, 2)), Column('day', Date))
meta.create_all(engine)
with engine.begin() as c:
  c.execute(insert(orders), [{'id': 1, 'note': "it's", 'amount': decimal.Decimal('1.50'), 'day': datetime.date(2026, 1, 1)},
    {'id': 2, 'note': None, 'amount': decimal.Decimal('0.00'), 'day': None}])
  c.exec_driver_sql("COMMENT ON TABLE orders IS 'Orders of a shop'")
  c.exec_driver_sql("COMMENT ON COLUMN orders.id IS 'Key'")
  c.exec_driver_sql('CREATE VIEW orders_v AS SELECT id FROM orders')
  print(c.execute(update(orders).where(orders.c.id == 2).values(note='two', amount=orders.c.amount + 5)).rowcount)
  print(c.execute(delete(orders).where(orders.c.id == 1)).rowcount)
  print(c.execute(select(orders)).fetchall())
look = inspect(engine)
print(look.get_table_names(), look.get_view_names(), look.has_table('orders'), look.has_table('nowhere'))
print([(c['name'], str(c['type']), c['nullable'], c['comment']) for c in look.get_columns('orders')])
print(look.get_table_comment('orders'), look.get_pk_constraint('orders'), look.get_foreign_keys('orders'), look.get_indexes('orders'))
print(look.get_view_definition('orders_v').split())
found = MetaData()
found.reflect(engine, views=True)
print(sorted(found.tables), [c.name for c in found.tables['orders'].columns])
found.tables['orders'].drop(engine)
print(inspect(engine).has_table('orders'))
`

const FRAMES = `
frame = pd.DataFrame({'n': [1, 2, 3], 'x': [1.5, None, -2.0], 's': ['a', None, "it's ü"],
  'at': pd.to_datetime(['2026-01-01 10:20:30.123456', None, '1999-12-31'], format='ISO8601'), 'yes': [True, False, True]})
frame.to_sql('frame', engine, schema='default', index=False)
frame.to_sql('frame', engine, schema='default', index=False, if_exists='append', method='multi', chunksize=2)
whole = pd.read_sql_table('frame', engine, schema='default')
print(len(whole), list(whole.columns), whole['n'].sum(), whole['s'].isna().sum(), sorted(set(whole['s'].dropna())))
frame.head(2).to_sql('frame', engine, schema='default', index=False, if_exists='replace')
print(pd.read_sql('SELECT n, x, s, "at", yes FROM frame ORDER BY n', engine).to_json(orient='values', date_format='iso', date_unit='us'))
frame.tail(1).to_sql('frame', engine, schema='default', index=False, if_exists='delete_rows')
print(pd.read_sql_table('frame', engine, schema='default', columns=['n']).values.tolist())
print(sum(len(chunk) for chunk in pd.read_sql('SELECT * FROM tpch.tiny.orders', engine, chunksize=4000)))
try:
  frame.to_sql('frame', engine, schema='default', index=False)
except ValueError as e: print(e)
`

describe.runIf(python).each(['memory', 'lake'])('SQLAlchemy and pandas in %s', (catalog) => {
  const printed = async (body: string): Promise<string[]> => {
    const { stdout, stderr, code } = await python!(PREPARE + body, [server.url, catalog])
    expect(code, stderr).toBe(0)
    return stdout.trimEnd().split('\n')
  }

  it('SQLAlchemy creates, changes and reflects tables', async () => {
    expect(await printed(REFLECTION)).toEqual([
      '1',
      '1',
      "[(2, 'two', Decimal('5.00'), None)]",
      "['orders'] ['orders_v'] True False",
      "[('id', 'BIGINT', False, 'Key'), ('note', 'VARCHAR(20)', True, None), ('amount', 'DECIMAL(12, 2)', True, None), ('day', 'DATE', True, None)]",
      "{'text': 'Orders of a shop'} {'name': None, 'constrained_columns': []} [] []",
      "['SELECT', 'id', 'FROM', 'orders']",
      "['orders', 'orders_v'] ['id', 'note', 'amount', 'day']",
      'False',
    ])
  })

  it('pandas writes frames and reads them', async () => {
    expect(await printed(FRAMES)).toEqual([
      `6 ['n', 'x', 's', 'at', 'yes'] 12 2 ['a', "it's ü"]`,
      '[[1,1.5,"a","2026-01-01T10:20:30.123000",true],[2,null,null,null,false]]',
      '[[3]]',
      '15000',
      "Table 'frame' already exists.",
    ])
  })
})
