import { describe, expect, it } from 'vitest'
import { analyze, analyzeQuery } from '../support/front-end.ts'

const ORDERS = { catalog: 'shop', schema: 'main', table: 'orders' }
const BIG = 'shop.main.big_orders'
const BEST = 'shop.main.best_orders'

describe('The tables and views that a query reads', () => {
  it('have no chain of views where the statement names the table itself', async () => {
    const { query } = await analyzeQuery('SELECT id FROM orders')
    expect(query.reads).toEqual([{ ...ORDERS, columns: ['id'] }])
    expect(query.views).toEqual([])
  })

  it('have the chain of views with its columns, beside the columns that the statement reads itself', async () => {
    const { query } = await analyzeQuery('SELECT b.id, o.tags FROM best_orders b JOIN orders o ON o.id = b.id')
    const [{ paths, columns, ...table }] = query.reads as [(typeof query.reads)[number]]
    expect(table).toEqual(ORDERS)
    expect([...columns].sort()).toEqual(['id', 'tags', 'total'])
    expect(
      paths!
        .map((path) => [path.views, [...path.columns].sort()])
        .sort((one, other) => String(one).localeCompare(String(other))),
    ).toEqual([
      [[], ['id', 'tags']],
      [[BEST], ['id']],
      [
        [BEST, BIG],
        ['id', 'total'],
      ],
    ])
    expect(query.views).toEqual([
      { catalog: 'shop', schema: 'main', view: 'big_orders', via: [BEST], columns: ['id', 'total'] },
      { catalog: 'shop', schema: 'main', view: 'best_orders', via: [], columns: ['id'] },
    ])
  })

  it('contain a view once, with all columns, if the statement reads it twice', async () => {
    const { query } = await analyzeQuery('SELECT a.id, b.total FROM big_orders a, big_orders b')
    expect(query.views).toEqual([
      { catalog: 'shop', schema: 'main', view: 'big_orders', via: [], columns: ['id', 'total'] },
    ])
    expect(query.reads.map(({ paths }) => paths)).toEqual([[{ views: [BIG], columns: ['id', 'total'] }]])
  })

  it('belong to the query that a statement explains', async () => {
    const explained = await analyze('EXPLAIN SELECT id FROM big_orders')
    expect(explained).toMatchObject({ kind: 'explain', statement: { query: { views: [{ view: 'big_orders' }] } } })
  })
})
