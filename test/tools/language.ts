/**
 * Counts the words by which prose gets hard to read, per 1,000 words of comments, test names and
 * pages of each folder.
 *
 * Usage: `node test/tools/language.ts [folder …]`; with `--lines` it prints every place
 * that counts against a rule.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The rules, each with a pattern that matches a single use. */
export const RULES = {
  /** Conditions that begin with "if". */
  if: /\bif\b/gi,
  /**
   * "Where" in the sense of "if": a clause at the start of a sentence that a comma ends, or a
   * clause behind a comma.
   */
  where:
    /(?:^|[.;]\s+)where\s(?!to\b)[^.:;,]*,|[,;(]\s+where\s+(?:it|they|there|nobody|nothing|no|none|one|a|an|the|this|that|its|their|each|every|all|any|some|both|many|few|Redis|Postgres)\s(?![^.,;]*\b(?:stands?|goes|lies|comes?|come from|is kept)\b)|\b(?:undefined|null|nil|false|absent|none|Error) where\b/gim,
  /**
   * "One" as a pronoun: behind an adjective or pronoun, or before a verb; not before a noun, and
   * not as a number.
   */
  one: /\b(?:(?:this|its|each|every|another|such an?|other|own|new|old|next|same|later|earlier|wrong|right|made-up|longer|shorter|larger|smaller|live|plain) ones?\b(?! of\b)|ones\b|(?:that|the|no|which) one(?=[.,;:)]|$)|(?:the|that) one (?:that|who|which|whose|with|without|before|after|behind|is|was|has|had|does|did|may|can|must|will|would)|(?:for|of|by|to|with|from|as|than|like|is|to) one(?=[.,;:)]|$))/gim,
  /** A genitive or a relative clause without its noun. */
  thoseOf: /\b(?:(?:those|that) of|those (?:that|which|who|whose))\b/gi,
} as const

export type Rule = keyof typeof RULES

/** The most uses, or the fewest uses, per 1,000 words. */
export const BOUNDS: Record<Rule, { min?: number; max?: number }> = {
  if: { min: 4 },
  where: { max: 0.2 },
  one: { max: 1 },
  thoseOf: { max: 0.3 },
}

/** Longest line of a comment, characters. */
export const COLUMNS_MAX = 100

export interface Prose {
  file: string
  /** Text by line, without the marks of comments. */
  lines: { number: number; text: string; length: number }[]
}

const FOLDERS = ['src', 'workers', 'test']
const NO_PROSE = /node_modules|\.min\.|\/assets\/vendor\/|\/conformance\//

/** Reads the comments and test names of all code files, and the text of all Markdown files. */
export function readProse(folders: string[] = FOLDERS): Prose[] {
  const files = folders.flatMap((folder) =>
    readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  return files
    .filter((file) => /\.(ts|js|mjs|lua|md|css)$/.test(file) && !NO_PROSE.test(file))
    .toSorted()
    .map((file) => ({ file, lines: file.endsWith('.md') ? markdown(file) : comments(file) }))
}

function markdown(file: string): Prose['lines'] {
  let isCode = false
  return linesOf(file).flatMap((text, index) => {
    if (/^\s*(```|~~~)/.test(text)) isCode = !isCode
    return isCode || /^\s*(```|~~~)/.test(text)
      ? []
      : [{ number: index + 1, text: text.replaceAll(/`[^`]*`/g, 'X'), length: 0 }]
  })
}

/** The name of a test, or of a statement in a table of tests. */
const TEST_NAME = /^(?:(?:it|test|describe)\(|says: )(['`])(.*?)\1/

/**
 * Names of tests, and comments that stand on lines of their own. Comments behind code on the same
 * line are left out, because they are rare here and a URL in a text looks like such a comment.
 */
function comments(file: string): Prose['lines'] {
  const isLua = file.endsWith('.lua')
  let isInBlock = false
  return linesOf(file).flatMap((line, index) => {
    const text = line.trim()
    const begins = isLua ? text.startsWith('--[[') || text.startsWith('---[[') : text.startsWith('/*')
    const isComment =
      isInBlock || begins || (isLua ? text.startsWith('--') && !text.startsWith('--- @') : text.startsWith('//'))
    if (begins) isInBlock = true
    if (isInBlock && (isLua ? text.includes(']]') : text.includes('*/'))) isInBlock = false
    const [, , name] = TEST_NAME.exec(text) ?? []
    if (name !== undefined) return [{ number: index + 1, text: `${name}.`, length: 0 }]
    if (!isComment || /^\/\/ biome-ignore|^\/\/\/ </.test(text)) return []
    const words = text.replace(/^(\/\*\*?|\*\/|\*|\/\/|--\[\[|--)\s?/, '').replace(/(\*\/|\]\])$/, '')
    return [{ number: index + 1, text: words.replaceAll(/`[^`]*`/g, 'X'), length: line.length }]
  })
}

function linesOf(file: string): string[] {
  return readFileSync(ROOT + file, 'utf8').split('\n')
}

export interface Count {
  words: number
  uses: Record<Rule, number>
  /** Comment lines longer than `COLUMNS_MAX`. */
  long: number
}

/** Counts of each folder, two levels deep in `src` and one elsewhere. */
export function countByFolder(prose: Prose[]): Map<string, Count> {
  const counts = new Map<string, Count>()
  for (const { file, lines } of prose) {
    const parts = file.split('/')
    const folder = parts
      .slice(0, parts[0] === 'src' || parts[0] === 'test' ? Math.min(2, parts.length - 1) : 1)
      .join('/')
    const count = counts.get(folder) ?? { words: 0, uses: { if: 0, where: 0, one: 0, thoseOf: 0 }, long: 0 }
    counts.set(folder, count)
    const text = lines.map(({ text: line }) => line).join('\n')
    count.words += text.match(/[A-Za-z][A-Za-z'’-]*/g)?.length ?? 0
    for (const rule of Object.keys(RULES) as Rule[]) count.uses[rule] += text.match(RULES[rule])?.length ?? 0
    count.long += lines.filter(({ length }) => length > COLUMNS_MAX).length
  }
  return counts
}

/** Uses per 1,000 words. */
export function rateOf(count: Count, rule: Rule): number {
  return count.words === 0 ? 0 : (count.uses[rule] / count.words) * 1_000
}

function print(prose: Prose[], withLines: boolean): void {
  if (withLines) {
    for (const { file, lines } of prose) {
      for (const { number, text, length } of lines) {
        const broken = (['where', 'one', 'thoseOf'] as const).filter((rule) => text.match(RULES[rule]))
        const names = [...broken, ...(length > COLUMNS_MAX ? ['long'] : [])]
        if (names.length > 0) console.log(`${file}:${number} [${names.join(' ')}] ${text.trim()}`)
      }
    }
    return
  }
  console.log(`${'folder'.padEnd(22)} words   if  where  one  those-of  long lines`)
  const counts = countByFolder(prose)
  const all: Count = { words: 0, uses: { if: 0, where: 0, one: 0, thoseOf: 0 }, long: 0 }
  for (const count of counts.values()) {
    all.words += count.words
    all.long += count.long
    for (const rule of Object.keys(RULES) as Rule[]) all.uses[rule] += count.uses[rule]
  }
  for (const [folder, count] of [...counts, ['all', all] as const]) {
    const rates = (['if', 'where', 'one', 'thoseOf'] as const).map((rule) => rateOf(count, rule).toFixed(1).padStart(5))
    console.log(
      `${folder.padEnd(22)} ${String(count.words).padStart(5)} ${rates.join(' ')} ${String(count.long).padStart(6)}`,
    )
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folders = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
  print(readProse(folders.length > 0 ? folders : undefined), process.argv.includes('--lines'))
}
