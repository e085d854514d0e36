import type { Facts, Present, ProcessRow, UpstreamRow } from './snapshot.ts'

/** Most APIs that a line names. */
const NAMES_MAX = 5

/** Most errors of documents in a line. */
const ERRORS_MAX = 3

/** Problems if a kind of process is missing, or if no worker serves an API. */
export function processProblems({ processes, upstreams }: Facts): Present[] {
  if (!processes) return []
  const problems: Present[] = []
  const runs = (kind: string) => processes.some((process) => process.kind === kind)
  if (!runs('worker')) {
    problems.push({
      rank: 0,
      label: 'No worker',
      slug: null,
      text: 'No worker is alive; calls wait in their queues',
      callers: 'Callers wait, and get 503 DEADLINE_EXCEEDED at their deadline.',
      todo: 'Start a worker and look at the log of the last worker.',
      runbook: 'no-worker',
    })
  }
  const unserved = runs('worker') ? upstreams.filter((row) => row.enabled && !isServed(row, processes)) : []
  if (unserved.length > 0) {
    const names = unserved.slice(0, NAMES_MAX).map(({ slug }) => slug)
    const more = unserved.length > names.length ? ` and ${unserved.length - names.length} more` : ''
    problems.push({
      rank: 0,
      label: 'No worker',
      slug: null,
      text: `No worker that is alive serves ${names.join(', ')}${more}`,
      callers: 'Their callers wait, and get 503 DEADLINE_EXCEEDED at their deadline.',
      todo: 'Start a worker whose WORKER_UPSTREAMS names these APIs.',
      runbook: 'no-worker',
    })
  }
  problems.push(...refusedDocuments(processes), ...differingApis(processes))
  if (!runs('web')) {
    problems.push({
      rank: 0,
      label: 'No API node',
      slug: null,
      text: 'No API node is alive',
      callers: 'Callers cannot connect.',
      todo: 'Start an API node and look at the log of the last API node.',
      runbook: 'no-api-node',
    })
  }
  if (!runs('probe')) {
    problems.push({
      rank: 2,
      label: 'No probe process',
      slug: null,
      text: 'No probe process is alive. Nothing records changes of health, and only calls try an API that is down',
      callers: 'Callers may wait longer until an API that was down serves again.',
      todo: 'Start a probe process and look at the log of the last probe process.',
      runbook: 'no-probe-process',
    })
  }
  return problems
}

/** A problem if changed documents have errors. Processes continue with the previous documents. */
function refusedDocuments(processes: ProcessRow[]): Present[] {
  const refusing = processes.flatMap(({ refused }) => refused ?? [])
  if (refusing.length === 0) return []
  const errors = [...new Set(refusing)].slice(0, ERRORS_MAX)
  return [
    {
      rank: 1,
      label: 'Documents',
      slug: null,
      text: `Changed documents are refused: ${errors.join(' ')}`,
      callers: 'Callers get the own APIs as they were before the change.',
      todo: 'Correct the document: `operator check` shows all its errors. The processes then load it by themselves. With these errors, no process starts.',
      runbook: 'documents-refused',
    },
  ]
}

/** A problem if processes have loaded different documents of an API, or some have not loaded it. */
function differingApis(processes: ProcessRow[]): Present[] {
  const known = processes.flatMap(({ kind, pid, apis }) => (apis === null ? [] : [{ name: `${kind} ${pid}`, apis }]))
  const slugs = new Set(known.flatMap(({ apis }) => Object.keys(apis)))
  const differing = [...slugs].filter((slug) => new Set(known.map(({ apis }) => apis[slug])).size > 1)
  const [first, ...others] = differing
  if (first === undefined) return []
  const words = known.slice(0, NAMES_MAX).map(({ name, apis }) => `${name} ${shownDigest(apis[first])}`)
  const more =
    others.length === 0
      ? ''
      : `, and so ${others.length === 1 ? 'does' : 'do'} ${others.slice(0, NAMES_MAX).join(', ')}`
  return [
    {
      rank: 1,
      label: 'Documents',
      slug: null,
      text: `${first} differs: ${words.join(', ')}${more}`,
      callers:
        'A call waits for a worker that has the same document as its API node. If there is no such worker, callers get 503 API_NOT_ENABLED.',
      todo: 'Give all processes the same UPSTREAMS_DIR and BUILTIN_UPSTREAMS. They follow the folder within seconds; a change of the setting needs a restart, workers first.',
      runbook: 'documents-differ',
    },
  ]
}

function shownDigest(digest: string | undefined): string {
  return digest === undefined ? 'has not loaded it' : digest === '' ? 'of this project' : digest.slice(0, 4)
}

/** Whether a living worker serves an API. */
export function isServed({ slug }: UpstreamRow, processes: ProcessRow[]): boolean {
  return processes.some(({ kind, serves }) => kind === 'worker' && (serves === null || serves.includes(slug)))
}
