export function span(ms: number): string
export function percent(share: number): string
export function countOf(count: number, one: string, many?: string): string
export function clockTime(ms: number): string
export function stateOf(row: {
  enabled: boolean
  paused: unknown
  health: { status: string; checkedAt: unknown } | null
  cap: { limitedUntil: unknown } | null
}): 'Disabled' | 'Paused' | 'Unknown' | 'Down' | 'Limited' | 'Unchecked' | 'Degraded' | 'Healthy'
export function megabytes(bytes: number): string
export interface HealthChangeWords {
  cause: string | null | undefined
  /** State before, if it is known. */
  from?: string
  to: string
}
export function isRecovery(change: Pick<HealthChangeWords, 'from' | 'to'>): boolean
export function isOfRecovery(cause: string | null | undefined): boolean
export function isOfLackingMembers(cause: string | null | undefined): boolean
export function causeWords(change: HealthChangeWords): string
