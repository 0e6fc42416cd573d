import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useRef, useState, type KeyboardEvent, type RefObject } from 'react'
import uPlot from 'uplot'
import { useTimeZone, type ShownZone } from '../shell/time-zone.tsx'
import { Explained } from './explained.tsx'
import type { Explanation } from './explanations.ts'
import { shownTime } from './instant.tsx'
import classes from './series-chart.module.css'

/** A value at a time, milliseconds since the epoch. */
export interface Sample {
  readonly at: number
  readonly value: number
}

/** The time that the axis shows at least, milliseconds. From one sample alone it would have no length. */
const LEAST_SPAN_MS = 60_000

/** A value over the last minutes, with its newest and its largest value. Pointer and arrow keys show the other values. */
export function SeriesChart({
  name,
  explanation,
  samples,
  shown,
}: {
  readonly name: string
  readonly explanation: Explanation
  /** In the order of time, at least one. */
  readonly samples: readonly Sample[]
  readonly shown: (value: number) => string
}) {
  const { zone } = useTimeZone()
  const [pointed, setPointed] = useState<number | null>(null)
  const host = useRef<HTMLDivElement>(null)
  const plot = usePlot(host, samples, zone, setPointed)
  const most = samples.reduce((high, { value }) => Math.max(high, value), 0)
  const text = `${shown(samples.at(-1)?.value ?? 0)}, at most ${shown(most)}`
  const sample = pointed === null ? undefined : samples[pointed]
  return (
    <figure className={classes.figure}>
      <figcaption>
        <Explained by={explanation}>
          {name}: {text}
        </Explained>
      </figcaption>
      <div
        ref={host}
        className={classes.chart}
        role="img"
        aria-label={`${name} over the last minutes: ${text}`}
        tabIndex={0}
        onKeyDown={(event) => plot.current && pointByKey(plot.current, event)}
        onBlur={() => plot.current && pointAt(plot.current, undefined)}
      />
      <div role="status" className={classes.pointed} data-explains>
        {sample ? `${shownTime(sample.at, zone)}: ${shown(sample.value)}` : null}
      </div>
    </figure>
  )
}

/** Draws samples in an element: again when they, the zone, the colors or the width change. */
function usePlot(
  host: RefObject<HTMLDivElement | null>,
  samples: readonly Sample[],
  zone: ShownZone,
  onPoint: (index: number | null) => void,
): RefObject<uPlot | null> {
  const plot = useRef<uPlot>(null)
  const shownZone = useRef(zone)
  const scheme = useComputedColorScheme()
  useEffect(() => {
    const element = host.current
    if (!element) return
    const made = new uPlot(
      optionsOf(element, () => shownZone.current, onPoint),
      [[], []],
      element,
    )
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize(sizeOf(element)))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [host, onPoint])
  useEffect(() => {
    plot.current?.setData([samples.map(({ at }) => at), samples.map(({ value }) => value)])
  }, [samples])
  useEffect(() => {
    shownZone.current = zone
    // The document has the colors of the new scheme with the next frame.
    const frame = requestAnimationFrame(() => plot.current?.redraw(false, true))
    return () => cancelAnimationFrame(frame)
  }, [zone, scheme])
  return plot
}

function optionsOf(
  element: HTMLElement,
  zone: () => ShownZone,
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const color = (name: string) => () => getComputedStyle(element).getPropertyValue(`--mantine-color-${name}`)
  const axis: uPlot.Axis = {
    stroke: color('dimmed'),
    grid: { stroke: color('default-border'), width: 1 },
    ticks: { stroke: color('default-border'), width: 1 },
  }
  return {
    ...sizeOf(element),
    ms: 1,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { range: (_plot, min, max) => [Math.min(min, max - LEAST_SPAN_MS), max] },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 30, space: 70, values: (_plot, times) => times.map((time) => shownTime(time, zone())) },
      { ...axis, space: 25 },
    ],
    series: [{}, { stroke: color('blue-6'), width: 1.5 }],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  }
}

function sizeOf({ clientWidth, clientHeight }: HTMLElement): { readonly width: number; readonly height: number } {
  return { width: clientWidth, height: clientHeight }
}

/** The sample that a key points at, from the one that is pointed at; before any, from the newest. */
function pointByKey(plot: uPlot, event: KeyboardEvent): void {
  const last = plot.data[0].length - 1
  const now = plot.cursor.idx ?? undefined
  const targets: Readonly<Record<string, number | undefined>> = {
    ArrowLeft: now === undefined ? last : Math.max(0, now - 1),
    ArrowRight: now === undefined ? last : Math.min(last, now + 1),
    Home: 0,
    End: last,
    Escape: undefined,
  }
  if (!Object.hasOwn(targets, event.key)) return
  event.preventDefault()
  pointAt(plot, targets[event.key])
}

function pointAt(plot: uPlot, index: number | undefined): void {
  const at = index === undefined ? undefined : plot.data[0][index]
  // uPlot points at no sample if the cursor is outside of the chart.
  plot.setCursor(at === undefined ? { left: -10, top: -10 } : { left: plot.valToPos(at, 'x'), top: 0 })
}
