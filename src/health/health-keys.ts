import { queuePrefix } from '../queue/call-queue.ts'

/** Channel on which every node hears which upstream's state changed; the message is the slug. */
export const HEALTH_CHANNEL = 'agw:health'

/** Hash of an upstream's health, in its hash slot. */
export function healthKey(slug: string): string {
  return `${queuePrefix(slug)}:health`
}

/** Stream of state changes that are not in Postgres yet. */
export function healthChangesKey(slug: string): string {
  return `${queuePrefix(slug)}:health:changes`
}
