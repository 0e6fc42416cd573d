import { readFileSync } from 'node:fs'

/** The project's folder: two folders up from here in `src/` and `dist/` alike. */
const root = new URL('../../', import.meta.url)

const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}

/** The version in package.json. */
export const version: string = manifest.version

/** The version of DuckDB that its bindings carry. */
export const duckdbVersion: string = (manifest.dependencies['@duckdb/node-api'] ?? 'unknown').replace(/-r\.\d+$/, '')

/** The commit of a clone that runs; `unknown` if there is no repository. */
export const revision: string = revisionOf()

function revisionOf(): string {
  try {
    const head = readFileSync(new URL('.git/HEAD', root), 'utf8').trim()
    const commit = head.startsWith('ref: ') ? readFileSync(new URL(`.git/${head.slice(5)}`, root), 'utf8').trim() : head
    return commit.slice(0, 12)
  } catch {
    return 'unknown'
  }
}
