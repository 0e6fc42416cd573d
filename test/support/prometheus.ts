import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { unpackedPackages } from './debian-packages.ts'
import { freePort } from './postgres.ts'

const run = promisify(execFile)

/** The programs of Prometheus, installed or unpacked from Debian's package into the cache of tests. */
export interface PrometheusPrograms {
  readonly prometheus: string
  readonly promtool: string
}

/**
 * Finds or downloads Prometheus. Without it tests are skipped with a message. In CI a missing Prometheus is a failure.
 * @returns undefined when Prometheus is not available
 */
export async function findPrometheus(): Promise<PrometheusPrograms | undefined> {
  const found = (await installed()) ?? (await unpacked())
  if (found) return found
  const line = 'SKIPPED: no Prometheus (apt-get install prometheus)'
  if (process.env['CI'] === 'true') throw new Error(line)
  process.stderr.write(`${line}\n`)
  return undefined
}

async function installed(): Promise<PrometheusPrograms | undefined> {
  const programs = { prometheus: 'prometheus', promtool: 'promtool' }
  return run('promtool', ['--version']).then(
    () => programs,
    () => undefined,
  )
}

async function unpacked(): Promise<PrometheusPrograms | undefined> {
  const folder = await unpackedPackages('prometheus', ['prometheus'], 'usr/bin/promtool').catch(() => undefined)
  if (folder === undefined) return undefined
  return { prometheus: join(folder, 'usr/bin/prometheus'), promtool: join(folder, 'usr/bin/promtool') }
}

export interface RunningPrometheus {
  readonly url: string
  /** The values of an instant query, by their labels as JSON. @throws Error with the message of Prometheus */
  query(expr: string): Promise<readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]>
  get(path: string): Promise<unknown>
  stop(): Promise<void>
}

export interface ScrapeTarget {
  readonly job: string
  /** host:port */
  readonly address: string
}

/** Starts a Prometheus on loopback that scrapes each second and evaluates the rules. */
export function startPrometheus(
  programs: PrometheusPrograms,
  targets: readonly ScrapeTarget[],
  ruleFile: string,
): Promise<RunningPrometheus> {
  const jobs = [...new Set(targets.map(({ job }) => job))]
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [ruleFile],
    scrape_configs: jobs.map((job) => ({
      job_name: job,
      static_configs: [{ targets: targets.filter((target) => target.job === job).map(({ address }) => address) }],
    })),
  }
  return startPrometheusFrom(programs, JSON.stringify(config))
}

/** @param config the text of the configuration file */
export async function startPrometheusFrom(
  { prometheus }: PrometheusPrograms,
  config: string,
): Promise<RunningPrometheus> {
  const work = await mkdtemp(join(tmpdir(), 'quipu-prometheus-'))
  const port = await freePort()
  await writeFile(join(work, 'prometheus.yaml'), config)
  const child = spawn(
    prometheus,
    [
      `--config.file=${join(work, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(work, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=exemplar-storage',
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let words = ''
  child.stderr?.on('data', (text: Buffer) => (words += text.toString()))
  const url = `http://127.0.0.1:${port}`
  await ready(url, child, () => words)
  const get = async (path: string): Promise<unknown> => {
    const answer = (await (await fetch(url + path)).json()) as { status: string; error?: string; data: unknown }
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`)
    return answer.data
  }
  return {
    url,
    get,
    async query(expr) {
      const data = (await get(`/api/v1/query?query=${encodeURIComponent(expr)}`)) as {
        result: readonly { metric: Record<string, string>; value: [number, string] }[]
      }
      return data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }))
    },
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      await rm(work, { recursive: true, force: true })
    },
  }
}

async function ready(url: string, child: ChildProcess, words: () => string): Promise<void> {
  for (const until = performance.now() + 30_000; performance.now() < until;) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended: ${words()}`)
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined)
    if (answer?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  child.kill('SIGKILL')
  throw new Error(`Prometheus did not get ready: ${words()}`)
}
