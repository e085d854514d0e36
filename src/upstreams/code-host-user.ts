import { field, record, required } from '../catalog/fields.ts'
import { filledText, members, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import { github, githubProbe } from './families/github.ts'
import recordings from './recordings/code-host-user.json' with { type: 'json' }

const profile = record({
  login: required.text('login', 'Account name in its own letter case'),
  name: field.text('name', 'Display name'),
  bio: field.text('bio', 'Text about the account, by its owner'),
  followers: field.integer('followers', 'Number of followers'),
  following: field.integer('following', 'Number of accounts followed'),
  id: field.integer('id', 'Number of the account; stays when it is renamed'),
  type: field.text('type', 'User, Organization or Bot'),
  avatar_url: field.text('avatar_url', 'Picture of the account'),
  html_url: field.text('html_url', 'Page of the account'),
  company: field.text(({ company }) => filledText(company)?.trim(), 'Employer, as its owner writes it'),
  blog: field.filledText('blog', 'Website, as its owner writes it'),
  location: field.text('location', 'Place, as its owner writes it'),
  email: field.text('email', 'Given to calls with a key alone'),
  twitter_username: field.text('twitter_username', 'Name on X, formerly Twitter'),
  hireable: field.flag('hireable', 'Whether the owner is open to job offers; null where not said'),
  public_repos: field.integer('public_repos', 'Number of public repositories'),
  public_gists: field.integer('public_gists', 'Number of public gists'),
  created_at: field.text('created_at', 'UTC'),
  updated_at: field.text('updated_at', 'UTC'),
})

export default upstream({
  displayName: 'Code host user',
  category: 'developer',
  description: 'Public profile of a GitHub user or organization: name, bio, followers, public repositories.',
  tags: ['github', 'code', 'developer', 'profile', 'user'],
  keywords: words('account developer followers organization bio programmer'),
  terms: {
    summary:
      'GitHub Terms of Service, section H: no excessive or abusive use, no resale of personal information. Profiles are personal data.',
    url: 'https://docs.github.com/en/site-policy/github-terms/github-terms-of-service#h-api-terms',
  },
  // 5,000 an hour for each account; 900 a minute is GitHub's secondary limit.
  ...github('core', {
    concurrency: 8,
    rates: [
      { max: 900, seconds: 60 },
      { max: 5_000, seconds: 3_600 },
    ],
  }),
  caps: { concurrency: 4, rates: [{ max: 60, seconds: 3_600 }] },
  // Free at GitHub, but every request counts against our cap of 60 an hour.
  probe: { request: githubProbe, everySeconds: 1_800 },
  mayLack: words('name company blog location bio hireable'),
  endpoints: {
    '/profile': endpoint({
      description: 'Public profile of a user, organization or bot.',
      parameters: {
        // A name has at most 39 characters, and "[bot]" five more.
        username: param.text('Account name in any letter case; bots end in [bot]', {
          maxLength: 44,
          pattern: '^[A-Za-z0-9_-]+(\\[bot\\])?$',
        }),
      },
      data: profile,
      // Long because of 60 calls an hour, short because the data are personal. A 404 costs a call
      // too.
      cache: {
        seconds: 900,
        staleIfErrorSeconds: lifetime.hour,
        notFoundSeconds: 300,
        key: ({ username }) => ({ username: username.toLowerCase() }),
      },
      request: ({ username }) => ({ path: path`/users/${username}` }),
      // The body of the answer for an unknown route links to the front page of the documentation.
      isNotFound: ({ body }) => /users.{0,100}#get-a/.test(text(members(body).documentation_url) ?? ''),
      example: recordings['/profile'],
    }),
  },
})
