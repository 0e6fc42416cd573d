// Writes what the files of the last whole run took to test/file-seconds.json, by which the next is ordered: npm run record:seconds
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const cache = new URL('../../node_modules/.vite/vitest/', import.meta.url)
const [folder] = readdirSync(cache)
const { results } = JSON.parse(readFileSync(new URL(`${folder}/results.json`, cache), 'utf8'))
const seconds = results
  .map(([key, { duration }]) => [key.slice(key.indexOf(':test/') + ':test/'.length), Math.round(duration / 1000)])
  .filter(([, taken]) => taken >= 2)
  .sort(([a], [b]) => (a < b ? -1 : 1))
writeFileSync(
  new URL('../file-seconds.json', import.meta.url),
  `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`,
)
