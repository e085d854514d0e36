/**
 * Model of another way to share a request among identical calls: calls subscribe to a fetch in
 * Redis, the job is the fetch, and its worker answers all subscribers. The decision "Identical
 * calls share a request in the worker" says why the gateway does not use it.
 *
 * Each step of the model is an atomic command, and the steps of all calls, nodes and workers
 * interleave at random. Then the faults end, and the model takes steps until none is left. By then
 * each waiting call must have its answer. Usage: `node test/tools/shared-fetch-model.ts
 * [histories]`.
 */
import fc from 'fast-check'

/** The steps that a variant of the protocol has beyond subscribe, add and settle. */
interface Variant {
  name: string
  /**
   * When a fetch is settled or left, the generation increases. Without generations only the job's
   * id keeps fetches apart.
   */
  hasGenerations: boolean
  /** A subscriber that hears nothing adds the job again. */
  addsAgain: boolean
  /**
   * The list of a settled fetch stays until its replies are sent, so that a second run sends the
   * replies that the first run did not send.
   */
  keepsList: boolean
  /** When the last subscriber leaves, the generation increases. */
  lastLeaveMovesOn: boolean
}

const BASE = { hasGenerations: true, addsAgain: true, keepsList: true, lastLeaveMovesOn: true }
const VARIANTS: Variant[] = [
  { ...BASE, name: 'whole' },
  { ...BASE, name: 'without generations', hasGenerations: false },
  { ...BASE, name: 'without a second add', addsAgain: false },
  { ...BASE, name: 'settle forgets its list', keepsList: false },
  { ...BASE, name: 'the last leave keeps the generation', lastLeaveMovesOn: false },
]

interface Call {
  node: number
  state: 'new' | 'subscribed' | 'answered' | 'left' | 'refused'
  generation: number
  mustAdd: boolean
  replies: number
}

interface Job {
  state: 'waiting' | 'active'
  worker: number
  step: 'check' | 'request' | 'settle' | 'reply' | 'finish'
  served: number[]
}

class World {
  readonly calls: Call[]
  readonly #variant: Variant
  readonly #subscribers = new Map<number, Set<number>>()
  readonly #settled = new Map<number, Set<number>>()
  readonly #jobs = new Map<number, Job>()
  readonly #deadNodes = new Set<number>()
  readonly #places = new Map<number, Set<number>>()
  #generation = 1
  requestsWithoutCalls = 0

  constructor(variant: Variant, callCount: number) {
    this.#variant = variant
    this.calls = Array.from({ length: callCount }, (_, index) => ({
      ...{ node: index % 2, state: 'new', generation: 0, mustAdd: false, replies: 0 },
    }))
  }

  /**
   * Every step that may happen now. With `withFaults` also deaths, lost acknowledgements, and
   * callers that leave.
   */
  steps(withFaults: boolean): (() => void)[] {
    const steps: (() => void)[] = []
    for (const [id, call] of this.calls.entries()) {
      const isAlive = !this.#deadNodes.has(call.node)
      if (!isAlive) continue
      if (call.state === 'new') steps.push(() => this.#subscribe(id, call))
      if (call.mustAdd) steps.push(() => this.#add(call))
      if (call.state !== 'subscribed') continue
      const isQuiet = !call.mustAdd && !this.#jobs.has(call.generation)
      if (this.#variant.addsAgain && isQuiet) steps.push(() => this.#add(call))
      if (!withFaults) continue
      steps.push(() => this.#leave(id, call))
      // The acknowledgement of the subscription was lost: the command is sent again.
      steps.push(() => this.#subscribe(id, call))
    }
    for (const [generation, job] of this.#jobs) {
      if (job.state === 'waiting') steps.push(() => Object.assign(job, { state: 'active', step: 'check', served: [] }))
      else steps.push(() => this.#run(generation, job))
      // A worker dies: the job runs again, from its beginning.
      if (withFaults && job.state === 'active') steps.push(() => Object.assign(job, { state: 'waiting' }))
    }
    if (withFaults && this.#deadNodes.size === 0) steps.push(() => this.#deadNodes.add(1))
    return steps
  }

  /** What must not be at the end: calls that still wait, and other faults. */
  faults(): string[] {
    const faults: string[] = []
    for (const { state, node, replies } of this.calls) {
      if (state === 'subscribed' && !this.#deadNodes.has(node)) faults.push('a call waits for ever')
      if (state === 'left' && replies > 0) faults.push('a call that left was answered')
    }
    const current = [...this.#subscribers].filter(([, ids]) => [...ids].some((id) => this.#isWaiting(id)))
    if (current.length > 1) faults.push('two generations have subscribers')
    if (this.requestsWithoutCalls > 0) faults.push('a request was sent for nobody')
    for (const [generation, places] of this.#places) {
      if (generation < this.#generation && places.size > 0) faults.push('a place stays in the wait queue')
    }
    return faults
  }

  #isWaiting(id: number): boolean {
    const call = this.calls[id]
    return call?.state === 'subscribed' && !this.#deadNodes.has(call.node)
  }

  #of(map: Map<number, Set<number>>, generation: number): Set<number> {
    const known = map.get(generation) ?? new Set<number>()
    map.set(generation, known)
    return known
  }

  #subscribe(id: number, call: Call): void {
    const isKnown = this.#of(this.#subscribers, call.generation).has(id)
    if (call.state === 'subscribed' && (isKnown || this.#settled.get(call.generation)?.has(id))) return
    const own = this.#of(this.#subscribers, this.#generation)
    const isFirst = own.size === 0
    own.add(id)
    if (isFirst) this.#of(this.#places, this.#generation).add(id)
    Object.assign(call, { state: 'subscribed', generation: this.#generation, mustAdd: isFirst })
  }

  #add(call: Call): void {
    call.mustAdd = false
    if (this.#jobs.has(call.generation)) return
    this.#jobs.set(call.generation, { state: 'waiting', worker: 0, step: 'check', served: [] })
  }

  #leave(id: number, call: Call): void {
    const own = this.#of(this.#subscribers, call.generation)
    own.delete(id)
    this.#settled.get(call.generation)?.delete(id)
    Object.assign(call, { state: 'left', mustAdd: false })
    if (own.size > 0) return
    this.#places.delete(call.generation)
    if (this.#variant.lastLeaveMovesOn) this.#moveOn(call.generation)
  }

  #moveOn(generation: number): void {
    if (this.#variant.hasGenerations && this.#generation === generation) this.#generation += 1
  }

  #run(generation: number, job: Job): void {
    const own = this.#of(this.#subscribers, generation)
    const kept = this.#of(this.#settled, generation)
    if (job.step === 'check') {
      const isOver = this.#variant.hasGenerations && this.#generation > generation
      job.served = isOver ? [...kept] : []
      job.step = isOver ? 'reply' : own.size > 0 ? 'request' : 'finish'
    } else if (job.step === 'request') {
      job.step = 'settle'
    } else if (job.step === 'settle') {
      job.served = [...own]
      if (this.#variant.keepsList) for (const id of own) kept.add(id)
      own.clear()
      this.#places.delete(generation)
      this.#moveOn(generation)
      job.step = 'reply'
    } else if (job.step === 'reply') {
      const next = job.served.pop()
      if (next === undefined) {
        kept.clear()
        job.step = 'finish'
      } else this.#reply(next)
    } else this.#jobs.delete(generation)
  }

  #reply(id: number): void {
    const call = this.calls[id]
    // A node drops a reply for a call that left, and a second reply for the same call.
    if (call?.state === 'subscribed') Object.assign(call, { state: 'answered', mustAdd: false })
  }
}

/**
 * Runs one history.
 * @returns what was wrong at its end
 */
function play(variant: Variant, callCount: number, choices: number[]): string[] {
  const world = new World(variant, callCount)
  for (const choice of choices) {
    const steps = world.steps(true)
    steps[choice % steps.length]?.()
  }
  for (let step = 0; step < 2_000; step += 1) {
    const steps = world.steps(false)
    if (steps.length === 0) break
    steps[step % steps.length]?.()
  }
  return world.faults()
}

function model(histories: number): void {
  const history = fc.tuple(fc.integer({ min: 2, max: 7 }), fc.array(fc.nat(1_000_000), { minLength: 5, maxLength: 60 }))
  for (const variant of VARIANTS) {
    const counts = new Map<string, number>()
    for (const [callCount, choices] of fc.sample(history, { numRuns: histories, seed: 1 })) {
      for (const fault of new Set(play(variant, callCount, choices))) counts.set(fault, (counts.get(fault) ?? 0) + 1)
    }
    const found = [...counts].map(([fault, count]) => `${fault}: ${count}`).join('; ')
    console.log(`${variant.name}: ${found || 'no fault'} in ${histories} histories`)
  }
}

model(Number(process.argv[2] ?? 20_000))
