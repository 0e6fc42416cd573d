import type { QueryType } from '../../../sql/front-end.ts'

/**
 * The type of a statement in Trino's classification, as its recorded text says: selectors of resource groups and
 * property rules see the same type after a restart. It is found when it is first needed.
 */
export class RecordedType {
  readonly #find: () => QueryType | undefined
  #found: { readonly type: QueryType | undefined } | undefined

  constructor(find: () => QueryType | undefined) {
    this.#find = find
  }

  /** The type; undefined if the text is no statement. */
  get(): QueryType | undefined {
    this.#found ??= { type: this.#find() }
    return this.#found.type
  }

  /** Keeps the type that another thread found, so that this thread need not parse the text. */
  remember(type: QueryType | undefined): void {
    this.#found = { type }
  }
}
