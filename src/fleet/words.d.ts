export function span(ms: number): string
export function percent(share: number): string
export function countOf(count: number, one: string, many?: string): string
export function megabytes(bytes: number): string
