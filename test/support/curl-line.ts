/** The request of a curl command. */
export interface CurlLine {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
  /** The command as it is written. */
  text: string
}

/** Options of curl that change nothing about the request. */
const SHOWING = new Set(['-i', '-N', '-O', '-s'])

/**
 * Finds the curl commands in a block of shell, and splits them as a shell would. It leaves out
 * comments.
 */
export function curlLines(shell: string): CurlLine[] {
  return shell
    .replaceAll('\\\n', ' ')
    .split(/^(?=curl )/m)
    .filter((text) => text.startsWith('curl '))
    .map((text) => {
      const words = [...text.matchAll(/'([^']*)'|(#.*$)|([^\s']+)/gm)].filter(([, , comment]) => comment === undefined)
      return readWords(
        words.slice(1).map(([word, quoted]) => quoted ?? word),
        text.trim(),
      )
    })
}

function readWords(words: string[], text: string): CurlLine {
  const line: CurlLine = { method: '', url: '', headers: {}, body: undefined, text }
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (SHOWING.has(word)) continue
    if (word === '-X') line.method = words.shift() ?? ''
    else if (word === '-d') line.body = words.shift()
    else if (word === '-H') {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(words.shift() ?? '') ?? []
      line.headers[name.toLowerCase()] = value
    } else if (word.startsWith('-')) throw new Error(`curl has an option ${word} here that no test knows: ${text}`)
    else line.url = word
  }
  return { ...line, method: line.method || (line.body === undefined ? 'GET' : 'POST') }
}
