import { readFileSync } from 'node:fs'
import { numberWords } from '../catalog/limit-words.ts'
import { contactHref } from '../config/upstream-variables.ts'
import type { Config } from '../config.ts'
import type { Html } from '../pages/html.ts'
import { markdownToHtml } from './markdown-to-html.ts'

/** A guide, as Markdown and as HTML. */
export interface Guide {
  /** The last part of its address, `/docs/guides/{name}`. */
  name: string
  title: string
  /** The first sentence, for lists. */
  summary: string
  markdown: string
  html: Html
}

/** In reading order for newcomers. */
const NAMES = [
  'quickstart',
  'authentication',
  'test-mode',
  'limits-and-waits',
  'async',
  'errors',
  'clients',
  'batch',
  'caching',
  'mcp',
  'keys',
  'teams',
  'provider-keys',
  'usage',
  'browsers',
  'versions',
  'your-data',
  'self-hosting',
] as const

/** Reads the guides and fills in the settings of this deployment. */
export function loadGuides(
  config: Pick<Config, 'http' | 'plans' | 'callTimeoutMs' | 'callLog' | 'accounts' | 'upstreams'>,
): Guide[] {
  const values: Record<string, string> = {
    baseUrl: config.http.baseUrl,
    plans: planTable(config.plans),
    getAccount: ACCOUNT_WORDS[config.accounts.signup],
    accountRoute: config.accounts.signup === 'closed' ? 'login' : 'signup',
    contact: contactWords(config.upstreams.operatorContact),
    resultStorage: storageWords(config.plans),
    callLogDays: logWords(config.callLog.days),
    accessTokenSeconds: String(config.accounts.accessTokenHours * 3_600),
    timeoutSeconds: String(Math.round(config.callTimeoutMs / 1_000)),
  }
  return NAMES.map((name) => {
    const source = readFileSync(new URL(`./guides/${name}.md`, import.meta.url), 'utf8')
    const markdown = source.replace(/\{\{(\w+)\}\}/g, (_, value: string) => values[value] ?? value)
    const [, title = name] = /^# (.+)$/m.exec(markdown) ?? []
    const [, summary = ''] = /^# .+\n\n(.+?\.)(?=\s)/m.exec(markdown) ?? []
    let written: Html | undefined
    return {
      name,
      title,
      summary: summary.replace(/[*`]/g, ''),
      markdown,
      // The HTML is made when it is first read, because making all guides would take a tenth of a
      // node's start.
      get html() {
        written ??= markdownToHtml(markdown)
        return written
      },
    }
  })
}

/** How a reader gets an account, according to the operator's setting. */
const ACCOUNT_WORDS: Record<Config['accounts']['signup'], string> = {
  open: '[Sign up](/signup) with an email and a password',
  verified:
    '[Sign up](/signup) with an email and a password, and open the link in the mail that you get (live calls are refused until then)',
  approval:
    '[Sign up](/signup) with an email and a password (live calls are refused until the operator has approved the account)',
  closed: 'Sign-up is closed. If you have an account, [log in](/login). If not, ask the operator of this gateway',
}

/** Whom to ask. An address becomes a link. */
function contactWords(contact: string | undefined): string {
  if (contact === undefined) return 'the operator'
  return contactHref(contact) === undefined ? `\`${contact.replaceAll('`', '')}\`` : `<${contact}>`
}

/** How long the log keeps calls. */
function logWords(days: number): string {
  if (days === 0) return 'no time: this gateway keeps no log'
  return `${numberWords(days)} ${days === 1 ? 'day' : 'days'}`
}

/** The storage for results in each plan. */
function storageWords(plans: Config['plans']): string {
  const words = Object.entries(plans).map(
    ([name, { resultMegabytes }]) => `${numberWords(resultMegabytes)} MB on ${name}`,
  )
  return words.join(', ')
}

function planTable(plans: Config['plans']): string {
  const rows = Object.entries(plans).map(
    ([name, { perMinute, perMonth, inFlight }]) =>
      `| ${name} | ${numberWords(perMinute)} | ${numberWords(perMonth)} | ${numberWords(inFlight)} |`,
  )
  return ['| plan | calls per minute | calls per month (UTC) | calls at once |', '|---|---|---|---|', ...rows].join(
    '\n',
  )
}
