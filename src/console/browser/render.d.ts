import type { Snapshot } from '../../fleet/snapshot.ts'

export function renderPlaces(snapshot: Snapshot): Record<string, string>
