import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/postgres.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { accessFixture, type AskedServer } from './asked-cases.ts'

/** A Trino of one node with `memory` and `tpch`, under a rules file. It trusts the user name that a client sends. */
export interface TrinoServer extends AskedServer {
  stop(): Promise<void>
}

/**
 * Starts Trino and waits until it answers (a minute on two cores).
 * @param home the folder of an unpacked `trino-server` archive; `JAVA_HOME` or `PATH` gives the Java
 */
export async function startTrino(home: string, folder: string): Promise<TrinoServer> {
  const port = await freePort()
  const etc = join(folder, 'etc')
  mkdirSync(join(etc, 'catalog'), { recursive: true })
  const write = (name: string, lines: readonly string[]): void =>
    writeFileSync(join(etc, name), `${lines.join('\n')}\n`)
  write('config.properties', [
    'coordinator=true',
    'node-scheduler.include-coordinator=true',
    `http-server.http.port=${port}`,
    `discovery.uri=http://127.0.0.1:${port}`,
    'query.max-memory=512MB',
  ])
  write('node.properties', ['node.environment=access', `node.data-dir=${join(folder, 'data')}`])
  write('jvm.config', ['-Xmx1500m', '-XX:+UseSerialGC', '-Djdk.attach.allowAttachSelf=true', '-Duser.timezone=UTC'])
  write('catalog/memory.properties', ['connector.name=memory'])
  write('catalog/tpch.properties', ['connector.name=tpch', 'tpch.splits-per-node=1'])
  write('access-control.properties', [
    'access-control.name=file',
    `security.config-file=${join(etc, 'rules.json')}`,
    'security.refresh-period=100ms',
  ])
  write('group-provider.properties', ['group-provider.name=file', `file.group-file=${join(etc, 'groups')}`])
  write('groups', [accessFixture('groups')])
  const writeRules = (text: string): void => writeFileSync(join(etc, 'rules.json'), text)
  writeRules('{}')
  const { JAVA_HOME: java, PATH: path } = process.env
  const server = spawn(join(home, 'bin', 'launcher'), ['run', '--etc-dir', etc], {
    env: { ...process.env, ...(java !== undefined && { PATH: `${join(java, 'bin')}:${path}` }) },
    stdio: 'ignore',
  })
  const exit = new Promise<never>((_, reject) => {
    server.once('error', reject)
    server.once('exit', (code) => reject(new Error(`Trino ended with ${code}`)))
  })
  exit.catch(() => {})
  const url = `http://127.0.0.1:${port}`
  await Promise.race([exit, waitUntil('Trino has started', () => hasStarted(url), 600_000)])
  return {
    url,
    writeRules,
    async stop() {
      server.kill('SIGTERM')
      await exit.catch(() => {})
    },
  }
}

async function hasStarted(url: string): Promise<boolean> {
  try {
    const { starting } = (await (await fetch(`${url}/v1/info`)).json()) as { readonly starting: boolean }
    return !starting
  } catch {
    return false
  }
}
