import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { readCookie } from '../http/request/cookies.ts'

/** The cookie with the name that an operator gave at the log-in of the console. */
export const NAME_COOKIE = 'agw_operator'

/** What a person may do in the console: everything, or read. */
export type OperatorRole = 'operator' | 'viewer'

/** Who uses the console or its API. */
export interface Operator {
  /** Undefined for whoever has OPERATOR_TOKEN, which proves no name. */
  name: string | undefined
  role: OperatorRole
  /** What proved it: the token, an OIDC provider, or an access proxy. */
  by: 'token' | 'oidc' | 'proxy'
}

/** Whoever has the operator token. */
export const TOKEN_OPERATOR: Operator = { name: undefined, role: 'operator', by: 'token' }

const operators = new WeakMap<object, Operator>()

/** Remembers who sends a request; the guard of the console has proved it. */
export function setOperator(request: FastifyRequest, operator: Operator): void {
  operators.set(request, operator)
}

/** What the sender of a request may do; undefined for a request that the guard has refused. */
export function roleOf(request: FastifyRequest): OperatorRole | undefined {
  return operators.get(request)?.role
}

/**
 * Who does it, for the audit log, with the address. A name that a provider or a proxy proved stands
 * beside what proved it: `ada (oidc, 192.0.2.7)`. A name without that is what somebody with the
 * token gave, and nobody proved it.
 */
export function actorOf(request: Pick<FastifyRequest, 'headers' | 'ip'>): string {
  const { name: proven, by } = operators.get(request) ?? TOKEN_OPERATOR
  if (proven !== undefined) return `${proven} (${by}, ${request.ip})`
  const named = request.headers['x-operator']
  return unprovenActor(request, typeof named === 'string' ? named : '')
}

/**
 * Whoever has the operator token, by the name given with it, else by the name of the last log-in.
 */
export function unprovenActor(request: Pick<FastifyRequest, 'headers' | 'ip'>, given: string): string {
  const name = isOperatorName(given) ? given : operatorName(request)
  return `${name || 'operator'} (${request.ip})`
}

/** The name of the console's log-in; empty for none. */
export function operatorName({ headers }: Pick<FastifyRequest, 'headers'>): string {
  const name = readCookie(headers.cookie, NAME_COOKIE) ?? ''
  return isOperatorName(name) ? name : ''
}

/**
 * Whether the audit log takes a name that nobody proved: nothing in it is read as anything but a
 * name.
 */
export function isOperatorName(name: string): boolean {
  return /^[\w.@ -]{1,64}$/.test(name)
}

/**
 * What a person in these groups may do; undefined for somebody in none that counts. Fails closed.
 */
export function roleIn(groups: readonly string[], access: Config['operatorAccess']): OperatorRole | undefined {
  if (access.operatorGroups.some((group) => groups.includes(group))) return 'operator'
  return access.viewerGroups.some((group) => groups.includes(group)) ? 'viewer' : undefined
}

/** A proven name as it may stand in the audit log and on pages; undefined for anything else. */
export function provenName(text: unknown): string | undefined {
  return typeof text === 'string' && /^[\p{L}\p{N}._@+ -]{1,128}$/u.test(text) ? text : undefined
}
