/**
 * Passwords of 8 or more characters that attackers try first. Shorter passwords are refused anyway.
 */
const COMMON = new Set(
  '12345678 123456789 1234567890 11111111 00000000 87654321 password password1 password12 password123 passw0rd p@ssw0rd qwertyuiop qwerty123 qwerty12 1q2w3e4r 1qaz2wsx q1w2e3r4 iloveyou iloveyou1 sunshine princess football baseball welcome1 welcome123 superman trustno1 starwars letmein1 computer internet whatever michelle jennifer charlie1 dragon123 monkey123 abcd1234 abc12345 a1b2c3d4 asdfghjkl zxcvbnm1 changeme changeme1 admin123 administrator master123 samsung1 88888888 99999999 12341234 11223344 55555555 66666666 77777777 123123123 123456789a aa123456 test1234 testtest secret123 hello123 freedom1 shadow123 football1 liverpool chelsea1 arsenal1 pokemon1 minecraft google123 facebook1'.split(
    ' ',
  ),
)

/**
 * A sentence that says why a password is easy to guess; empty if no reason is found.
 *
 * @param {string} password
 */
export function weakness(password) {
  if (password.length < 8) return ''
  const plain = password.toLowerCase()
  if (COMMON.has(plain)) return 'This is one of the most common passwords: attackers try it first.'
  if (/^(.)\1+$/.test(plain)) return 'One character repeated is guessed at once.'
  if (/^\d+$/.test(plain)) return 'Digits alone are guessed quickly.'
  return ''
}

/**
 * Shows a warning beside a field while it is filled in. It is only a warning: the gateway decides
 * what is refused.
 */
export function warnOfWeak(input, place) {
  input.addEventListener('input', () => {
    const words = weakness(input.value)
    place.textContent = words
    place.hidden = words === ''
  })
}
