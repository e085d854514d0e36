import { Compile, type Validator } from 'typebox/schema'
import type { CallContext, Endpoint } from '../../src/catalog/endpoint.ts'
import { withDoubles } from '../../src/catalog/long-numbers.ts'
import {
  authFailed,
  failed,
  invalid,
  notFound,
  overLimit,
  ResponseClass,
  rejected,
} from '../../src/catalog/response-class.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import { isRateMarked, requestedWaitMs } from './rate-headers.ts'

export type Interpretation = { data: Record<string, unknown> } | { responseClass: ResponseClass; cause?: unknown }

/** The request that an answer is for. */
export interface AnsweredRequest {
  upstream: Upstream
  /** Undefined for a request of ours: a probe, or the check of a key. */
  endpoint: Endpoint | undefined
  /**
   * Whether the caller added parameters that the endpoint does not declare: an error may be about
   * these.
   */
  hasUndeclared?: boolean
  hasKey?: boolean
}

/** Classifies the answers, then maps them. Never throws. */
export function interpretAnswers(
  sent: AnsweredRequest & { endpoint: Endpoint },
  answers: UpstreamResponse[],
  call: { parameters: Record<string, unknown>; context: CallContext },
): Interpretation {
  for (const answer of answers) {
    const responseClass = classifyResponse(sent, answer)
    if (responseClass) return { responseClass }
  }
  return mapAnswers(sent.endpoint, answers, call)
}

/**
 * Maps answers, none of which has a class, to data that must fit the endpoint's schema. Never
 * throws.
 */
export function mapAnswers(
  endpoint: Endpoint,
  answers: UpstreamResponse[],
  { parameters, context }: { parameters: Record<string, unknown>; context: CallContext },
): Interpretation {
  try {
    const bodies = answers.map((answer) => answer.body)
    const mapped = endpoint.map({ body: bodies[0], bodies, parameters, context })
    if (mapped instanceof ResponseClass) return { responseClass: mapped }
    if (!endpoint.isLenient && !fits(endpoint, mapped))
      return { responseClass: invalid(), cause: drift(endpoint, mapped) }
    return { data: mapped }
  } catch (cause) {
    return { responseClass: invalid(), cause }
  }
}

/** Undefined if the answer is to be mapped. */
export function classifyResponse(sent: AnsweredRequest, answer: UpstreamResponse): ResponseClass | undefined {
  const { upstream, endpoint, hasUndeclared, hasKey } = sent
  const own = endpoint?.classify?.(answer) ?? upstream.classify?.(answer)
  if (!own && endpoint?.acceptStatuses?.includes(answer.status)) return undefined
  const responseClass = own ?? classifyStatus(sent, answer)
  // The request had no key, and nothing that a caller added, so the upstream refused the gateway.
  const blamesKeyWeDidNotSend = responseClass?.code === 'UPSTREAM_AUTH_FAILED' && !hasKey && !hasUndeclared
  return blamesKeyWeDidNotSend ? failed() : responseClass
}

function classifyStatus(sent: AnsweredRequest, answer: UpstreamResponse): ResponseClass | undefined {
  const { upstream } = sent
  const { status, headers, body } = answer
  if (status >= 200 && status < 300) {
    const unusable = status === 204 || status === 205 || status === 206 || body === undefined
    return unusable ? invalid() : undefined
  }
  if (status === 304 || status < 200) return invalid()
  if (status < 400) return headers.location ? new ResponseClass('UPSTREAM_REDIRECT_BLOCKED') : invalid()
  if (status === 429 || (status === 403 && isRateMarked(upstream, headers))) {
    return overLimit(requestedWaitMs(upstream, headers, Date.now()))
  }
  if (status === 401 || status === 402 || status === 403 || status === 407) return authFailed()
  return status < 500 ? classifyRefusal(sent, answer) : failed()
}

/** Request Timeout and Too Early (RFC 9110, 15.5.9; RFC 8470): they pass by themselves. */
export const MOMENTARY = new Set([408, 425])

/**
 * A 4xx is about the caller's values if the endpoint says so, or if the caller added undeclared
 * parameters, because nobody has checked these.
 */
function classifyRefusal({ endpoint, hasUndeclared }: AnsweredRequest, answer: UpstreamResponse): ResponseClass {
  const { status } = answer
  if (MOMENTARY.has(status)) return failed()
  if (status === 404 || status === 410) return hasUndeclared || endpoint?.isNotFound?.(answer) ? notFound() : failed()
  return hasUndeclared || endpoint?.rejects?.includes(status) ? rejected() : failed()
}

const validators = new WeakMap<Endpoint, Validator>()

function dataValidator(endpoint: Endpoint): Validator {
  const known = validators.get(endpoint)
  if (known) return known
  const validator = Compile(endpoint.data)
  validators.set(endpoint, validator)
  return validator
}

/** A number whose digits are kept is an object, and fits as the number that it stands for. */
function fits(endpoint: Endpoint, mapped: unknown): boolean {
  const validator = dataValidator(endpoint)
  return validator.Check(mapped) || validator.Check(withDoubles(mapped))
}

function drift(endpoint: Endpoint, mapped: unknown): Error {
  const [, [first]] = dataValidator(endpoint).Errors(withDoubles(mapped))
  return new Error(`mapped data does not fit its schema: ${first?.instancePath ?? ''} ${first?.message ?? ''}`)
}
