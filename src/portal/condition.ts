import type { Api } from '../catalog/catalog.ts'
import { sourceName } from '../catalog/fallback.ts'
import { servesStored, spanWords } from '../catalog/limit-words.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { causeWords, clockTime, isOfLackingMembers, isRecovery } from '../fleet/words.js'
import { HALF_OPEN_PAUSE_MS_MAX, HALF_OPEN_PAUSE_MS_MIN } from '../health/health-thresholds.ts'
import type { HealthView } from '../health/health-view.ts'
import { PLAN_OF_TIER } from '../limits/plans.ts'

/** The state of an API in one word, by which people filter. */
export const CONDITIONS = ['Healthy', 'Degraded', 'Limited', 'Down', 'Paused', 'Not enabled', 'Not checked'] as const
export type ConditionWord = (typeof CONDITIONS)[number]

/** What callers must know about the state of an API. */
export interface Condition {
  word: ConditionWord
  /**
   * The health of the source, if `word` says something else. The history of the API continues with
   * it.
   */
  healthWord?: ConditionWord
  /** 0 to 100; undefined if nothing was measured. */
  score: number | undefined
  /** When the state began, milliseconds since the epoch; undefined if it has never changed. */
  since: number | undefined
  /**
   * From when on a Healthy state in the history was measured and not assumed. Milliseconds since
   * the epoch; Infinity for never.
   */
  firstOkAt: number
  /** Why it is not healthy, in one sentence; empty if it is healthy or nothing is known. */
  reason: string
  /** What callers get meanwhile, in sentences; empty if there is nothing to say. */
  effect: string
}

/** The state of an API, from what this node knows. It costs no round trip. */
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
        ? 'The operator has paused this API: calls, also test calls, are refused with API_PAUSED.'
        : 'The operator has paused this API: calls, also test calls, wait until the operator resumes it, or until their deadline if that comes first.'
    return { ...nothing, word: 'Paused', effect }
  }
  const word = healthWord(health)
  const limited = limitWords(api, health)
  if (limited) {
    return { ...nothing, ...limited, score: word === 'Not checked' ? undefined : health.score, healthWord: word }
  }
  const isLimited = health.limitedUntil !== undefined && health.isServedByFallback === true
  const effect = isLimited ? effectOf(api, health) : ''
  if (word === 'Not checked') return { ...nothing, word, effect }
  const { score, since } = health
  if (word === 'Healthy') return { word, score, since, firstOkAt, reason: '', effect }
  return { word, score, since, firstOkAt, reason: reasonOf(health), effect: effectOf(api, health) }
}

/**
 * What a rate limit of the source means for callers; undefined if there is none, or if the source
 * is down anyway.
 */
function limitWords(api: Api, health: HealthView): Pick<Condition, 'word' | 'reason' | 'effect'> | undefined {
  const { limitedUntil } = health
  if (limitedUntil === undefined || sourceStateWord(health) !== 'Limited') return undefined
  const stored = servesStored(api) ? ' Stored answers are still served if there are any.' : ''
  return {
    word: 'Limited',
    reason: `The source limits this gateway until ${clockTime(limitedUntil)} UTC.`,
    effect: `Live calls wait until the limit ends; a call that would wait too long is refused, and Retry-After says when to try again.${stored} ${testCalls(api)}`,
  }
}

/**
 * The state of a source in one word: its health, or `Limited` while the source limits the gateway.
 */
export function sourceStateWord(health: HealthView): ConditionWord {
  const word = healthWord(health)
  const isLimited = health.limitedUntil !== undefined && !health.isServedByFallback
  return isLimited && word !== 'Down' ? 'Limited' : word
}

/** The health of a source in one word; `Not checked` if no call or probe is known. */
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
 * Why a state began, in sentences: the cause of the change and, if the state got worse, the failure
 * that caused it. `failure` is used if it has more details than the code.
 */
export function changeWords(
  change: { cause: string; from?: string; to: string; code: string | null },
  failure = sentenceOf(change.code),
): string {
  const words = causeWords(change) || 'the source failed'
  const why = words.charAt(0).toUpperCase() + words.slice(1)
  // The last failure has nothing to do with missing members.
  if (failure === '' || isOfLackingMembers(change.cause) || isRecovery(change)) return `${why}.`
  return `${why}; the last failure: ${failure}.`
}

/** What a code says about a failure; empty if it only says that there was a failure. */
function sentenceOf(code: string | null): string {
  if (code === null || code === 'UPSTREAM_ERROR' || !Object.hasOwn(ERRORS, code)) return ''
  return ERRORS[code as ErrorCode].message.slice(0, -1)
}

function effectOf(api: Api, { status, isOpen, isServedByFallback, limitedUntil, cause }: HealthView): string {
  if (isServedByFallback && api.fallback) {
    const name = sourceName(api.fallback.upstream)
    return limitedUntil === undefined
      ? `Live calls go to ${name} meanwhile.`
      : `The source limits this gateway until ${clockTime(limitedUntil)} UTC. Live calls wait until then; a call that would wait too long goes to ${name}.`
  }
  if (status === 'Degraded' && isOfLackingMembers(cause))
    return `Live calls are answered; fields that the source no longer sends are null. ${testCalls(api)}`
  // If the API is Down only by its score, its breaker may be closed.
  const often = status === 'Down' ? 'many of them fail or take' : 'may fail or take'
  if (!isOpen) return `Live calls are still sent to the source, but ${often} longer. ${testCalls(api)}`
  const stored = servesStored(api) ? ' Stored answers are still served if there are any.' : ''
  return `Live calls are refused at once with UPSTREAM_UNAVAILABLE; the gateway tries the source again after a pause that grows from ${spanWords(HALF_OPEN_PAUSE_MS_MIN / 1_000)} to ${spanWords(HALF_OPEN_PAUSE_MS_MAX / 1_000)}.${stored} ${testCalls(api)}`
}

/**
 * What test calls get. Like live calls, they need the plan of the API; but they need neither the
 * source nor the operator's consent.
 */
function testCalls({ tierRequired }: Api): string {
  return tierRequired === 'developer'
    ? 'Test calls work.'
    : `Test calls work from the ${PLAN_OF_TIER[tierRequired]} plan on.`
}
