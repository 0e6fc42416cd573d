import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const assets = join(import.meta.dirname, '../dist/console/assets')

/** Writes each asset once more, compressed: the coordinator does not spend CPU on it. */
const compressed: Plugin = {
  name: 'compressed assets',
  closeBundle() {
    for (const name of readdirSync(assets))
      writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
  },
}

/**
 * Modules that libraries import but the console never runs, each with the little that its importers still need. Without
 * this, all of their code is in the bundle: their importers are not written so that a bundler can drop it.
 */
const UNUSED: Readonly<Record<string, string>> = {
  // Tables scroll in elements of the console (parts/scrolled-table.tsx).
  '@mantine/core/esm/components/Table/TableScrollContainer.mjs': 'export const TableScrollContainer = undefined',
  // The provider has `withCssVariables={false}` and `withGlobalClasses={false}`: the style sheet has both.
  '@mantine/core/esm/core/MantineProvider/MantineCssVariables/MantineCssVariables.mjs':
    'export const MantineCssVariables = undefined',
  '@mantine/core/esm/core/MantineProvider/MantineClasses/MantineClasses.mjs': 'export const MantineClasses = undefined',
  // Graphs move and zoom, but no color moves. Without a color, d3 takes a value for a text.
  'd3-color/dist/d3-color.mjs':
    'export function color() { return null }\nexport const rgb = color, hsl = color, lab = color, hcl = color, cubehelix = color',
}

/** Palettes of the component kit whose colors the console does not use. */
const UNUSED_PALETTES = /--mantine-color-(?:pink|grape|violet|indigo|cyan|lime|yellow)-[\w-]+:[^;}]*;/g

/** Leaves unused parts of libraries out. Fails if a library no longer has such a part. */
function withoutUnused(): Plugin {
  const left = new Set([...Object.keys(UNUSED), 'palettes'])
  return {
    name: 'without unused parts',
    enforce: 'pre',
    load(id) {
      const path = id.split('/node_modules/').at(-1) ?? ''
      left.delete(path)
      return UNUSED[path]
    },
    transform(code, id) {
      if (!id.endsWith('/default-css-variables.css')) return undefined
      const less = code.replace(UNUSED_PALETTES, '')
      if (less !== code) left.delete('palettes')
      return less
    },
    buildEnd(error) {
      if (!error && left.size > 0) this.error(`The libraries have these parts no longer: ${[...left].join(', ')}`)
    },
  }
}

/** Builds the console into `dist/console`, which the coordinator serves under `/ui`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/ui/',
  logLevel: 'warn',
  plugins: [withoutUnused(), compressed],
  esbuild: { jsx: 'automatic', jsxDev: false },
  // Tests run this build with NODE_ENV=test, for which React would have its larger development version.
  define: { 'process.env.NODE_ENV': JSON.stringify('production') },
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy refuses scripts and styles inside the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The graphs and the editor are chunks of their own; the first chunk has the component kit.
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      // A small chunk costs more than it saves.
      output: { experimentalMinChunkSize: 4000 },
      // Libraries mark modules for server rendering, which the console does not use.
      onwarn: (warning, warn) => (warning.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : warn(warning)),
    },
  },
})
