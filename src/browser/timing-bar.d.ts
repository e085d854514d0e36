/** What a timing bar needs of a call: milliseconds, null if not known. */
export interface TimedCall {
  admissionMs: number | null
  queueMs: number | null
  permitMs: number | null
  upstreamMs: number | null
  totalMs: number
  quotedMs: number | null
}

export interface TimedPart {
  name: string
  label: string
  meaning: string
  ms: number
  x: number
  width: number
}

export function timingOf(call: TimedCall): { parts: TimedPart[]; forecastX: number | undefined }
export function durationWords(ms: number): string
export function timingBar(call: TimedCall): string
