import { createHmac } from 'node:crypto'

const MASK = '********'
const SHOWN = 4

/**
 * Keys shorter than this are masked whole, because four characters would reveal too much of them.
 */
const LENGTH_SHOWN_MIN = 12

/** A key as it is shown: a mask of fixed length, and its last four characters. */
export function maskKey(key: string): string {
  return key.length < LENGTH_SHOWN_MIN ? MASK : MASK + key.slice(-SHOWN)
}

/**
 * Names the cap of a provider key. The same key has the same name, whoever saves it and however
 * often, because the upstream counts requests by key. The name reveals nothing of the key.
 */
export function keyScope(pepper: Buffer, slug: string, key: string): string {
  return `key-${createHmac('sha256', pepper).update(`${slug}|${key}`).digest('hex').slice(0, 24)}`
}
