import type { UpstreamRow } from '../../fleet/snapshot.ts'

export function isIdle(row: UpstreamRow): boolean
export function byTrouble(rows: UpstreamRow[]): UpstreamRow[]

/** HTML of each cell; `at` is when the row was read. */
export function rowCells(
  row: UpstreamRow,
  at: number,
): { health: string; queue: string; cap: string; traffic: string; actions: string }
