import { createHmac } from 'node:crypto'

const MASK = '********'
const SHOWN = 4

/** Shorter keys are masked whole: four characters would be too much of them. */
const LENGTH_SHOWN_MIN = 12

/** A key as it is shown: a mask of fixed length, and its last four characters. */
export function maskKey(key: string): string {
  return key.length < LENGTH_SHOWN_MIN ? MASK : MASK + key.slice(-SHOWN)
}

/**
 * Name of the cap of an upstream's key: the same for the same key, whoever saves it and however
 * often, because the upstream counts by key. It tells nothing of the key.
 */
export function keyScope(pepper: Buffer, slug: string, key: string): string {
  return `key-${createHmac('sha256', pepper).update(`${slug}|${key}`).digest('hex').slice(0, 24)}`
}
