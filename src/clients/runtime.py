class GatewayError(Exception):
    """A call that was answered with a failure."""

    def __init__(self, status, headers, error):
        super().__init__(f"{error['code']}: {error['message']} {error['hint']}")
        #: What went wrong, for programs.
        self.code: str = error["code"]
        self.message: str = error["message"]
        #: The next action, with machine tokens such as param=id.
        self.hint: str = error["hint"]
        #: Address of the code's documentation.
        self.docs: str = error["docs"]
        #: HTTP status.
        self.status: int = status
        after = headers.get("Retry-After") or ""
        #: Seconds until it may be tried again, where that is known.
        self.retry_after: Optional[int] = int(after) if after.isdigit() else None
        #: Names the request in the gateway's logs.
        self.request_id: Optional[str] = headers.get("X-Request-Id")


class _Transport:
    def __init__(self, key: str, base_url: str, retries_max: int, retry_wait_max: float, timeout: float):
        self._key = key
        self._base_url = base_url.rstrip("/")
        self._retries_max = retries_max
        self._retry_wait_max = retry_wait_max
        self._timeout = timeout

    def call(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
    ) -> Any:
        """Calls any endpoint, also one that this file does not know, and returns the data of its answer.

        Raises GatewayError when the call failed, after the retries that its Retry-After allows.
        """
        retries = 0
        while True:
            try:
                return self._send(api, endpoint, parameters or {}, headers or {})
            except GatewayError as error:
                if error.code not in _RETRYABLE or retries >= self._retries_max:
                    raise
                wait = error.retry_after
                if wait is None:
                    # Half a second, then twice as long each time, spread so that callers do not come together.
                    wait = 0.5 * 2**retries * random.uniform(0.5, 1.5)
                if wait > self._retry_wait_max:
                    raise
            time.sleep(wait)
            retries += 1

    def _send(self, api: str, endpoint: str, parameters: Dict[str, Any], headers: Dict[str, str]) -> Any:
        given = {name: _text(value) for name, value in parameters.items() if value is not None}
        url = f"{self._base_url}/v1/call/{urllib.parse.quote(api, safe='')}/{urllib.parse.quote(endpoint, safe='')}"
        if given:
            url += "?" + urllib.parse.urlencode(given)
        request = urllib.request.Request(
            url, headers={**headers, "Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                status, received, answer = response.status, response.headers, _json_of(response)
        except urllib.error.HTTPError as failure:
            with failure:
                status, received, answer = failure.code, failure.headers, _json_of(failure)
        if status < 300 and isinstance(answer, dict) and answer.get("status") == "success":
            return answer["data"]
        raise GatewayError(status, received, _error_of(answer, status))


def _json_of(response: Any) -> Any:
    try:
        return json.load(response)
    except ValueError:
        return None


def _error_of(answer: Any, status: int) -> Dict[str, str]:
    """The failure in an answer, whose members stand under error in answers to calls."""
    for given in (answer.get("error"), answer) if isinstance(answer, dict) else ():
        if isinstance(given, dict) and isinstance(given.get("code"), str):
            return {name: str(given.get(name, "")) for name in ("code", "message", "hint", "docs")}
    message = f"HTTP {status} without an answer of the gateway."
    return {"code": "INVALID_ANSWER", "message": message, "hint": "", "docs": ""}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


