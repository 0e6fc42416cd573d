import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
// Part of vite, in the locked version.
import { transform } from 'esbuild'
import { expect, it } from 'vitest'
import { parseAst } from 'vitest/node'

const root = new URL('..', import.meta.url).pathname

/** Identifiers that `docs/style.md` forbids. */
const BANNED = /^#?(?:told|his|her|tell|letGo|goTheWay|cutShort|whose|whom)$|Told|^#?told[A-Z]|^#?tell[A-Z]/

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? sources(join(folder, entry.name))
      : entry.name.endsWith('.ts') && !entry.isSymbolicLink()
        ? [join(root, folder, entry.name)]
        : [],
  )
}

function* identifiersIn(node: unknown): Generator<string> {
  if (Array.isArray(node)) for (const each of node) yield* identifiersIn(each)
  else if (typeof node === 'object' && node !== null) {
    if ('type' in node && 'name' in node && typeof node.name === 'string') yield node.name
    for (const child of Object.values(node)) yield* identifiersIn(child)
  }
}

/** Names of types, and of properties that a type declares: esbuild leaves them out. */
const TYPE_NAMES = /^\s*(?:export )?(?:interface|type|readonly) (\w+)/gm

async function namesIn(file: string): Promise<readonly string[]> {
  const text = readFileSync(file, 'utf8')
  const { code } = await transform(text, { loader: 'ts', target: 'esnext' })
  const ofTypes = [...text.matchAll(TYPE_NAMES)].map(([, name]) => name!)
  return [...new Set([...identifiersIn(parseAst(code)), ...ofTypes])]
}

it('identifiers in the code do not use the words that docs/style.md forbids', async () => {
  const files = [...sources('src'), ...sources('test')]
  expect(files.length).toBeGreaterThan(1_500)
  const found = await Promise.all(
    files.map(async (file) =>
      (await namesIn(file)).filter((name) => BANNED.test(name)).map((name) => `${relative(root, file)}: ${name}`),
    ),
  )
  expect(found.flat()).toEqual([])
})
