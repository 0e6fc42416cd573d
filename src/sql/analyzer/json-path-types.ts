import { unreachable } from '../../shared/unreachable.ts'
import type { JsonPath, PathNode, PathPredicate } from '../../duckdb/json-path/json-path.ts'
import { BIGINT, DOUBLE, INTEGER, isNumeric, varchar, VARCHAR, BOOLEAN, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'

/** The length of the longest name that `type()` returns, according to the standard. */
const TYPE_NAME = varchar(27)

/** Refuses a path that can never succeed, with a message. */
type Refuse = (message: string) => never

/**
 * The type of a path's result if it is known without a document: literals, `last`, size(), type(), double() and
 * expressions over these. Refuses operations that such types do not support, and variables without a passed value.
 */
export function typeOfPath(path: JsonPath, passed: readonly string[], refuse: Refuse): SqlType | undefined {
  return new PathTypes(passed, refuse).of(path.root)
}

class PathTypes {
  readonly #passed: readonly string[]
  readonly #refuse: Refuse

  constructor(passed: readonly string[], refuse: Refuse) {
    this.#passed = passed
    this.#refuse = refuse
  }

  of(node: PathNode): SqlType | undefined {
    switch (node.kind) {
      case 'context':
      case 'current':
      case 'null':
        return undefined
      case 'last':
        return INTEGER
      case 'literal':
        return literalType(node.value)
      case 'variable':
        return this.#variable(node.name)
      case 'member':
      case 'descendant':
        this.of(node.base)
        return undefined
      case 'elements':
        this.of(node.base)
        for (const { from, to } of node.subscripts ?? []) {
          this.of(from)
          if (to !== undefined) this.of(to)
        }
        return undefined
      case 'filter': {
        const type = this.of(node.base)
        this.#predicate(node.predicate)
        return type
      }
      case 'method':
        return this.#method(node)
      case 'unary': {
        const type = this.of(node.base)
        if (type === undefined || isNumeric(type)) return type
        return this.#refuse(`invalid operand type (${typeName(type)}) in JSON path arithmetic unary expression`)
      }
      case 'binary': {
        const [left, right] = [this.of(node.left), this.of(node.right)]
        if (left === undefined || right === undefined) return undefined
        if (isNumeric(left) && isNumeric(right))
          return left.kind === 'double' || right.kind === 'double' ? DOUBLE : left
        const message = `invalid operand types (${typeName(left)} and ${typeName(right)}) in JSON path arithmetic binary expression`
        return this.#refuse(message)
      }
      default:
        return unreachable(node)
    }
  }

  #variable(name: string): undefined {
    if (this.#passed.includes(name)) return undefined
    const similar = this.#passed.some((each) => each.toLowerCase() === name.toLowerCase())
    const hint = similar ? `. Try quoting "${name}" in the PASSING clause to match case` : ''
    return this.#refuse(`no value passed for parameter ${name}${hint}`)
  }

  #method({ base, method }: Extract<PathNode, { kind: 'method' }>): SqlType | undefined {
    const type = this.of(base)
    switch (method) {
      case 'type':
        return TYPE_NAME
      case 'size':
        return INTEGER
      case 'keyvalue':
        return undefined
      case 'double':
        if (type === undefined || isNumeric(type) || type.kind === 'varchar') return DOUBLE
        return this.#refuse(`cannot perform JSON path double() method with ${typeName(type)} argument`)
      case 'abs':
      case 'ceiling':
      case 'floor':
        if (type === undefined || isNumeric(type)) return type
        return this.#refuse(`cannot perform JSON path ${method}() method with ${typeName(type)} argument`)
      default:
        return unreachable(method)
    }
  }

  #predicate(predicate: PathPredicate): void {
    switch (predicate.kind) {
      case 'and':
      case 'or':
        this.#predicate(predicate.left)
        this.#predicate(predicate.right)
        return
      case 'not':
      case 'isUnknown':
        return this.#predicate(predicate.predicate)
      case 'compare':
        this.of(predicate.left)
        this.of(predicate.right)
        return
      case 'exists':
        this.of(predicate.path)
        return
      case 'startsWith':
        this.of(predicate.path)
        this.of(predicate.prefix)
        return
      default:
        return unreachable(predicate)
    }
  }
}

function literalType(value: Extract<PathNode, { kind: 'literal' }>['value']): SqlType {
  if (typeof value === 'string') return VARCHAR
  if (typeof value === 'boolean') return BOOLEAN
  if (!/^\d+$/.test(value.number)) return DOUBLE
  return Number(value.number) <= 2_147_483_647 ? INTEGER : BIGINT
}
