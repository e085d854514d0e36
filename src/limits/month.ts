/** A UTC month, `2026-11`, and its bounds, milliseconds since the epoch. */
export interface Month {
  name: string
  startsAt: number
  endsAt: number
}

/** Nearly every time lies in the month that was computed last, so this month is cached. */
let latest: Month = { name: '', startsAt: 0, endsAt: 0 }

export function monthOf(epochMs: number): Month {
  if (epochMs >= latest.startsAt && epochMs < latest.endsAt) return latest
  const date = new Date(epochMs)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  latest = { name: date.toISOString().slice(0, 7), startsAt: Date.UTC(year, month), endsAt: Date.UTC(year, month + 1) }
  return latest
}
