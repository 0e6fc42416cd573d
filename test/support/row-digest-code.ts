import { readFileSync } from 'node:fs'
import wabt from 'wabt'

/** The expected text of `src/shared/row-digest-code.ts`: the compiled `row-digest.wat`. */
export async function rowDigestCode(): Promise<string> {
  const name = 'row-digest.wat'
  const { parseWat } = await wabt()
  const module = parseWat(name, readFileSync(new URL(`../../src/shared/${name}`, import.meta.url), 'utf8'))
  const { buffer } = module.toBinary({})
  return [
    `/** ${name}, compiled; \`npm run wasm\` writes it. */`,
    'export const ROW_DIGEST_CODE =',
    `  '${Buffer.from(buffer).toString('base64')}'`,
    '',
  ].join('\n')
}
