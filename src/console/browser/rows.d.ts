import type { UpstreamRow } from '../../fleet/snapshot.ts'

export function byTrouble(rows: UpstreamRow[]): UpstreamRow[]
