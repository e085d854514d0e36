T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class _Request:
    method: str
    url: str
    headers: Dict[str, str]
    body: Optional[bytes]
    #: Whether it may be sent twice without harm.
    is_safe: bool


# A request to send, or seconds to wait: what a caller with or without asyncio does for a call.
_Steps = Generator[Union[_Request, float], Any, T]


class _Calls:
    """What calls do, step by step. Whoever runs the steps sends and waits."""

    def __init__(
        self,
        key: str,
        base_url: str,
        retries_max: int,
        retry_wait_max: float,
        timeout: Optional[float],
        on_retry: Optional[Callable[[GatewayError, float, int], None]],
        on_answer: Optional[Callable[[Meta], None]],
    ) -> None:
        self._credential = _credential_of(key)
        self._base_url = base_url.rstrip("/")
        self._retries_max = retries_max
        self._retry_wait_max = retry_wait_max
        # A socket takes no longer timeout, and does not wait at all with 0. None waits for ever.
        self._timeout = None if timeout is None else max(0.001, min(timeout, 1e9))
        self._on_retry = on_retry
        self._on_answer = on_answer

    def _request(
        self, method: str, path: str, headers: Optional[Dict[str, str]] = None, body: Any = None, is_safe: bool = True
    ) -> _Request:
        sent = {**(headers or {}), **self._credential, "Accept": "application/json", "User-Agent": _USER_AGENT}
        if body is not None:
            sent["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(_exact(body)).encode()
        return _Request(method, self._base_url + path, sent, data, is_safe)

    def _call_request(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]],
        headers: Optional[Dict[str, str]],
        method: Optional[str],
        once: Optional[bool],
    ) -> _Request:
        name = f"{api}/{endpoint.lstrip('/')}"
        method = method or ("POST" if name in _POSTED else "GET")
        once = _POSTED.get(name, False) if once is None else once
        path = f"/v1/call/{urllib.parse.quote(api, safe='')}/{urllib.parse.quote(endpoint.lstrip('/'), safe='')}"
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        if method == "POST":
            return self._request(method, path, headers, given, not once)
        pairs = [
            (name, _text(item))
            for name, value in given.items()
            for item in (value if isinstance(value, (list, tuple)) else [value])
            if item is not None
        ]
        query = "?" + urllib.parse.urlencode(pairs, errors="surrogatepass") if pairs else ""
        return self._request(method, path + query, headers, None, not once)

    def _exchange(self, request: _Request) -> "_Steps[_Received]":
        """Sends a request until its answer is final."""
        retries = 0
        while True:
            try:
                received: _Received = yield request
                if self._on_answer is not None:
                    self._on_answer(received.meta)
                if received.meta.status >= 300:
                    raise _failure(received)
                return received
            except GatewayError as error:
                is_passing = error.code in _RETRYABLE or (
                    error.code in _FOREIGN and _is_passing(error.status) if request.is_safe else error._is_unsent
                )
                if not is_passing or retries >= self._retries_max:
                    raise
                wait = error.retry_after
                if wait is None:
                    # Half a second, then twice as long each time, spread so that callers do not come together.
                    wait = 0.5 * 2**retries * random.uniform(0.5, 1.5)
                if wait > self._retry_wait_max:
                    raise
                if self._on_retry is not None:
                    self._on_retry(error, wait, retries)
            yield float(wait)
            retries += 1

    def _answer_steps(self, request: _Request) -> "_Steps[Answer]":
        received = yield from self._exchange(request)
        return Answer(_data_of(received), received.meta)

    def _start_steps(self, request: _Request) -> "_Steps[str]":
        received = yield from self._exchange(request)
        id = received.answer.get("id") if isinstance(received.answer, dict) else None
        if received.meta.status != 202 or not isinstance(id, str):
            raise _failure(received)
        return id

    def _result_steps(self, id: str) -> "_Steps[Any]":
        request = self._request("GET", f"/v1/calls/{urllib.parse.quote(id, safe='')}")
        while True:
            received = yield from self._exchange(request)
            if received.meta.status != 202:
                return _data_of(received)
            wait = _seconds_of(received.meta.headers.get("retry-after"))
            yield 1.0 if wait is None else float(wait)

    def _cancel_steps(self, id: str) -> "_Steps[None]":
        yield from self._exchange(self._request("DELETE", f"/v1/calls/{urllib.parse.quote(id, safe='')}"))

    def _batch_steps(self, calls: Sequence[BatchCall], take: str, headers: Optional[Dict[str, str]]) -> "_Steps[BatchAnswer]":
        sent: List[Dict[str, Any]] = [{**dict(call), "endpoint": "/" + call["endpoint"].lstrip("/")} for call in calls]
        request = self._request("POST", "/v1/batch", headers, {"calls": sent, "take": take}, False)
        received = yield from self._exchange(request)
        if not isinstance(received.answer, dict) or not isinstance(received.answer.get("results"), list):
            raise _failure(received)
        answer: BatchAnswer = received.answer  # type: ignore[assignment]
        return answer


class _Blocking(_Calls):
    """Runs the steps of a call in the thread of its caller."""

    def _run(self, steps: "_Steps[T]") -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, float):
                    time.sleep(step)
                    step = steps.send(None)
                    continue
                try:
                    received = _send(step, self._timeout, _Connection())
                except GatewayError as error:
                    step = steps.throw(error)
                    continue
                step = steps.send(received)
        except StopIteration as end:
            value: T = end.value
            return value


class _Connection:
    """The connection of a request. Another thread may end it while the request is under way."""

    def __init__(self) -> None:
        #: None before it is open, so that nothing can have been sent.
        self.socket: Optional[socket.socket] = None
        #: Why it was ended.
        self.ended: Optional[str] = None

    def opened(self, connected: socket.socket) -> None:
        self.socket = connected
        if self.ended is not None:
            raise OSError(self.ended)

    def end(self, reason: str) -> None:
        self.ended = reason
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _ending(connection: _Connection, timeout: Optional[float]) -> Iterator[None]:
    """Ends a connection at its timeout. A socket bounds only each wait for bytes, not a whole answer that comes slowly."""
    if not timeout:
        yield
        return
    timer = threading.Timer(min(timeout, threading.TIMEOUT_MAX), connection.end, ["timed out"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _send(given: _Request, timeout: Optional[float], connection: _Connection) -> _Received:
    try:
        with _ending(connection, timeout):
            received = _receive(given, timeout, connection)
    except (OSError, http.client.HTTPException, ValueError) as cause:
        reason = connection.ended or getattr(cause, "reason", None) or cause
        raise _no_answer(reason, connection) from cause
    # A connection that ended may look like the end of an answer.
    if connection.ended is not None:
        raise _no_answer(connection.ended, connection)
    return received


def _receive(given: _Request, timeout: Optional[float], connection: _Connection) -> _Received:
    request = urllib.request.Request(given.url, data=given.body, headers=given.headers, method=given.method)
    vars(request)["connection"] = connection
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            return _Received(_meta_of(response.status, response.headers), _json_of(response))
    except urllib.error.HTTPError as failure:
        with failure:
            return _Received(_meta_of(failure.code, failure.headers), _json_of(failure))


def _no_answer(reason: Any, connection: _Connection) -> GatewayError:
    message = f"No answer arrived: {reason}."
    words = {"code": "NO_ANSWER", "message": message, "hint": "Check base_url and the network.", "docs": ""}
    error = GatewayError(0, {}, words)
    error._is_unsent = connection.socket is None
    return error


# Balancers refuse the name that Python gives by itself.
_USER_AGENT = "agent-api-gateway-python"


# Codes of this client, for answers of somebody else and for none.
_FOREIGN = frozenset(["INVALID_ANSWER", "NO_ANSWER"])


def _is_passing(status: int) -> bool:
    """Whether a proxy's failure with this status passes by itself, as 522 and 529 do. 0 is no answer."""
    return status in (0, 408, 425, 429) or (status >= 500 and status not in (501, 505))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: the key never goes to another address."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


def _opening(kind: Any, request: Any) -> Any:
    """A class of connections that tell the request when they are open."""

    class _Opens(kind):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            request.connection.opened(self.sock)

    return _Opens


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: Any) -> Any:
        return self.do_open(_opening(http.client.HTTPConnection, req), req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: Any) -> Any:
        return self.do_open(_opening(http.client.HTTPSConnection, req), req, context=vars(self)["_context"])


_OPENER = urllib.request.build_opener(_NoRedirects, _Http, _Https)


def _exact(value: Any) -> Any:
    """Big whole numbers as text, because the gateway refuses a number that a double cannot hold."""
    if isinstance(value, dict):
        return {name: _exact(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(item) for item in value]
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
