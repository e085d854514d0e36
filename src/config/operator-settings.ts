/** Who gets into the operator console: a group of `SETTING_GROUPS`. */
export const OPERATOR_SETTINGS = {
  title: 'Operators and the OIDC provider',
  settings: [
    {
      names: ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_NAME'],
      byDefault: "unset, unset, unset, the issuer's host",
      about:
        'Sign-in by an OpenID Connect provider. `ops` needs the first three settings, and API nodes need them too if `OIDC_ACCOUNTS` is on. The fourth setting is the name of the provider on buttons.',
    },
    {
      names: ['OIDC_ACCOUNTS'],
      byDefault: 'off',
      about:
        '`on`: people can sign in to the portal by the provider too, not only by email address and password; see [Accounts that sign in at the provider](running.md#accounts-that-sign-in-at-the-provider). The setting needs an `https:` `BASE_URL`, except on localhost.',
    },
    {
      names: ['OIDC_OPERATOR_GROUPS', 'OIDC_VIEWER_GROUPS', 'OIDC_GROUPS_CLAIM'],
      byDefault: 'unset, unset, `groups`',
      about:
        'Groups whose members may do everything in the console, and groups whose members may only read it, comma-separated. Nobody else gets in. The groups hold for the trusted headers of the next row too. If no group is set, `ops` does not start with trusted headers. Nor does it start with a provider, unless `OIDC_ACCOUNTS` is on: the provider then signs people in to the portal only. The third setting is the claim that lists the groups of a person.',
    },
    {
      names: ['TRUSTED_USER_HEADER', 'TRUSTED_GROUPS_HEADER', 'TRUSTED_HEADER_SECRET'],
      byDefault: 'unset',
      about:
        'Headers with which an [access proxy in front of the console](running.md#an-access-proxy-in-front-of-the-console) names a person. These settings need `TRUST_PROXY`.',
    },
    {
      names: ['OPERATOR_TOKEN_LOGIN'],
      byDefault: 'on',
      about: '`off` removes the token form from the log-in page. The token still works as a bearer token.',
    },
  ],
}

/** Which calls are traced: a group of `SETTING_GROUPS`. */
export const TRACE_SETTINGS = {
  title: 'Traces',
  settings: [
    {
      names: ['OTEL_EXPORTER_OTLP_ENDPOINT'],
      byDefault: 'unset',
      about:
        'Base address of an OpenTelemetry collector (OTLP over HTTP) that gets a trace of each call. The SDK reads its other `OTEL_` variables itself, for example `OTEL_EXPORTER_OTLP_HEADERS`.',
    },
    {
      names: ['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG', 'OTEL_SDK_DISABLED'],
      byDefault: 'always_on, 1, false',
      about:
        'Which calls are traced: `always_on`, `always_off`, or `traceidratio` with a share from 0 to 1 in the second setting, each also with `parentbased_` before it. `true` in the third sends no traces.',
    },
  ],
}
