import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Deployment } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { Job } from 'kubernetes-models/batch/v1'
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Namespace, Secret, Service } from 'kubernetes-models/v1'
import { parse, parseAllDocuments } from 'yaml'
import { childEnvironment, NODE_FLAGS, OPTIONAL_SECRETS, type ProcessKind, SECRETS_OF } from '../../src/config.ts'
import { GatewayError } from '../../src/errors.ts'
import { errorBody } from '../../src/http/answer/error-answer.ts'
import { NAMED_RANGES, trustProxies } from '../../src/http/server/trusted-proxies.ts'

const run = promisify(execFile)

const ROOT = resolve(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'deploy/kubernetes')

const KINDS = { Deployment, HorizontalPodAutoscaler, Job, Namespace, NetworkPolicy, PodDisruptionBudget, Service }

interface Manifest {
  kind: keyof typeof KINDS
  metadata: { name: string; labels?: Record<string, string> }
  spec?: { template?: { spec?: { containers?: Container[] } } }
}

interface Container {
  command: string[]
  env: { name: string; valueFrom: { secretKeyRef: { name: string; key: string; optional?: boolean } } }[]
  envFrom?: { configMapRef: { name: string } }[]
}

async function readManifests(): Promise<Manifest[]> {
  const { resources } = parse(await readFile(join(FOLDER, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  const others = (await readdir(FOLDER)).filter((file) => file !== 'kustomization.yaml')
  assert.deepEqual([...resources].sort(), others.sort(), 'every file is a resource')
  const texts = await Promise.all(resources.map((file) => readFile(join(FOLDER, file), 'utf8')))
  return texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest))
}

/** Start file and secrets of each kind of process, wherever it is described. */
const ENTRIES: Record<ProcessKind | 'release', string> = {
  release: 'src/db/migrate.ts',
  web: 'src/server.ts',
  worker: 'workers/worker.ts',
  probe: 'workers/probe.ts',
  ops: 'src/ops.ts',
}

/** The start command of a process: collections of the two that pass large bodies are flagged. */
const commandOf = (name: string, entry: string): string[] => [
  'node',
  ...(name === 'web' || name === 'worker' ? NODE_FLAGS : []),
  entry,
]

const secretsOf = (name: string): readonly string[] => (name === 'release' ? [] : SECRETS_OF[name as ProcessKind])
const isSecret = (name: string): boolean =>
  Object.values(SECRETS_OF)
    .flat()
    .includes(name as 'JWT_SECRET')

describe('the manifests for Kubernetes', () => {
  it('the manifests for Kubernetes are objects that their schemas allow', async () => {
    const manifests = await readManifests()
    assert.ok(manifests.length >= 14)
    for (const manifest of manifests) {
      const Model = KINDS[manifest.kind]
      assert.ok(Model, manifest.kind)
      new Model(manifest as never).validate()
    }
    assert.throws(() => new Deployment({ metadata: { name: 'x' }, spec: { replicas: 'two' } } as never).validate())
  })

  it('the manifests for Kubernetes can be applied again, migrations and what they need first', async () => {
    const text = await readFile(join(FOLDER, 'kustomization.yaml'), 'utf8')
    const { configMapGenerator, namespace } = parse(text) as {
      configMapGenerator: { name: string; options?: { labels?: Record<string, string> } }[]
      namespace: string
    }
    const first = (await readManifests()).filter(({ metadata }) => metadata.labels?.step === 'release')
    assert.deepEqual(first.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(), [
      'Job release',
      `Namespace ${namespace}`,
    ])
    const [job] = first.filter(({ kind }) => kind === 'Job')
    assert.equal(job?.metadata.labels?.process, 'release')
    const [{ envFrom = [] } = {}] = job?.spec?.template?.spec?.containers ?? []
    assert.ok(envFrom.length > 0)
    for (const { configMapRef } of envFrom) {
      const generator = configMapGenerator.find(({ name }) => name === configMapRef.name)
      assert.equal(generator?.options?.labels?.step, 'release', configMapRef.name)
    }
    const [deletes, migrates, waits, starts] = text.match(/(?<=^# +)kubectl .*/gm) ?? []
    const inNamespace = `kubectl --namespace ${namespace}`
    assert.equal(deletes, `${inNamespace} delete job release --ignore-not-found`)
    assert.match(migrates ?? '', /^kubectl apply -k \S+ --selector step=release$/)
    assert.match(waits ?? '', new RegExp(`^${inNamespace} wait --for=condition=complete --timeout=\\S+ job/release$`))
    assert.match(starts ?? '', /^kubectl apply -k \S+ --selector step!=release$/)
  })

  it('the manifests for Kubernetes leave the number of pods to an autoscaler if there is an autoscaler', async () => {
    const manifests = (await readManifests()) as (Manifest & {
      spec?: { scaleTargetRef?: { name: string }; replicas?: number }
    })[]
    const scaled = manifests.flatMap(({ kind, spec }) => {
      return kind === 'HorizontalPodAutoscaler' ? [spec?.scaleTargetRef?.name] : []
    })
    assert.deepEqual(scaled.sort(), ['web', 'worker'])
    for (const { kind, metadata, spec } of manifests) {
      // If the manifest had a number, a second apply would put the number back.
      if (kind === 'Deployment')
        assert.equal(spec?.replicas === undefined, scaled.includes(metadata.name), metadata.name)
    }
  })

  it('the manifests for Kubernetes take no pod out of service because a store that all pods share is unreachable', async () => {
    interface Probed {
      startupProbe: { httpGet: { path: string } }
      readinessProbe: { httpGet: { path: string } }
      livenessProbe: { httpGet: { path: string } }
    }
    const deployments = (await readManifests()).filter(({ kind }) => kind === 'Deployment')
    assert.equal(deployments.length, 4)
    for (const { metadata, spec } of deployments) {
      const [container] = spec?.template?.spec?.containers ?? []
      const { startupProbe, readinessProbe, livenessProbe } = container as unknown as Probed
      assert.equal(startupProbe.httpGet.path, '/readyz', metadata.name)
      assert.equal(readinessProbe.httpGet.path, '/healthz', metadata.name)
      assert.equal(livenessProbe.httpGet.path, '/healthz', metadata.name)
    }
  })

  it('the example overlay has an Ingress, scrapes what the manifests serve, and gives the autoscaler its metric', async () => {
    const example = join(ROOT, 'deploy/kubernetes-example')
    const load = async (file: string) => await readFile(join(example, file), 'utf8')
    const { resources } = parse(await load('kustomization.yaml')) as { resources: string[] }
    assert.deepEqual(resources, ['../kubernetes', 'ingress.yaml', 'pod-monitor.yaml'])
    const ingress = parse(await load('ingress.yaml'))
    new Ingress(ingress).validate()
    const manifests = await readManifests()
    const { name, port } = ingress.spec.rules[0].http.paths[0].backend.service
    const service = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name)
    const { ports } = (service ?? assert.fail()).spec as unknown as { ports: { name: string }[] }
    assert.ok(ports.some((each) => each.name === port.name))
    const { rules } = parse(await load('prometheus-adapter.yaml'))
    const [{ name: metric, metricsQuery }] = rules.external
    const scaled = JSON.stringify(manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler'))
    assert.ok(scaled.includes(`"${metric.as}"`))
    assert.match(metricsQuery, /agw_queue_wait_seconds_bucket/)
    // Without calls the quantile is NaN, which is not at least 0.
    assert.match(metricsQuery, / >= 0 or vector\(0\)$/)
    assert.match(await readFile(join(ROOT, '.gitignore'), 'utf8'), /^secrets\.env$/m)
  })

  it('the manifests for Kubernetes start every kind of process with the secrets that it needs and no other', async () => {
    const manifests = await readManifests()
    for (const [name, entry] of Object.entries(ENTRIES)) {
      const found = manifests.find(({ kind, metadata }) => metadata.name === name && /Job|Deployment/.test(kind))
      const [container] = found?.spec?.template?.spec?.containers ?? []
      assert.ok(container, name)
      assert.deepEqual(container.command, commandOf(name, entry))
      const read = container.env.map(({ name: variable, valueFrom: { secretKeyRef } }) => {
        assert.deepEqual([secretKeyRef.name, secretKeyRef.key], ['agent-api-gateway', variable])
        return `${variable}${secretKeyRef.optional ? '?' : ''}`
      })
      const optional = Object.entries(OPTIONAL_SECRETS).filter(([, kinds]) => kinds.some((kind) => kind === name))
      const stores = ['DATABASE_URL', ...(name === 'release' ? [] : ['REDIS_URL'])]
      const wanted = [...stores, ...secretsOf(name), ...optional.map(([variable]) => `${variable}?`)]
      assert.deepEqual(read.sort(), wanted.sort(), name)
    }
  })
})

const kubectl = await run('kubectl', ['version', '--client']).then(
  () => false,
  () => 'kubectl is not on the PATH',
)

describe('kustomize', { skip: kubectl }, () => {
  it('kustomize builds the manifests and the example overlay, with the Secret of the migrations among what is applied first and the Secret of the scrape by its name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'agw-kustomize-'))
    try {
      await cp(join(ROOT, 'deploy'), folder, { recursive: true })
      const secrets = ['DATABASE_URL', 'REDIS_URL', ...new Set(Object.values(SECRETS_OF).flat())]
      const lines = secrets.map((name) => `${name}=x`)
      await writeFile(join(folder, 'kubernetes-example/secrets.env'), lines.join('\n'))
      const models = { ...KINDS, ConfigMap, Ingress, Secret }
      for (const name of ['kubernetes', 'kubernetes-example']) {
        const { stdout } = await run('kubectl', ['kustomize', join(folder, name)])
        const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest)
        // Kinds of the Prometheus operator have no model here.
        const known = objects.filter(({ kind }) => !/Monitor$/.test(kind))
        for (const object of known) new models[object.kind](object as never).validate()
        const first = objects.filter(({ metadata }) => metadata.labels?.step === 'release').map(({ kind }) => kind)
        const secret = name === 'kubernetes' ? [] : ['Secret']
        assert.deepEqual(first.sort(), ['ConfigMap', 'Job', 'Namespace', ...secret])
        // kustomize adds a digest to the name of a Secret and to the references that it knows.
        const nameOf = (kind: string) => objects.find((object) => String(object.kind) === kind)?.metadata.name
        const scrape = /credentials:\n.*\n? *name: (\S+)/.exec(stdout)?.[1]
        assert.equal(scrape, nameOf('Secret'), name)
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

interface Egress {
  podSelector: {
    matchLabels: Record<string, string>
    matchExpressions?: { key: string; operator: 'NotIn'; values: string[] }[]
  }
  policyTypes: string[]
  egress?: { ports?: { port: number }[]; to?: { ipBlock: { cidr: string; except?: string[] } }[] }[]
}

describe('the network policies for Kubernetes', () => {
  it('the network policies for Kubernetes let each kind of process reach what it needs, and no process a metadata service', async () => {
    const manifests = await readManifests()
    const policies = manifests
      .filter(({ kind }) => kind === 'NetworkPolicy')
      .map(({ spec }) => spec as unknown as Egress)
    const internetPorts = (kind: string): number[] | 'all' => {
      const applying = policies.filter(
        ({ podSelector: { matchLabels, matchExpressions = [] }, policyTypes }) =>
          policyTypes.includes('Egress') &&
          (matchLabels.process ?? kind) === kind &&
          matchExpressions.every(({ values }) => !values.includes(kind)),
      )
      if (applying.length === 0) return 'all'
      const toAnywhere = applying
        .flatMap(({ egress = [] }) => egress)
        .filter(({ to }) => to?.some(({ ipBlock }) => ipBlock.cidr === '0.0.0.0/0'))
      return toAnywhere.flatMap(({ ports = [] }) => ports.map(({ port }) => port))
    }
    assert.deepEqual(internetPorts('worker'), [])
    const [reached = []] = policies
      .filter(({ podSelector, egress }) => podSelector.matchLabels.process === 'worker' && egress !== undefined)
      .map(({ egress = [] }) => egress.flatMap(({ ports, to = [] }) => (ports ? [] : to)))
    assert.deepEqual(
      reached.map(({ ipBlock }) => ipBlock.cidr),
      ['0.0.0.0/0', '::/0'],
    )
    // Metadata services of clouds, which give credentials away.
    for (const address of ['169.254.169.254', '100.100.100.200', 'fd00:ec2::254', 'fe80::a9fe:a9fe'])
      for (const { egress = [], podSelector } of policies)
        for (const { ipBlock } of egress.flatMap(({ to = [] }) => to))
          assert.ok(
            !contains([ipBlock.cidr], address) || contains(ipBlock.except ?? [], address),
            `${podSelector.matchLabels.process ?? 'every process'} may reach ${address} in ${ipBlock.cidr}`,
          )
    assert.deepEqual(internetPorts('web'), [443, 465, 587])
    assert.deepEqual(internetPorts('ops'), [443])
    for (const kind of ['probe', 'release']) assert.deepEqual(internetPorts(kind), [], kind)
  })
})

/** Whether an address is in one of the ranges. */
function contains(ranges: string[], address: string): boolean {
  const familyOf = (text: string) => (text.includes(':') ? 'ipv6' : 'ipv4')
  const list = new BlockList()
  for (const range of ranges.filter((text) => familyOf(text) === familyOf(address))) {
    const [net = '', prefix] = range.split('/')
    list.addSubnet(net, Number(prefix), familyOf(address))
  }
  return list.check(address, familyOf(address))
}

it('the image sets for its processes what npm start sets for the processes that it starts', async () => {
  const text = await readFile(join(ROOT, 'Dockerfile'), 'utf8')
  const image = new Map([...text.matchAll(/\b([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]))
  const started = Object.entries(childEnvironment('worker', {})).filter(([name]) => /^(MALLOC|UV)_/.test(name))
  assert.ok(started.length >= 4)
  for (const [name, value] of started) assert.equal(image.get(name), value, name)
  assert.match(text, new RegExp(`^CMD \\["node", "${NODE_FLAGS.join('", "')}", "src/server.ts"\\]$`, 'm'))
})

describe('docker-compose.yml', () => {
  it('docker-compose.yml starts the same processes with the secrets that each needs, and a log that does not grow for ever', async () => {
    const text = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')
    const { services } = parse(text, { merge: true }) as {
      services: Record<
        string,
        {
          command: string[]
          environment: Record<string, string>
          env_file?: unknown[]
          logging: object
          mem_limit: string
        }
      >
    }
    for (const [name, entry] of Object.entries(ENTRIES)) {
      const service = services[name] ?? assert.fail(name)
      assert.deepEqual(service.command, commandOf(name, entry))
      const given = Object.keys(service.environment).filter(isSecret)
      assert.deepEqual(given.sort(), [...secretsOf(name)].sort(), name)
    }
    assert.deepEqual(Object.keys(services.release?.environment ?? {}), ['DATABASE_URL'])
    assert.deepEqual(services.release?.env_file, [], 'the settings hold keys of upstreams')
    for (const [name, { logging, mem_limit }] of Object.entries(services)) {
      assert.ok(logging && mem_limit, name)
    }
  })

  it('docker-compose.yml takes from .env what it sets for the processes, and the documents say which settings belong there', async () => {
    const text = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')
    const { services } = parse(text, { merge: true }) as { services: Record<string, { environment?: object }> }
    const set = Object.keys(ENTRIES).flatMap((name) => Object.entries(services[name]?.environment ?? {}))
    // A container's port is part of how it is wired. Compose publishes it under another name.
    const settings = set.filter(([name]) => !/(^|_)(HOST|PORT)$/.test(name))
    assert.ok(settings.length > 10)
    for (const [name, value] of settings) assert.match(value, new RegExp(`\\$\\{${name}:[-?+].*\\}$`), name)
    const head = text.slice(0, text.indexOf('\nname:'))
    const [above = ''] = (await readFile(join(ROOT, '.env.example'), 'utf8')).split('\n# ---- docker compose')
    for (const [name] of settings) {
      assert.ok(head.includes(name), `${name} in the head of docker-compose.yml`)
      assert.match(above, new RegExp(`^#? ?${name}=`, 'm'))
    }
  })

  it('docker-compose.yml has API nodes and the console trust the network of the containers, and them and the proxy the balancers that .env names', async () => {
    const text = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')
    const { services, networks } = parse(text, { merge: true }) as {
      services: Record<string, { environment: Record<string, string>; command: string[]; networks?: unknown }>
      networks: { default: { ipam: { config: { subnet: string }[] } } }
    }
    const [{ subnet = '' } = {}] = networks.default.ipam.config
    assert.match(subnet, /^\$\{SUBNET:-[\d.]+\/\d+\}$/)
    for (const name of ['web', 'ops']) {
      assert.equal(services[name]?.environment.TRUST_PROXY, `${subnet}\${TRUST_PROXY:+,\${TRUST_PROXY:-}}`)
    }
    assert.ok(Object.values(services).every((service) => service.networks === undefined))
    const [, , script = ''] = services.proxy?.command ?? []
    const shown = script.replaceAll('$$', '$').replace(/exec caddy.*/, 'echo "$TRUST_PROXY"')
    const names = Object.keys(NAMED_RANGES)
    const env = { PATH: process.env.PATH, TRUST_PROXY: `192.0.2.1, 198.51.100.0/24,${names.join()},2001:db8::1` }
    const { stdout } = await run('sh', ['-c', shown], { env })
    const ranges = ['192.0.2.1', '198.51.100.0/24', ...Object.values(NAMED_RANGES).flat(), '2001:db8::1']
    assert.deepEqual(stdout.trim().split(' '), ranges, 'Caddy takes no names')
    assert.match(services.proxy?.environment.TRUST_PROXY ?? '', /^\$\{TRUST_PROXY:-127\./)
    const [, sample = ''] = /^# TRUST_PROXY=(.+)$/m.exec(await readFile(join(ROOT, '.env.example'), 'utf8')) ?? []
    const isBalancer = trustProxies([sample])
    assert.ok(isBalancer(sample) && !isBalancer(subnet.replace(/^.*:-(.*)\.0\/.*$/, '$1.1')), 'clients come from there')
    const caddy = await readFile(join(ROOT, 'deploy/Caddyfile'), 'utf8')
    assert.match(caddy, /^\{\n\tservers \{\n[^}]*\ttrusted_proxies static \{\$TRUST_PROXY:[^}]+\}\n\t\}\n\}$/m)
  })

  it('docker-compose.yml reads from .env how many API nodes and workers there are, so that no later command forgets it', async () => {
    const text = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')
    const { services } = parse(text, { merge: true }) as { services: Record<string, { scale?: string }> }
    assert.match(services.web?.scale ?? '', /^\$\{WEB_NODES:-1\}$/)
    assert.match(services.worker?.scale ?? '', /^\$\{WORKERS:-1\}$/)
    assert.doesNotMatch(text, /up .*--scale \w+=/)
  })

  it('the proxy of docker-compose.yml answers for API nodes that are away in the two shapes that errors have', async () => {
    const caddy = await readFile(join(ROOT, 'deploy/Caddyfile'), 'utf8')
    const [call, other] = [...caddy.matchAll(/respond (?:@call )?`(.+)` 503$/gm)].map(([, body = '']) =>
      JSON.parse(body.replaceAll(/\{\$BASE_URL:[^}]+\}/g, 'https://x.example')),
    )
    const error = new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 2_000 })
    assert.deepEqual(call, errorBody(error, 'https://x.example', true))
    assert.deepEqual(other, errorBody(error, 'https://x.example', false))
    assert.match(caddy, /Retry-After 2/)
  })

  it('docker-compose.yml publishes the proxy alone to other machines', async () => {
    const text = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')
    const { services } = parse(text, { merge: true }) as { services: Record<string, { ports?: string[] }> }
    const published = Object.entries(services).filter(([, { ports = [] }]) =>
      ports.some((port) => !port.startsWith('127.0.0.1:')),
    )
    assert.deepEqual(
      published.map(([name]) => name),
      ['proxy'],
    )
  })

  it('docker-compose.yml gives containers with a read-only file system their configuration as files, because text is copied into them', async () => {
    const text = await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')
    const { services, configs } = parse(text, { merge: true }) as {
      services: Record<string, { read_only?: boolean; configs?: { source: string }[] }>
      configs: Record<string, { file?: string; content?: string }>
    }
    const readOnly = Object.values(services).filter((service) => service.read_only)
    const sources = readOnly.flatMap((service) => service.configs ?? []).map(({ source }) => source)
    assert.deepEqual(sources, ['caddy'])
    for (const source of sources) {
      const { file } = configs[source] ?? {}
      assert.ok(file, `${source} is no file`)
      assert.match(await readFile(join(ROOT, file), 'utf8'), /reverse_proxy/)
    }
  })
})
