import { channels, upstreamKeys } from '../redis/keys.ts'

export const HEALTH_CHANNEL = channels.health
export const healthKey = upstreamKeys.health
export const healthChangesKey = upstreamKeys.healthChanges
