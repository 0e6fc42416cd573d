// Adds to package-lock.json the optional platform packages (bindings of DuckDB, Postgres, rollup …) that npm left
// out because they do not fit the machine on which the lock was written. Without an entry, `npm ci` of npm 11 refuses
// the lock elsewhere. Versions come from the parents' optionalDependencies; os, cpu and libc come from the registry.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const path = new URL('../../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(path, 'utf8'))
const packages = lock.packages

const SYSTEMS = ['darwin', 'linux', 'win32', 'freebsd', 'openbsd', 'netbsd', 'android', 'sunos', 'aix', 'openharmony']
const PROCESSORS = ['arm64', 'x64', 'arm', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'mips64el', 'wasm32']

/** The entry of a platform package in the registry; derived from its name if the registry lacks the version. */
function platformOf(name, version) {
  try {
    const text = execFileSync('npm', ['view', `${name}@${version}`, 'os', 'cpu', 'libc', 'version', '--json'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const found = JSON.parse(text)
    return Array.isArray(found) ? found.at(-1) : found
  } catch {
    const words = name.split(/[/@_-]/)
    const os = SYSTEMS.find((one) => words.includes(one) || (one === 'win32' && words.includes('windows')))
    const cpu = PROCESSORS.find((one) => words.includes(one))
    const libc = words.includes('musl') ? 'musl' : words.includes('gnu') ? 'glibc' : undefined
    return { version: version.replace(/^[\^~]/, ''), os, cpu, libc }
  }
}

let added = 0
for (const [parent, entry] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = `${parent}/node_modules/${name}`
    const hoisted = `node_modules/${name}`
    if (packages[nested] || packages[hoisted]) continue
    const platform = platformOf(name, version)
    packages[hoisted] = {
      version: platform.version,
      ...(entry.dev ? { dev: true } : {}),
      optional: true,
      ...(platform.os ? { os: [platform.os].flat() } : {}),
      ...(platform.cpu ? { cpu: [platform.cpu].flat() } : {}),
      ...(platform.libc ? { libc: [platform.libc].flat() } : {}),
    }
    added++
  }
}
lock.packages = Object.fromEntries(
  Object.entries(packages)
    .map(([key, entry]) => {
      delete entry.resolved
      return [key, entry]
    })
    .sort(([a], [b]) => (a < b ? -1 : 1)),
)
writeFileSync(path, JSON.stringify(lock, null, 2) + '\n')
console.log(`${added} optional platform packages added to the lock`)
