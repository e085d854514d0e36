import type { Api } from '../catalog/catalog.ts'
import { sourceName } from '../catalog/fallback.ts'
import { servesStored, spanWords } from '../catalog/limit-words.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { causeWords, clockTime, isOfLackingMembers, isRecovery } from '../fleet/words.js'
import { HALF_OPEN_PAUSE_MS_MAX, HALF_OPEN_PAUSE_MS_MIN } from '../health/health-thresholds.ts'
import type { HealthView } from '../health/health-view.ts'
import { planOf } from '../limits/plans.ts'

/** The state of an API in one word, as people filter by it. */
export const CONDITIONS = ['Healthy', 'Degraded', 'Limited', 'Down', 'Paused', 'Not enabled', 'Not checked'] as const
export type ConditionWord = (typeof CONDITIONS)[number]

/** What callers of an API have to know of its state now. */
export interface Condition {
  word: ConditionWord
  /**
   * The health of the source, if the word says something else: what the past of the API goes on to.
   */
  healthWord?: ConditionWord
  /** 0 to 100; undefined if nothing was measured. */
  score: number | undefined
  /** Since when, milliseconds since the epoch; undefined if the state never changed. */
  since: number | undefined
  /**
   * From when on a Healthy in its past was seen, not assumed. Milliseconds since the epoch,
   * Infinity for never.
   */
  firstOkAt: number
  /** Why it is not healthy, one sentence; empty if it is, or when nothing is known. */
  reason: string
  /** What callers get meanwhile, in sentences; empty if there is nothing to say. */
  effect: string
}

/** The state of an API from what this node knows; costs no round trip. */
export function conditionOf(api: Api, health: HealthView): Condition {
  const { firstOkAt } = health
  const nothing = { score: undefined, since: undefined, firstOkAt, reason: '', effect: '' }
  if (!api.enabled) {
    const effect = api.needsCallerKey
      ? `Live calls need your own key for this API. ${testCalls(api)}`
      : `The operator has not enabled this API: live calls are refused with API_NOT_ENABLED. ${testCalls(api)}`
    return { ...nothing, word: 'Not enabled', effect }
  }
  if (api.pausedMode !== undefined) {
    const effect =
      api.pausedMode === 'refuse'
        ? 'The operator has paused this API: calls are refused with API_PAUSED, test calls too.'
        : 'The operator has paused this API: calls wait until it is resumed, or until their deadline if that comes first, test calls too.'
    return { ...nothing, word: 'Paused', effect }
  }
  const word = healthWord(health)
  const limited = limitWords(api, health)
  if (limited) {
    return { ...nothing, ...limited, score: word === 'Not checked' ? undefined : health.score, healthWord: word }
  }
  if (word === 'Not checked') return { ...nothing, word }
  const { score, since } = health
  if (word === 'Healthy') return { word, score, since, firstOkAt, reason: '', effect: '' }
  return { word, score, since, firstOkAt, reason: reasonOf(health), effect: effectOf(api, health) }
}

/**
 * What a limit at the source means for callers; undefined while there is none, and while the source
 * is down anyway.
 */
function limitWords(api: Api, health: HealthView): Pick<Condition, 'word' | 'reason' | 'effect'> | undefined {
  const { limitedUntil } = health
  if (limitedUntil === undefined || standingWord(health) !== 'Limited') return undefined
  const stored = servesStored(api) ? ' Stored answers are still served if there are any.' : ''
  return {
    word: 'Limited',
    reason: `The source limits this gateway until ${clockTime(limitedUntil)} UTC.`,
    effect: `Until then live calls are refused with UPSTREAM_RATE_LIMITED, and Retry-After says when to try again.${stored} ${testCalls(api)}`,
  }
}

/** How callers find a source in one word: its health, or that it limits the gateway. */
export function standingWord(health: HealthView): ConditionWord {
  const word = healthWord(health)
  return health.limitedUntil !== undefined && word !== 'Down' ? 'Limited' : word
}

/** The health of a source in one word; `Not checked` if no call or probe is known of. */
export function healthWord({
  status,
  since,
  lastCallAt,
  lastProbeAt,
}: HealthView): HealthView['status'] | 'Not checked' {
  return since === undefined && lastCallAt === 0 && lastProbeAt === 0 ? 'Not checked' : status
}

function reasonOf({ cause = '', lastFailure, status }: HealthView): string {
  return changeWords({ cause, to: status, code: lastFailure?.code ?? null }, lastFailure?.words)
}

/**
 * Why a state began, in sentences: cause of the change and, if it got worse, the failure that
 * decided it, in `failure` if more is known of it than its code.
 */
export function changeWords(
  change: { cause: string; from?: string; to: string; code: string | null },
  failure = sentenceOf(change.code),
): string {
  const words = causeWords(change) || 'the source failed'
  const why = words.charAt(0).toUpperCase() + words.slice(1)
  // The last failure has nothing to do with what answers lack.
  if (failure === '' || isOfLackingMembers(change.cause) || isRecovery(change)) return `${why}.`
  return `${why}; the last failure: ${failure}.`
}

/** What a code says of a failure; nothing if it only says that there was a failure. */
function sentenceOf(code: string | null): string {
  if (code === null || code === 'UPSTREAM_ERROR' || !Object.hasOwn(ERRORS, code)) return ''
  return ERRORS[code as ErrorCode].message.slice(0, -1)
}

function effectOf(api: Api, { status, isOpen, isServedByFallback, cause }: HealthView): string {
  if (isServedByFallback && api.fallback) return `Live calls go to ${sourceName(api.fallback.upstream)} meanwhile.`
  if (status === 'Degraded' && isOfLackingMembers(cause))
    return `Live calls go through; what the source no longer sends is null in their answers. ${testCalls(api)}`
  // By its score alone an API may be down while its breaker is closed.
  const often = status === 'Down' ? 'many of them fail or take' : 'may fail or take'
  if (!isOpen) return `Live calls go through, but ${often} longer. ${testCalls(api)}`
  const stored = servesStored(api) ? ' Stored answers are still served if there are any.' : ''
  return `Live calls are refused at once with UPSTREAM_UNAVAILABLE; the source is tried again after a pause that grows from ${spanWords(HALF_OPEN_PAUSE_MS_MIN / 1_000)} to ${spanWords(HALF_OPEN_PAUSE_MS_MAX / 1_000)}.${stored} ${testCalls(api)}`
}

/**
 * A test call needs the plan of the API as a live call does; it needs neither the source nor the
 * operator.
 */
function testCalls({ tierRequired }: Api): string {
  return tierRequired === 'developer' ? 'Test calls work.' : `Test calls work from the ${planOf(tierRequired)} plan on.`
}
