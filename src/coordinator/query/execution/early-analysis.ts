import { EngineError } from '../../../shared/engine-error.ts'
import type { PlannedStatement, RenderedQuery } from '../../../planner/planned-statement.ts'
import { bytesRead } from '../../dispatch/catalog-metadata.ts'
import type { Analysis } from './analysis.ts'

/**
 * The analysis of a statement that may begin before its route is known, because a routing rule asks for the size of the
 * statement. If the statement stays here, it continues with the same analysis and the same splits.
 */
export class EarlyAnalysis {
  readonly #analysis: Pick<Analysis, 'analyze' | 'listSplits'>
  #planned: PlannedStatement | undefined

  constructor(analysis: Pick<Analysis, 'analyze' | 'listSplits'>) {
    this.#analysis = analysis
  }

  /**
   * The compressed bytes that the statement reads; undefined if it reads no rows, and if this server cannot analyse it:
   * the error is reported if the statement stays here.
   */
  async bytes(): Promise<number | undefined> {
    try {
      this.#planned ??= await this.#analysis.analyze()
      const query = queryOf(this.#planned)
      if (!query) return undefined
      const { splits } = await this.#analysis.listSplits(query)
      return bytesRead(query, splits)
    } catch (error) {
      if (error instanceof EngineError) return undefined
      throw error
    }
  }

  /** The analysis, for a statement that stays here. A write is analysed again after the client's next request. */
  async take(): Promise<PlannedStatement> {
    const planned = this.#planned ?? (await this.#analysis.analyze())
    this.drop()
    return planned
  }

  /** Frees the memory of the analysis. */
  drop(): void {
    this.#planned = undefined
  }
}

function queryOf(statement: PlannedStatement): RenderedQuery | undefined {
  switch (statement.kind) {
    case 'query':
      return statement.query
    case 'explain':
      return queryOf(statement.statement)
    case 'write':
      return statement.source?.query
    case 'session':
    case 'call':
      return undefined
  }
}
