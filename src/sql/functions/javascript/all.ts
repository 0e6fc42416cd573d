import type { ScalarFunction } from './scalar-function.ts'

/** Every function of the engine written in JavaScript. */
export const scalarFunctions: readonly ScalarFunction[] = []
