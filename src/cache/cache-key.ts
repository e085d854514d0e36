import { hash } from 'node:crypto'
import type { Endpoint } from '../catalog/endpoint.ts'
import type { CallJob } from '../queue/call-job.ts'
import { upstreamKeys } from '../redis/keys.ts'

/**
 * Suffix of the leader's token after its first attempt has begun (written within a second). Opening
 * the connection counts as the beginning, because followers must assume that the request was sent.
 */
export const BEGUN = ' sent'

/** Keys under which identical calls share an answer, in the hash slot of the upstream. */
export interface CacheKeys {
  answer: string
  /** Names the queued call whose answer identical calls share. */
  coalesced: string
  /** Token of the request that fetches the answer. */
  leader: string
}

/** A request's claim to be the leader for an answer. */
export interface Lead {
  keys: CacheKeys
  /**
   * Values of the key `leader` while the request is the leader: before its first attempt has begun,
   * and after.
   */
  tokens: [waiting: string, begun: string]
}

type CachedCall = Pick<
  CallJob,
  'slug' | 'endpoint' | 'parameters' | 'extra' | 'raw' | 'accountId' | 'providerKey' | 'document'
>

/**
 * The keys of a call's answer; undefined if answers are not shared. Equal parameters in any order
 * give equal keys. Answers that belong to one caller, and answers with a provider key, have
 * separate keys.
 */
export function cacheKeys(endpoint: Pick<Endpoint, 'cache'>, call: CachedCall): CacheKeys | undefined {
  const rule = endpoint.cache
  if (!rule) return undefined
  const parameters = rule.key?.(call.parameters) ?? call.parameters
  const sorted = Object.entries(parameters).sort(([left], [right]) => (left < right ? -1 : 1))
  // Calls of an account may use different provider keys: the account's own keys and the keys of its
  // teams.
  // Members of a team must not read answers that only the owner's key can get.
  const owner = (rule.perCaller ? call.accountId : '') + (call.providerKey?.bucket ?? '')
  // Another document of an own API may have another address, or read other data from the answer.
  const document = call.document === undefined ? [] : [call.document]
  const identity = JSON.stringify([call.endpoint, sorted, call.extra, call.raw, owner, ...document])
  const digest = hash('sha256', identity, 'base64url').slice(0, 27)
  return {
    answer: upstreamKeys.cacheEntry(call.slug, digest),
    coalesced: upstreamKeys.coalesced(call.slug, digest),
    leader: upstreamKeys.leader(call.slug, digest),
  }
}
