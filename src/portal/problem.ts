import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { rankApis } from '../catalog/search.ts'
import type { SignupPolicy } from '../config.ts'
import { prepareError } from '../http/answer/error-answer.ts'
import { prefersType } from '../http/request/accept.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { layout } from './layout.ts'
import { problemPage } from './pages/problem.ts'
import { readSessionCookie } from './session-cookie.ts'

export interface ProblemDeps {
  assets: Assets
  catalog: Catalog
  baseUrl: string
  signup: SignupPolicy
  /** The notice of the operator. */
  announcement: string | undefined
}

/** Addresses that programs use. Failures there are always JSON. */
const FOR_PROGRAMS = /^\/(v1|oauth|\.well-known|portal|healthz|readyz|assets)(\/|\?|$)|\.(json|md|txt|ts|py|ico)(\?|$)/

/**
 * Whether a person will read the failure, because a browser requests a page at an address that
 * programs do not use.
 */
export function isForPeople({ url, method, headers }: FastifyRequest): boolean {
  if (FOR_PROGRAMS.test(url)) return false
  if (isMcp(url) && method !== 'GET') return false
  return prefersType(headers.accept, 'text/html')
}

const isMcp = (url: string): boolean => /^\/mcp(\/|\?|$)/.test(url)

/**
 * Answers a failure with a page that says what is wrong and where to go. A browser at `/mcp` gets
 * the page about agents.
 */
export function sendProblem(
  reply: FastifyReply,
  thrown: unknown,
  { assets, catalog, baseUrl, signup, announcement }: ProblemDeps,
): FastifyReply {
  const { request } = reply
  if (isMcp(request.url)) return reply.redirect('/agents', 303)
  const error = prepareError(reply, thrown)
  const [path = ''] = request.url.split('?', 1)
  const sought = decoded(path)
    .replace(/^\/(apis|docs(\/guides)?)\//, '/')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
  const isOfDocs = /^\/docs\/(?!apis\/)/.test(path)
  const nearest = error.status === 404 && !isOfDocs ? rankApis(offeredApis(catalog), sought).slice(0, 3) : []
  const isEverything = nearest.length > 0 && sought.trim() === ''
  const page = layout(assets, {
    title: `${error.status} · Agent API Gateway`,
    description: error.message,
    path,
    main: problemPage(error, {
      method: request.method,
      path,
      sought: sought.trim(),
      nearest: isEverything ? [] : nearest,
      isOfDocs,
    }),
    signup,
    announcement,
    isLoggedIn: readSessionCookie(request, baseUrl) !== undefined,
  })
  return sendPage(reply, page)
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return ''
  }
}
