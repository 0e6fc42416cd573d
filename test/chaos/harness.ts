import { startKafka, kafkaIsAvailable, type TestKafka } from '../support/kafka.ts'
import { pythonClients } from '../support/real-clients.ts'
import { canMount } from './own-disk.ts'
import { planOf, type Abilities } from './plan.ts'
import { rightAnswers, type RightAnswer } from './right-answers.ts'
import { runSeed, type SeedResult } from './run-seed.ts'
import type { StatementName } from './statements.ts'
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
  /** Leaves out the published Python client. */
  readonly withoutPython?: boolean
}

/** The shared parts of all seeds: right answers, a data folder to copy, Python clients, a broker for each lane. */
export class Harness {
  readonly #options: HarnessOptions
  readonly #can: Abilities
  readonly #template: DataTemplate
  readonly #right: ReadonlyMap<StatementName, RightAnswer>
  readonly #python: Awaited<ReturnType<typeof pythonClients>>
  readonly #brokers = new Map<number, Promise<TestKafka>>()

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

  async close(): Promise<void> {
    for (const broker of this.#brokers.values()) await (await broker).stop()
    await this.#template.remove()
  }

  #broker(lane: number): Promise<TestKafka> {
    const known = this.#brokers.get(lane) ?? startKafka()
    this.#brokers.set(lane, known)
    return known
  }
}
