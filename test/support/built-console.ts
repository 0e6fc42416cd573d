import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vite'
import { withLock } from './run-folder.ts'

const sources = new URL('../../console/', import.meta.url).pathname
const index = new URL('../../dist/console/index.html', import.meta.url).pathname

/**
 * The folders that `createUiRoutes` serves. Builds the console first if a source is newer than its last build, in one
 * test file at a time.
 */
export async function builtConsole(): Promise<{ readonly console: string; readonly logIn: string }> {
  if (isStale())
    await withLock(new URL('../../dist/console.lock', import.meta.url).pathname, async () => {
      if (isStale()) await build({ configFile: join(sources, 'vite.config.ts') })
    })
  return {
    console: new URL('../../dist/console', import.meta.url).pathname,
    logIn: new URL('../../etc/ui', import.meta.url).pathname,
  }
}

function isStale(): boolean {
  const changed = readdirSync(sources, { recursive: true, encoding: 'utf8' }).map(
    (name) => statSync(join(sources, name)).mtimeMs,
  )
  return !existsSync(index) || Math.max(...changed) > statSync(index).mtimeMs
}
