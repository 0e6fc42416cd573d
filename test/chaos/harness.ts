import { startKafka, kafkaIsAvailable, type TestKafka } from '../support/kafka.ts'
import { pythonClients } from '../support/real-clients.ts'
import { canMount } from './own-disk.ts'
import { planOf, type Abilities } from './plan.ts'
import { rightAnswers, type RightAnswer } from './right-answers.ts'
import { runSeed, type SeedResult } from './run-seed.ts'
import type { StatementName } from './statements.ts'
import { ClusterSeeds } from './run-cluster-seed.ts'
import { createDataTemplate, type DataTemplate } from './template.ts'

export interface HarnessOptions {
  readonly log: Abilities['log']
  readonly faults: Abilities['faults']
  readonly clients: number
  /** The number of clients that write, in addition to those that read. @default 0 */
  readonly writers?: number
  /** How long clients begin statements and faults happen. */
  readonly loadMs: number
  readonly keepIn: string
  /** Whether two clusters are behind the server. @default false */
  readonly clusters?: boolean
  /** Leaves out the published Python client. */
  readonly withoutPython?: boolean
}

/** After so many seeds on the same gateway and clusters, their log is checked, and others are started. */
const SEEDS_OF_SERVERS = 10

/** The shared parts of all seeds: right answers, a data folder to copy, Python clients, a broker for each lane. */
export class Harness {
  readonly #options: HarnessOptions
  readonly #can: Abilities
  readonly #template: DataTemplate
  readonly #right: ReadonlyMap<StatementName, RightAnswer>
  readonly #python: Awaited<ReturnType<typeof pythonClients>>
  readonly #brokers = new Map<number, Promise<TestKafka>>()
  readonly #clusters = new Map<number, { readonly seeds: ClusterSeeds; runs: number }>()

  private constructor(
    options: HarnessOptions,
    can: Abilities,
    template: DataTemplate,
    right: ReadonlyMap<StatementName, RightAnswer>,
    python: Awaited<ReturnType<typeof pythonClients>>,
  ) {
    this.#options = options
    this.#can = can
    this.#template = template
    this.#right = right
    this.#python = python
  }

  static async open(options: HarnessOptions): Promise<Harness> {
    const { log, faults } = options
    const kafka = log !== 'postgres' && (await kafkaIsAvailable())
    if (log === 'kafka' && !kafka) throw new Error('There is no way to run Kafka here')
    const can: Abilities = { log: kafka ? log : 'postgres', disk: faults === 'all' && (await canMount()), faults }
    const python = options.withoutPython ? undefined : await pythonClients()
    return new Harness(options, can, await createDataTemplate(), await rightAnswers(), python)
  }

  get abilities(): Abilities {
    return this.#can
  }

  /** @param lane the number of the lane; lanes run at the same time */
  async run(seed: number, lane = 0): Promise<SeedResult> {
    if (this.#options.clusters) return this.#runWithClusters(seed, lane)
    const { loadMs, clients, writers = 0, keepIn } = this.#options
    const plan = planOf(seed, loadMs, this.#can)
    const kafka = plan.log === 'kafka' ? await this.#broker(lane) : undefined
    return runSeed({
      plan,
      loadMs,
      clients,
      writers,
      keepIn,
      template: this.#template,
      right: this.#right,
      python: this.#python,
      ...(kafka ? { kafka } : {}),
    })
  }

  /** Stops everything. @returns the violations that the last checks of shared servers found, a line each */
  async close(): Promise<string[]> {
    const wrong = []
    for (const { seeds } of this.#clusters.values()) wrong.push(...(await seeds.close()))
    for (const broker of this.#brokers.values()) await (await broker).stop()
    await this.#template.remove()
    return wrong
  }

  async #runWithClusters(seed: number, lane: number): Promise<SeedResult> {
    const { loadMs, clients, writers = 0, keepIn } = this.#options
    const options = { loadMs, clients, writers, keepIn, template: this.#template, right: this.#right }
    const shared = this.#clusters.get(lane) ?? { seeds: await ClusterSeeds.start(options, seed), runs: 0 }
    this.#clusters.set(lane, shared)
    const result = await shared.seeds.run(seed)
    if (++shared.runs < SEEDS_OF_SERVERS && result.verdict !== 'wrong') return result
    this.#clusters.delete(lane)
    const wrong = await shared.seeds.close()
    return wrong.length === 0 ? result : { ...result, verdict: 'wrong', wrong: [...result.wrong, ...wrong] }
  }

  #broker(lane: number): Promise<TestKafka> {
    const known = this.#brokers.get(lane) ?? startKafka()
    this.#brokers.set(lane, known)
    return known
  }
}
