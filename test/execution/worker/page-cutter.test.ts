import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createPageCutter, type CutPage } from '../../../src/execution/worker/page-cutter.ts'

const rowsOf = ({ bytes }: CutPage): unknown[] => JSON.parse(bytes.toString()) as unknown[]

it('The page cutter keeps all rows in order, even if the caller reuses its buffer', () => {
  const row = fc.string({ maxLength: 40 }).map((text) => [text])
  fc.assert(
    fc.property(
      fc.array(fc.array(row, { minLength: 1, maxLength: 8 })),
      fc.integer({ min: 1, max: 400 }),
      (pieces, target) => {
        const cutter = createPageCutter(target, 1e9)
        const memory = Buffer.alloc(1 << 16)
        const pages: CutPage[] = []
        for (const piece of pieces) {
          const length = memory.write(piece.map((one) => `${JSON.stringify(one)},\n`).join(''))
          const page = cutter.add(memory.subarray(0, length))
          if (page) pages.push(page)
          memory.fill(0)
        }
        const last = cutter.flush()
        if (last) pages.push(last)
        expect(pages.flatMap(rowsOf)).toEqual(pieces.flat())
        for (const page of pages) expect(page.rows).toBe(rowsOf(page).length)
        for (const page of pages.slice(0, -1)) expect(page.bytes.length).toBeGreaterThanOrEqual(target)
      },
    ),
  )
})

it('The page cutter keeps little more memory than the bytes of a small page', () => {
  const cutter = createPageCutter(1 << 20, 1e9)
  cutter.add(Buffer.from('[1],\n'))
  expect(cutter.flush()!.bytes.buffer.byteLength).toBeLessThan(1 << 16)
})

it('The page cutter refuses a row that is larger than the maximum page', () => {
  const cutter = createPageCutter(1000, 2000)
  expect(() => cutter.add(Buffer.from(`["${'x'.repeat(3000)}"],\n`))).toThrow('larger than')
})
