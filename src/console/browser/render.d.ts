import type { Snapshot } from '../../fleet/snapshot.ts'

export function renderPlaces(snapshot: Snapshot): Record<string, string>
export function escapeHtml(text: unknown): string
export function span(ms: number): string
