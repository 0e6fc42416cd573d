/** What is used of the library, by name: loaded late as a module of ours, since a bundle knows no names of a library that is. */
export { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
