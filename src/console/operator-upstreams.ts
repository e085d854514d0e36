import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Api, PausedMode } from '../catalog/catalog.ts'
import { nullable } from '../catalog/json.ts'
import { apiNotFound } from '../catalog/unknown-api.ts'
import type { Context } from '../context.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { FleetReader } from '../fleet/fleet-reader.ts'
import { OverviewAnswer, overviewAnswer } from '../fleet/overview-schema.ts'
import { QueueAnswer, queueAnswer } from '../fleet/queue-schema.ts'
import { noteSourceLimit } from '../health/record.ts'
import { SlugParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { actorOf } from '../operator/actor.ts'
import {
  applySettingsChange,
  readStoredSettings,
  SettingsAnswer,
  SettingsChange,
  StoredSettings,
} from '../operator/apply-settings.ts'
import { changeUpstream, UpstreamChange } from '../operator/change-upstream.ts'
import { checkProbe } from '../operator/check-probe.ts'
import { describeUpstream, UpstreamAnswer } from '../operator/describe-upstream.ts'
import { changePause } from '../operator/pause-upstream.ts'
import { announceSettings, IN_FORCE_MS } from '../operator/upstream-settings.ts'
import { awaitProbeOutcome, enqueueProbe } from '../queue/probe-job.ts'
import { SHARED_BUCKET } from '../queue/wait-queue-entry.ts'

/** What the operator API needs of the process that hosts it. */
export interface OperatorDeps
  extends Pick<
    Context,
    'config' | 'log' | 'catalog' | 'db' | 'redis' | 'queues' | 'caps' | 'health' | 'settings' | 'telemetry'
  > {
  fleet: Pick<FleetReader, 'snapshot' | 'queueOf'>
}

const Done = Type.Object({ slug: Type.String(), action: Type.String() })
const Probed = Type.Object({
  ...Done.properties,
  outcome: nullable(
    Type.Object(
      {
        status: nullable(Type.Integer()),
        ms: Type.Integer({ description: 'Time at the source, without the wait for its cap' }),
        code: nullable(Type.String({ description: 'Error code; null: the probe succeeded' })),
        words: Type.String({ description: 'HTTP 200 in 87 ms; DNS: no such host' }),
      },
      { description: 'Null: no result arrived in time, because no worker is alive or the cap has no slot' },
    ),
  ),
})

/** Longest wait for the result of a probe, milliseconds. */
const PROBE_WAIT_MS = 12_000

const tags = ['Operator']

/**
 * The operator API. It has no guard of its own, so register it inside a guard. Every change is
 * validated as a whole, recorded in the audit log, and applied in every process within a second.
 */
export async function operatorRoutes(app: App, deps: OperatorDeps): Promise<void> {
  refuseIllFormedQueries(app)
  upstreamRoutes(app, deps)
  queueRoutes(app, deps)
  readingRoutes(app, deps)
}

function upstreamRoutes(app: App, deps: OperatorDeps): void {
  const { config, catalog, db } = deps
  const list = {
    schema: {
      summary: 'List the upstreams with the settings in force',
      tags,
      response: { 200: Type.Object({ upstreams: Type.Array(UpstreamAnswer) }) },
    },
  }
  app.get('/v1/operator/upstreams', list, async () => {
    return { upstreams: [...catalog.values()].map(describeUpstream) }
  })

  const change = {
    schema: {
      summary: 'Change the settings of an upstream; null resets a member to its default',
      tags,
      params: SlugParams,
      body: UpstreamChange,
      response: { 200: Type.Object({ upstream: UpstreamAnswer }) },
    },
  }
  app.patch('/v1/operator/upstreams/:slug', change, async (request) => {
    const api = findApi(catalog, request.params.slug)
    const secrets = config.secrets.encryption
    const { isOtherKey } = await changeUpstream({ db, secrets }, api, { ...request.body, actor: actorOf(request) })
    await applyStored(deps, request)
    if (isOtherKey) await forgetFormerKey(deps, request, [api])
    return { upstream: describeUpstream(api) }
  })
  settingsRoute(app, deps)
}

function settingsRoute(app: App, deps: OperatorDeps): void {
  const { config, catalog, db } = deps
  const apply = {
    schema: {
      summary: 'Change the settings of several upstreams; if one change is refused, none is made',
      description:
        'With dryRun the answer lists the changes and makes none. A member that is absent does not change, and null resets it to its default.',
      tags,
      querystring: Type.Object({ dryRun: Type.Optional(Type.Enum(['true', 'false'], { default: 'false' })) }),
      body: SettingsChange,
      response: { 200: SettingsAnswer },
    },
  }
  const stored = {
    schema: {
      summary: 'Read the settings that operators have made, in the form in which they can be applied',
      tags,
      response: { 200: StoredSettings },
    },
  }
  app.get('/v1/operator/settings', stored, async () => await readStoredSettings({ db, catalog }))
  app.post('/v1/operator/settings', apply, async (request) => {
    const isDryRun = request.query.dryRun === 'true'
    const applying = { actor: actorOf(request), isDryRun }
    const secrets = config.secrets.encryption
    const { differences, otherKeys } = await applySettingsChange({ db, catalog, secrets }, request.body, applying)
    if (isDryRun || differences.length === 0) return { applied: false, differences }
    await applyStored(deps, request)
    if (otherKeys.length > 0) await forgetFormerKey(deps, request, otherKeys)
    return { applied: true, differences }
  })
}

/**
 * Applies a change that Postgres has. If the announcement is lost, other processes find the change
 * at their next reading.
 */
async function applyStored({ redis, settings }: OperatorDeps, { log }: Pick<FastifyRequest, 'log'>): Promise<void> {
  await announceSettings(redis).catch((error) => log.warn({ err: error }, 'failed to announce settings'))
  await settings.read()
}

/** Forgets what the upstream's limiter said about the previous key. */
async function forgetFormerKey(
  { caps, redis }: OperatorDeps,
  { log }: Pick<FastifyRequest, 'log'>,
  apis: Api[],
): Promise<void> {
  // Until all processes have the new key, a request with the previous key may still bring the state
  // of its limiter.
  await delay(IN_FORCE_MS)
  for (const api of apis) {
    await caps
      .of(api, SHARED_BUCKET)
      .beginGradually({ forgetsLimit: true })
      .then(() => noteSourceLimit(redis, api.slug, 0))
      .catch((error) =>
        log.warn(
          { err: error, slug: api.slug },
          'failed to reset the cap and the reported limit after the change of the key: store the key again when Redis is reachable',
        ),
      )
  }
}

const PauseBody = Type.Object({ mode: Type.Optional(Type.Enum(['hold', 'refuse'], { default: 'refuse' })) })

function queueRoutes(app: App, deps: OperatorDeps): void {
  const { catalog, db, redis, queues } = deps
  const schema = (summary: string) => ({ summary, tags, params: SlugParams, response: { 200: Done } })

  const pause = {
    schema: { ...schema('Pause an upstream: new calls are refused, or with mode hold wait'), body: PauseBody },
    // A missing body counts as a body without members.
    preValidation: async (request: FastifyRequest) => {
      request.body ??= {}
    },
  }
  app.post(
    '/v1/operator/upstreams/:slug/pause',
    pause,
    async (request) => await setPause(deps, request, request.body.mode ?? 'refuse'),
  )
  const resume = { schema: schema('Resume an upstream: workers run its waiting calls again') }
  app.post('/v1/operator/upstreams/:slug/resume', resume, async (request) => await setPause(deps, request, null))
  const probe = {
    schema: {
      ...schema('Probe an upstream now, whatever its health is, and return the outcome'),
      response: { 200: Probed },
    },
  }
  app.post('/v1/operator/upstreams/:slug/probe', probe, async (request) => {
    const api = findApi(catalog, request.params.slug)
    checkProbe(api)
    const { slug } = api
    // The record is written first, because an unrecorded action would be worse than the record of
    // an action that failed.
    await insertAuditRecord(db, { actor: actorOf(request), action: 'upstream.probe', subject: slug })
    const id = randomUUID()
    await enqueueProbe(queues, slug, { name: `operator-${id}`, isForced: true, skipsPause: true, outcomeId: id })
    const outcome = await awaitProbeOutcome(redis, { slug, id }, PROBE_WAIT_MS)
    return { slug, action: 'probe', outcome }
  })
}

/**
 * Pauses an upstream, or resumes it if `mode` is null. When this resolves, every worker knows it.
 */
async function setPause(
  deps: OperatorDeps,
  request: FastifyRequest<{ Params: { slug: string } }>,
  mode: PausedMode | null,
): Promise<Static<typeof Done>> {
  const { slug } = findApi(deps.catalog, request.params.slug)
  await changePause(deps.db, slug, { mode, actor: actorOf(request) })
  await applyStored(deps, request)
  await delay(IN_FORCE_MS)
  return { slug, action: mode === null ? 'resume' : 'pause' }
}

function readingRoutes(app: App, deps: OperatorDeps): void {
  const overview = {
    schema: {
      summary: 'Problems, queues, caps left, health, rates, accounts and processes',
      tags,
      response: { 200: OverviewAnswer },
    },
  }
  app.get('/v1/operator/overview', overview, async () => overviewAnswer(await deps.fleet.snapshot()))

  const queue = {
    schema: {
      summary:
        'The queue of an upstream: its calls in the order in which they run, its probes, and jobs that a defect ended',
      tags,
      params: SlugParams,
      response: { 200: QueueAnswer },
    },
  }
  app.get('/v1/operator/upstreams/:slug/queue', queue, async (request) => {
    const view = await deps.fleet.queueOf(request.params.slug)
    if (!view) throw apiNotFound(deps.catalog.values(), request.params.slug)
    return queueAnswer(view)
  })
}

function findApi(catalog: OperatorDeps['catalog'], slug: string): Api {
  const api = catalog.get(slug)
  if (!api) throw apiNotFound(catalog.values(), slug)
  return api
}
