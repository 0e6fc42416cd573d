// With `NODE_OPTIONS=--import …/bench/noop-log/register.mjs` a server built as always keeps its events nowhere.
import { register } from 'node:module'

register('./hooks.mjs', import.meta.url)
