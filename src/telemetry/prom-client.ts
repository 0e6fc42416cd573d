/**
 * The parts of the library in use, by name. Loaded late as a module of Quipu: a bundle knows no export names of a
 * library that is loaded late.
 */
export { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
