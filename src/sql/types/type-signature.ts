import type { SqlType } from './sql-type.ts'
import { bareDatetimeTypeText, typeText, varcharLength } from './type-text.ts'

/** `columns[].typeSignature`. Clients index `arguments` without a check, so it is always present. */
export interface TypeSignature {
  readonly rawType: string
  readonly arguments: readonly TypeSignatureArgument[]
  /** Clients of the Presto family expect both fields, empty. */
  readonly typeArguments?: readonly []
  readonly literalArguments?: readonly []
}

type TypeSignatureArgument =
  | { readonly kind: 'LONG'; readonly value: number }
  | { readonly kind: 'TYPE'; readonly value: TypeSignature }
  | {
      readonly kind: 'NAMED_TYPE'
      readonly value: { readonly fieldName?: { readonly name: string }; readonly typeSignature: TypeSignature }
    }

/** The client's capabilities that decide the format of types and values. */
export interface WireOptions {
  /**
   * Whether the client has the capability PARAMETRIC_DATETIME: types then show (p) and values p digits, otherwise three
   * digits.
   */
  readonly parametricDatetime: boolean
  /** Whether the client sends X-Presto-* headers: signatures then contain the old, empty fields besides `arguments`. */
  readonly prestoFamily: boolean
}

export function wireTypeText(type: SqlType, options: Pick<WireOptions, 'parametricDatetime'>): string {
  return options.parametricDatetime ? typeText(type) : bareDatetimeTypeText(type)
}

export function typeSignature(type: SqlType, options: WireOptions): TypeSignature {
  const signature = { rawType: type.kind, arguments: signatureArguments(type, options) }
  return options.prestoFamily ? { ...signature, typeArguments: [], literalArguments: [] } : signature
}

function signatureArguments(type: SqlType, options: WireOptions): readonly TypeSignatureArgument[] {
  const long = (value: number): TypeSignatureArgument => ({ kind: 'LONG', value })
  const nested = (inner: SqlType): TypeSignatureArgument => ({ kind: 'TYPE', value: typeSignature(inner, options) })
  switch (type.kind) {
    case 'decimal':
      return [long(type.precision), long(type.scale)]
    case 'char':
      return [long(type.length)]
    case 'varchar':
      return [long(varcharLength(type.length))]
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return options.parametricDatetime ? [long(type.precision)] : []
    case 'array':
    case 'qdigest':
      return [nested(type.element)]
    case 'map':
      return [nested(type.key), nested(type.value)]
    case 'row':
      return type.fields.map(({ name, type: field }) => ({
        kind: 'NAMED_TYPE',
        value: {
          ...(name === undefined ? {} : { fieldName: { name } }),
          typeSignature: typeSignature(field, options),
        },
      }))
    case 'function':
      throw new Error('A lambda is never a column')
    default:
      return []
  }
}
